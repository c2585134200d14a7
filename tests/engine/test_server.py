"""The server that runs are forked from: it has imported what they need, and does not outlive its command."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pebench.config import Options
from pebench.engine.executors import server
from pebench.engine.observer import Observer
from pebench.errors import UserError
from pebench.tasks import configure

linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds processes by /proc")


@pytest.mark.slow
def test_the_server_has_imported_what_every_run_needs() -> None:
    asked = "import sys, pebench.engine.executors.preload; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert {"pebench.training.runner", "pebench.data.text", "torch.utils.tensorboard", "pebench.encodings.rope"} <= {
        *done.stdout.split()
    }


@pytest.mark.parametrize("code", ["raise ValueError('no licence')", "import sys; sys.exit('no licence')"])
def test_a_module_that_cannot_be_imported_is_its_users_fault(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "registers_badly.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(server, "follow_parent", lambda: None)
    monkeypatch.setattr(server, "end_without_guests", lambda code: None)
    sent: list[object] = []
    options = Options(tmp_path, modules=("registers_badly",))
    server._prepare_and_send([], options, SimpleNamespace(send=sent.append), {})  # type: ignore[arg-type]
    ((problem,),) = sent
    assert "importing registers_badly failed with" in problem
    assert "no licence" in problem
    assert "report" not in problem


@pytest.mark.parametrize(
    ("ending", "told"),
    [
        ("raise LookupError('no such row')", r"LookupError: no such row \(.*:9\)"),
        ("sys.exit(3)", r"SystemExit: 3 \(.*:9\)"),
        ("os._exit(3)", r"RuntimeError: os\._exit\(3\) was called"),
    ],
)
def test_data_that_fails_is_named_with_its_place(
    ending: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = f"data_of_others_{ending.partition('(')[0].replace('.', '_').replace(' ', '_')}"  # imported once each
    (tmp_path / f"{module}.py").write_text(FAILING_DATA.format(ending=ending))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(os, "_exit", lambda code: pytest.fail(f"this process would have ended with {code}"))
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "cache"))
    config = configure(f"{module}:failing", "add", 0, "smoke")
    with pytest.raises(UserError, match=rf"^{module}:failing: its data raised {told}"):
        server.prepare([config], Options(tmp_path), Observer(), here=True)


FAILING_DATA = """
import os, sys
from dataclasses import replace
from pebench.data.images import Digits
from pebench.tasks import TASKS

class Failing(Digits):
    def read(self):
        {ending}

failing = replace(TASKS["vit-digits"], name="failing", data=Failing)
"""

SLOW_IMPORT = """
import sys, time

class Slow:
    def find_spec(self, name, *_):
        if name == "torch":
            print("importing", flush=True)
            time.sleep(60)

sys.meta_path.insert(0, Slow())
import pebench.engine.executors.preload
open(sys.argv[1], "w")
"""


@linux
def test_a_server_that_nobody_waits_for_stops_importing(tmp_path: Path) -> None:
    finished = tmp_path / "finished"
    server = [sys.executable, "-c", SLOW_IMPORT, str(finished)]
    parent = f"import subprocess; print(subprocess.Popen({server!r}, stdout=subprocess.PIPE).stdout.readline())"
    # the server inherits our pipe for errors, so that its end is waited for
    done = subprocess.run([sys.executable, "-c", parent], capture_output=True, check=True)
    assert b"importing" in done.stdout
    assert not finished.exists()
