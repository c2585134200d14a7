"""Leases: which process is doing a run, and how far it is. A run is done by one process at a time.

A lease is a file in the run's folder, ``lease-<n>.json``, and who holds one while nobody else does has the run. It
can only be created once, so of many processes that want the run one gets it. Leases whose processes are gone may be
followed by the next n: a dead process is known at once where its number means something, on its own machine and in
its own container, and elsewhere, as where a number may be a later process's, by the age of the file, which a living
one renews. No file locks: on several
network file systems they do nothing.
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
"""How often a living process renews its lease, in seconds."""

FRESH_S = 300.0
"""Age from which the lease of another machine or container counts as left behind, in seconds."""

TELL_S = 1.0
"""How often progress is written at most, in seconds."""


@dataclass(frozen=True)
class Holder:
    """Who does a run, and how far it is.

    Args:
        host: Name of its machine.
        pid: Process there.
        born: When that process began, in the system's clock ticks; tells two users of a number apart.
        since: When the run was taken on, in seconds since 1970.
        step: Optimizer steps done.
        metrics: The latest known.
        boot: Which start of the machine it runs in; empty where that is not told, or an older pebench wrote this.
        pids: The namespace that `pid` is a number of, likewise.
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
        """Where its process's number is a number: machines may share a name, and a machine may have containers."""
        return self.host, self.boot, self.pids


class Lease:
    """The right to do a run, held by this process.

    Args:
        path: Of the lease's file, which this process has created.
        holder: This process.
    """

    def __init__(self, path: Path, holder: Holder) -> None:
        self.path, self.holder = path, holder
        self._told = 0.0
        self._done = threading.Event()
        threading.Thread(target=self._renew, daemon=True).start()

    def tell(self, step: int, metrics: Mapping[str, float]) -> None:
        """Write down how far the run is, unless that has just been done."""
        if time.monotonic() - self._told >= TELL_S:
            self._told = time.monotonic()
            self.holder = replace(self.holder, step=step, metrics=dict(metrics))
            with contextlib.suppress(OSError), replacing(self.path) as file:  # progress is not worth a run
                file.write(json.dumps(asdict(self.holder)).encode())

    def release(self) -> None:
        """Give the run back."""
        self._done.set()
        self.path.unlink(missing_ok=True)

    def _renew(self) -> None:
        while not self._done.wait(RENEW_S):
            with contextlib.suppress(OSError):
                os.utime(self.path)


@contextlib.contextmanager
def claim(folder: Path) -> Iterator[Lease | None]:
    """Take a run on, for as long as the context lasts; ``None`` if another process has it.

    Args:
        folder: Of the run; it exists.
    """
    found = _leases(folder)
    if any(map(_alive, found)):
        yield None
        return
    path = folder / f"lease-{max(found.values(), default=-1) + 1}.json"
    holder = _myself()
    temporary = folder / f".claim-{uuid4().hex}"
    temporary.write_text(json.dumps(asdict(holder)), encoding="utf-8")
    try:
        _create(temporary, path)
    except FileExistsError:
        yield None
        return
    finally:
        temporary.unlink(missing_ok=True)
    others = [lease for lease in _leases(folder) if lease != path]
    if any(map(_alive, others)):  # we were slow: others have come, and gone perhaps, and numbers have begun anew
        path.unlink(missing_ok=True)  # two may do so at once: whoever asks next is given the run
        yield None
        return
    for other in others:
        other.unlink(missing_ok=True)
    lease = Lease(path, holder)
    try:
        yield lease
    finally:
        lease.release()


def _create(written: Path, path: Path) -> None:
    """Give a written file the name `path`, unless that is taken.

    Raises:
        FileExistsError: If it is.
    """
    try:
        os.link(written, path)  # appears whole
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        with path.open("x", encoding="utf-8") as file:
            file.write(written.read_text(encoding="utf-8"))


def holder_of(folder: Path) -> Holder | None:
    """Who is doing a run now; ``None`` if nobody is."""
    return next((holder for path in _leases(folder) if (holder := _read(path)) and _alive(path)), None)


def _leases(folder: Path) -> dict[Path, int]:
    """Every lease of a run, with its number, whether its process is alive or not."""
    numbers = {path: path.stem.removeprefix("lease-") for path in folder.glob("lease-*.json")}
    return {path: int(number) for path, number in numbers.items() if number.isdigit()}


def _read(path: Path) -> Holder | None:
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Holder(**json.loads(path.read_text(encoding="utf-8")))
    return None


def _myself() -> Holder:
    """This process, about to do a run."""
    boot = pids = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
    with contextlib.suppress(OSError):
        pids = os.readlink("/proc/self/ns/pid")
    return Holder(platform.node(), os.getpid(), _born(os.getpid()), time.time(), boot=boot, pids=pids)


def _alive(path: Path) -> bool:
    """Whether the process that holds a lease still runs."""
    holder = _read(path)
    if holder is not None and holder.place == _myself().place:
        born = _born(holder.pid)
        if born or holder.born:
            return born == holder.born
    probe = path.with_name(f".clock-{uuid4().hex}")
    now = time.time()
    with contextlib.suppress(OSError):  # where nothing may be written, one can still look
        probe.touch()
        now = probe.stat().st_mtime  # by the file system's clock, which may not be ours
        probe.unlink(missing_ok=True)
    try:
        return now - path.stat().st_mtime < FRESH_S
    except OSError:
        return False


def _born(pid: int) -> int:
    """When a process of this machine began, in clock ticks since the machine did; -1 if there is none, 0 if unknown."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])
    except (FileNotFoundError, ProcessLookupError):  # the latter if it ends meanwhile
        if Path("/proc/self/stat").exists():
            return -1
    if os.name == "nt":  # where signal 0 is Ctrl-C
        return 0
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return -1
    except OSError:
        pass  # it is there, and somebody else's
    return 0
