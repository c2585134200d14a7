"""Commands as tests ask for them: in this process, or in one of their own."""

import io
import os
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from pebench.cli import main

ROOT = Path(__file__).parents[2]
SMOKE = ["run", "--task", "vit-digits", "--tier", "smoke", "--device", "cpu", "--threads", "1"]
SIGNAL = signal.signal
TWO_BY_TWO = [*SMOKE, "--pe", "add", "--pe", "rope", "--seeds", "2"]


@dataclass
class Answer:
    """What a command printed, how it ended and where its records are."""

    text: str
    code: int
    out: Path

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()


def ask(*arguments: str, out: Path | None = None) -> Answer:
    text = io.StringIO()
    with redirect_stdout(text):
        code = main([*arguments, *(["--out", str(out)] if out else [])])
    return Answer(text.getvalue(), code, out or Path())


def directories(answer: Answer) -> list[str]:
    """The runs that ``--dry-run`` names, without their keys."""
    return [line.split()[-1].rpartition("-")[0] for line in answer.lines if line.startswith("  ")]


def pebench(*arguments: str, **options: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "pebench", *arguments]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    return subprocess.Popen(command, **(pipes | options))
