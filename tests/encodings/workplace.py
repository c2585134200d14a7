"""A folder with modules and packages of plug-ins, and commands given in it."""

import contextlib
import io
import subprocess
import sys
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pebench.cli import main
from pebench.config import Options
from pebench.encodings import plugins
from pebench.encodings.base import EncodingSpec
from pebench.engine.executors.worker import work
from pebench.runs.records import Record, read_record
from pebench.tasks import configure

HEAD = "import torch\nfrom pebench import PositionalEncoding\n\n"
ROWS = (
    HEAD
    + '''
class Rows(PositionalEncoding):
    """Adds a number. And more."""

    size = "d_model"

    def __init__(self, spec, *, scale: float = 1.0, of: "str | None" = None):
        super().__init__(spec)
        self.scale = scale
        self.shift = torch.nn.Parameter(torch.zeros(spec.d_model))

    def reset_parameters(self):
        torch.nn.init.zeros_(self.shift)

    def embed(self, x, state):
        return x + self.scale + self.shift
'''
)
SMOKE = ["run", "--task", "vit-digits", "--tier", "smoke", "--device", "cpu", "--threads", "1", "--seeds", "1"]
SPEC = EncodingSpec(d_model=8, num_heads=2, num_layers=1, extent=(3,), causal=True)


@dataclass
class Workplace:
    """A folder that commands are given in, and that modules are found in."""

    folder: Path

    def module(self, text: str, *, fresh: bool = True, name: str = "mine") -> str:
        """Write a module; its name, by default one that no other test has."""
        name = f"{name}_{uuid.uuid4().hex[:8]}" if fresh else name
        path = self.folder / f"{name.replace('.', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return name

    def package(self, distribution: str, entries: dict[str, str], version: str = "1.5") -> None:
        """Pretend that a package is installed which offers encodings."""
        info = self.folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        lines = [f"{name} = {place}" for name, place in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[pebench.encodings]", *lines]) + "\n")
        plugins.offered.cache_clear()

    def ask(self, *arguments: str, code: int = 0) -> str:
        """Return what a command prints, run in this process."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            found = main(arguments)
        assert found == code, printed.getvalue()
        return printed.getvalue()

    def ask_anew(self, *arguments: str, code: int = 0, script: str = "") -> str:
        """Return what a command prints in a process of its own, as of `pebench`, without this folder on the path."""
        program = [sys.executable, "-P", *(["-m", "pebench"] if not script else ["-c", script])]
        done = subprocess.run([*program, *arguments], cwd=self.folder, capture_output=True, text=True, timeout=300)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr


def options(out: Path, **more: Any) -> Options:
    return Options(out, device="cpu", threads=1, **more)


def done(encoding: str, out: Path, seed: int = 0) -> Record:
    """A smoke run of vit-digits, to its record."""
    config = configure("vit-digits", encoding, seed, "smoke")
    work(config, options(out))
    record = read_record(out / config.directory)
    assert record is not None
    return record
