"""Leases: the file by which one process at a time executes a run, and reports how far the run is.

A lease is a file in the run's folder, ``lease-<n>.json``, and a process that holds one while no other does has the run.
A lease can be created only once, so of many processes that want the run one gets it. Leases of dead processes may be
followed by the next n. Where a process's number is meaningful, on its own machine and in its own container, a dead
process is known at once. Elsewhere, or where the number may be a later process's, the age of the file decides, which a
living process renews. There are no file locks: on several network file systems they have no effect.
"""

import contextlib
import json
import os
import platform
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from pebench.atomic import replacing

RENEW_S = 20.0
"""Time between two renewals of a living process's lease, in seconds."""

FRESH_S = 300.0
"""Age from which the lease of another machine or container counts as left behind, in seconds."""

REPORT_S = 1.0
"""Shortest time between two reports of progress, in seconds."""

CLAIM = ".claim-"
"""First letters of the names of files that last as long as a lease is asked for."""

LEASE = "lease-"
"""First letters of the names of leases; their number follows."""


@dataclass(frozen=True)
class Holder:
    """The process that executes a run, and how far the run is.

    Args:
        host: Name of its machine.
        pid: Number of the process there.
        born: Start of that process, in the system's clock ticks; it distinguishes two processes with one number.
        since: Time at which the process took the run, in seconds since 1970.
        step: Optimizer steps done.
        metrics: The latest known metrics.
        boot: Identity of the machine's start; empty where the system has none, or an older pebench wrote this.
        pids: Identity of the namespace that `pid` is a number in; empty likewise.
    """

    host: str
    pid: int
    born: int
    since: float
    step: int = 0
    metrics: Mapping[str, float] = field(default_factory=dict)
    boot: str = ""
    pids: str = ""

    @property
    def place(self) -> tuple[str, str, str]:
        """The scope of its process's number: machines may share a name, and a machine may have containers."""
        return self.host, self.boot, self.pids


class Lease:
    """The right to execute a run, held by this process.

    Args:
        path: The lease's file, which this process has created.
        holder: This process.
    """

    def __init__(self, path: Path, holder: Holder) -> None:
        self.path, self.holder = path, holder
        self._reported = 0.0
        self._done = threading.Event()
        threading.Thread(target=self._renew, daemon=True).start()

    def report(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write how far the run is to the file, unless that has just been done."""
        if time.monotonic() - self._reported >= REPORT_S:
            self._reported = time.monotonic()
            self.holder = replace(self.holder, step=step, metrics=dict(metrics))
            with contextlib.suppress(OSError), replacing(self.path) as file:  # a report that fails must not end the run
                file.write(json.dumps(asdict(self.holder)).encode())

    def release(self) -> None:
        """Give the run back: delete the file."""
        self._done.set()
        self.path.unlink(missing_ok=True)  # gone if others took this process for dead

    def _renew(self) -> None:
        while not self._done.wait(RENEW_S):
            with contextlib.suppress(OSError):
                os.utime(self.path)


@contextlib.contextmanager
def claim(folder: Path) -> Iterator[Lease | None]:
    """Take a run for as long as the context lasts; yields None if another process has it.

    Args:
        folder: The run's folder; made if need be.
    """
    folder.mkdir(parents=True, exist_ok=True)
    lease = _take(folder)
    try:
        yield lease
    finally:
        if lease is not None:
            lease.release()


def _take(folder: Path) -> Lease | None:
    """Create the next lease of a run and delete those of dead processes; None if another process has the run."""
    found = _leases(folder)
    if any(map(_alive, found)):
        return None
    path = folder / f"{LEASE}{max(found.values(), default=-1) + 1}.json"
    holder = _myself()
    temporary = folder / f"{CLAIM}{uuid4().hex}"
    try:
        temporary.write_text(json.dumps(asdict(holder)), encoding="utf-8")
        _create(temporary, path)
    except FileExistsError:
        return None
    finally:
        temporary.unlink(missing_ok=True)
    others = [lease for lease in _leases(folder) if lease != path]
    if any(map(_alive, others)):
        # This process was slow: others have taken the run since, perhaps finished it, and numbers have begun anew.
        # Two may withdraw from each other here; the next process that asks gets the run.
        path.unlink(missing_ok=True)
        return None
    for other in others:
        other.unlink(missing_ok=True)
    return Lease(path, holder)


def _create(written: Path, path: Path) -> None:
    """Give a written file the name `path`, unless there is a file of that name.

    Raises:
        FileExistsError: If there is.
    """
    try:
        os.link(written, path)  # it appears with its content, so that no process reads half of it
    except FileExistsError:
        raise
    except OSError:  # the file system has no links
        with path.open("x", encoding="utf-8") as file:
            file.write(written.read_text(encoding="utf-8"))


def holder_of(folder: Path) -> Holder | None:
    """Return the process that executes a run now; None if none does."""
    for path in _leases(folder):
        holder = _read(path)
        if holder and _alive(path):
            return holder
    return None


def clear_claims(folder: Path) -> None:
    """Remove from a run's folder what processes left that died while they asked for a lease."""
    for path in folder.glob(f"{CLAIM}*"):
        if not _alive(path):
            path.unlink(missing_ok=True)


def _leases(folder: Path) -> dict[Path, int]:
    """Return every lease of a run, with its number; its process may be dead."""
    numbers = {path: path.stem.removeprefix(LEASE) for path in folder.glob(f"{LEASE}*.json")}
    return {path: int(number) for path, number in numbers.items() if number.isdecimal()}


def _read(path: Path) -> Holder | None:
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    return None


def _myself() -> Holder:
    """Return this process as the holder of a run."""
    boot = pids = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    with contextlib.suppress(OSError):
        pids = os.readlink("/proc/self/ns/pid")
    return Holder(platform.node(), os.getpid(), _born(os.getpid()), time.time(), boot=boot, pids=pids)


def _alive(path: Path) -> bool:
    """Return whether the process that holds a lease is still running."""
    holder = _read(path)
    if holder is not None and holder.place == _myself().place:
        born = _born(holder.pid)
        # Where the system does not say when a process began, its number alone proves nothing: the file's age decides.
        if born or holder.born:
            return born == holder.born
    probe = path.with_name(f"{CLAIM}{uuid4().hex}")
    now = time.time()
    with contextlib.suppress(OSError):  # in a folder that may not be written to, our own clock must do
        probe.touch()
        now = probe.stat().st_mtime  # by the clock of the file system, which may differ from ours
        probe.unlink(missing_ok=True)
    try:
        return now - path.stat().st_mtime < FRESH_S
    except OSError:
        return False


def _born(pid: int) -> int:
    """Return the start of a process of this machine, in clock ticks since boot; -1 if there is none, 0 if unknown."""
    try:
        # The start is field 22 of the line (proc(5)). It is counted from behind the program's name, which may have
        # spaces and brackets.
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends while it is read
        if Path("/proc/self/stat").exists():
            return -1
    if os.name == "nt":  # there signal 0 is Ctrl-C
        return 0
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return -1
    except OSError:
        pass  # it exists, and is another user's
    return 0
