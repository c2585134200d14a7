"""``pebench tensorboard``: TensorBoard over an output folder, with bands over seeds."""

import argparse
import ipaddress
import sys
import threading
from pathlib import Path

from pebench.errors import UserError


def tensorboard_command(options: argparse.Namespace) -> int:
    """Serve the curves of an output folder until Ctrl-C."""
    _check_address(options)
    out: Path = options.out
    kinds = ("events.out.tfevents.*", "record.json")  # of records alone, as merge lays them out, there are bands
    if not out.is_dir() or all(next(out.glob(f"*/*/*/{name}"), None) is None for name in kinds):
        what = "has no runs in it" if out.is_dir() else "is no folder"
        raise UserError(f"expected an output folder with runs, but {str(out)!r} {what}. See: pebench run --help")
    from pebench.results.bands import write_bands
    from pebench.runs.records import read_records

    if next(out.glob("*/*/*/record.json"), None):  # else the first runs are still at it
        write_bands(out, read_records(out))
    address = _serve(options)
    try:
        print(f"TensorBoard of {out}: {address} (Ctrl-C ends it)", flush=True)
        threading.Event().wait()  # for ever: TensorBoard serves in a thread
    except KeyboardInterrupt:
        sys.stdout.write("\n")
    return 0


def _check_address(options: argparse.Namespace) -> None:
    """Refuse an address that other machines can reach, unless that is asked for: TensorBoard has no password.

    Raises:
        UserError: For such a host, or an impossible port.
    """
    try:
        loopback = options.host == "localhost" or ipaddress.ip_address(options.host).is_loopback
    except ValueError:  # some name
        loopback = False
    if not loopback and not options.public:
        raise UserError(
            f"--host {options.host} lets everyone in who reaches this machine; TensorBoard asks for no password. "
            "Add --public if that is what you want, or leave --host out and use an SSH tunnel."
        )
    if not 0 <= options.port <= 65535:
        raise UserError(f"--port must be from 0 (any that is free) to 65535, got {options.port}.")


def _serve(options: argparse.Namespace) -> str:
    """Start TensorBoard in a thread and return its address."""
    from tensorboard import program

    server = program.TensorBoard()
    address = ["--host", options.host, "--port", str(options.port)]
    server.configure(argv=["", "--logdir", str(options.out), *address, "--load_fast", "false"])  # no second process
    try:
        return str(server.launch())
    except program.TensorBoardServerException as error:
        raise UserError(f"TensorBoard cannot start: {error.msg} Another --port may be free.") from error
