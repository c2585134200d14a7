"""The server that runs are forked from: it has imported what they need, and does not outlive its command."""

import subprocess
import sys
from pathlib import Path

import pytest

linux = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="finds processes by /proc")


@pytest.mark.slow
def test_the_server_has_imported_what_every_run_needs() -> None:
    asked = "import sys, pebench.engine.executors.preload; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert {"pebench.training.runner", "pebench.data.text", "torch.utils.tensorboard", "pebench.encodings.rope"} <= {
        *done.stdout.split()
    }


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
