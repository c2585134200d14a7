"""Runs as tasks of a Ray cluster, or of a Ray that is started here. Nothing here imports torch."""

import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import ray

from pebench.config import Options, RunConfig, typed
from pebench.engine.executors import Resources
from pebench.engine.executors.server import data_environment
from pebench.engine.executors.watching import WATCH_S, Backlog, with_threads
from pebench.engine.executors.worker import logged, work
from pebench.engine.observer import Observer
from pebench.errors import UserError, unknown_name

SETTINGS = ("address", "num_cpus", "num_gpus")
"""Names of settings: the cluster's address, as `ray.init` takes it, and what a run gets."""

STOP_S = 10.0
"""Time that cancelled runs have to end, in seconds."""


def check(settings: Mapping[str, str]) -> None:
    """Refuse settings that are none of `SETTINGS`, or no number of processors or GPUs.

    Raises:
        UserError: With those that there are.
    """
    for name, text in settings.items():
        if name not in SETTINGS:
            raise unknown_name("option of --executor ray", name, SETTINGS)
        if name != "address" and typed(name, text, float) < 0:
            raise UserError(f"--executor-option {name} expects a number that is not negative, got {text}.")


def execute(plan: Sequence[RunConfig], options: Options, resources: Resources, observer: Observer) -> None:
    """Make every run of a plan; see `pebench.engine.executors.Executor`."""
    with _connected(resources.settings.get("address")):
        needs = _needs(options, resources.settings)
        # a process per run; one that is lost is this module's to start again, once its lease is free
        task = ray.remote(max_calls=1, max_retries=0, num_cpus=needs["num_cpus"], num_gpus=needs["num_gpus"])(_run)
        options, environment = with_threads(options, needs["num_cpus"]), data_environment()
        backlog, running = Backlog(plan, options, observer), dict[Any, RunConfig]()
        if not _slots(needs):
            observer.note(f"no node of the Ray cluster has {_text(needs)} for a run: waiting for one")
        try:
            while backlog or running:
                # Twice as many as fit: those that wait in Ray's queue start at once when a node is free, not at the
                # next look.
                for config in backlog.take((resources.jobs or 2 * _slots(needs) or 1) - len(running)):
                    running[task.remote(config, options, environment)] = config
                for reference in _ended(list(running)):
                    backlog.ended(running.pop(reference), _loss(reference))
                late = backlog.watch(running.values())
                for reference in [reference for reference, config in running.items() if config in late]:
                    ray.cancel(reference, force=True)  # it hangs: nobody waits for its answer
                    backlog.ended(running.pop(reference), "it did not end")
        finally:
            _cancel(list(running))


def _run(config: RunConfig, options: Options, environment: Mapping[str, str]) -> bool:
    """Make a run, in its task; return False if another process is making it.

    Ray starts workers with the environment of their node, so that of this process comes along.
    """
    os.environ |= environment
    with logged(options.out / config.directory):
        return work(config, options)


@contextlib.contextmanager
def _connected(address: str | None) -> Iterator[None]:
    """Connect to a cluster, unless this process is connected to one.

    Raises:
        UserError: If it does not answer.
    """
    if ray.is_initialized():
        yield
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # else Ray reports to its makers
    handler = signal.getsignal(signal.SIGTERM)
    address = address or os.environ.get("RAY_ADDRESS")
    try:
        host, _, port = (address or "").rpartition(":")
        if port.isdecimal():  # ray.init tries for a quarter of an hour
            socket.create_connection((host.removeprefix("ray://"), int(port)), timeout=10).close()
        # Output of the workers is in the logs of their runs, and would break up the display here.
        ray.init(address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(f"no connection to Ray: {str(error).strip().splitlines()[0]}") from error
    signal.signal(signal.SIGTERM, handler)  # ray.init takes it, and would not end as on Ctrl-C
    try:
        yield
    finally:
        ray.shutdown()


def _needs(options: Options, settings: Mapping[str, str]) -> dict[str, float]:
    """Return the processors and GPUs that Ray sets aside for a run."""
    # By the cluster's cards, not this machine's: the head node often has none.
    cards = options.device in ("auto", "cuda") and ray.cluster_resources().get("GPU", 0) > 0
    defaults = {"num_cpus": (options.threads or 1) * options.devices, "num_gpus": options.devices if cards else 0}
    return {name: typed(name, settings.get(name, value), float) for name, value in defaults.items()}


def _text(needs: Mapping[str, float]) -> str:
    return f"{needs['num_cpus']:g} CPUs and {needs['num_gpus']:g} GPUs"


def _slots(needs: Mapping[str, float]) -> int:
    """Return how many runs fit on the nodes that are there now."""
    sizes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    wanted = [(needs["num_cpus"], "CPU"), (needs["num_gpus"], "GPU")]
    slots = 0
    for size in sizes:
        # A node takes as many runs as the scarcer of its two resources allows.
        slots += min((int(size.get(name, 0) / number) for number, name in wanted if number), default=1)
    return slots


def _ended(references: list[Any]) -> list[Any]:
    """Return the tasks that have ended; wait for one, not for long."""
    if not references:
        time.sleep(WATCH_S)  # other processes make the rest
        return []
    # Returns with the first that has ended; the second call finds all, and does not wait.
    ray.wait(references, timeout=WATCH_S)
    return ray.wait(references, num_returns=len(references), timeout=0)[0]


def _loss(reference: Any) -> str:
    """Return why an ended task may have left no record; empty if another process is making its run."""
    try:
        return "its task ended without a record" if ray.get(reference) else ""
    except ray.exceptions.RayError as error:
        return f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"


def _cancel(references: list[Any]) -> None:
    """End tasks, waiting or running."""
    for reference in references:
        ray.cancel(reference, force=True)
    if references:
        ray.wait(references, num_returns=len(references), timeout=STOP_S)
