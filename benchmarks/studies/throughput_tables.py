"""The page and the raw figures of the study of throughput: tables of seconds per step, by workload and arm."""

import contextlib
import statistics
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

from pebench.benchmarks.studies.limits import Limits
from pebench.benchmarks.studies.peers import PACKAGES, PEERS
from pebench.benchmarks.studies.workloads import Workload

HAND, MODULE, PEBENCH = "hand-written", "module in the loop", "pebench"
ARMS = (HAND, MODULE, PEBENCH)
TUNED: dict[str, dict[str, Any]] = {
    "pebench, compiled": {"compile": True},
    "pebench, bf16": {"precision": "bf16-mixed"},
    "pebench, bf16, compiled": {"precision": "bf16-mixed", "compile": True},
}
BEST: dict[str, dict[str, bool]] = {
    "hand-written, compiled": {"compiled": True},
    "hand-written, bf16, compiled": {"half": True, "compiled": True},
    "hand-written, bf16, compiled, captured": {"half": True, "compiled": True, "captured": True},
}
"""The loops of the field at its best, written by hand; the last one for CUDA alone."""
PRODUCTS = ("products, 32 bit", "products, 16 bit")

Seconds = Mapping[str, Sequence[float]]
"""Seconds per step of every arm, by round."""

TUNED_HEADING = (
    "Faster settings, of pebench and of the hand-written loop: how many times as fast as pebench by default, and as "
    "the fastest peer by its defaults:\n\n"
    "| workload | settings | s | pebench / this | fastest peer | fastest peer / this |\n|---|---|---|---|---|---|"
)
FLOOR_HEADING = (
    "The floor: the matrix products of the blocks' linear layers alone, forward and backward, without attention and "
    "all else. No setting of a width makes a step faster than its products; 16 bit helps where its products take less "
    "than those of 32 bit:\n\n"
    "| workload | 32 bit, s | 16 bit, s | 16 bit / 32 bit | 32 bit / pebench | fastest peer / 32 bit |\n"
    "|---|---|---|---|---|---|"
)


def page(top: str, rounds: int, measured: Mapping[Workload, Seconds], limits: Limits, flops: Mapping[str, int]) -> str:
    """Return the page.

    Args:
        top: Title, and the lines on when, on what and by which command it was measured.
        rounds: Rounds that were asked for.
        measured: Seconds of each workload that has a whole round.
        limits: Limits of the device.
        flops: Floating-point operations of a step of each workload, by name.
    """
    tables = (
        (_first_heading(top, rounds), [_row(work, seconds) for work, seconds in measured.items()]),
        (_limits_heading(limits), [_limit_row(work, seconds, limits, flops) for work, seconds in measured.items()]),
        (_peer_heading(), [line for work, seconds in measured.items() for line in _peer_rows(work, seconds)]),
        (TUNED_HEADING, [line for work, seconds in measured.items() for line in tuned_rows(work, seconds)]),
        (FLOOR_HEADING, [line for work, seconds in measured.items() for line in _floor_rows(work, seconds)]),
    )
    return "\n\n".join("\n".join([head, *lines]) for head, lines in tables if lines) + "\n"


def raw(measured: Mapping[Workload, Seconds], limits: Limits, flops: Mapping[str, int]) -> dict[str, Any]:
    """Return the figures behind the page, as JSON holds them; rates are a second."""
    return {
        "limits": {"flops_32_bit": limits.wide, "flops_16_bit": limits.half, "bytes_copied": limits.bandwidth},
        "workloads": {
            work.name: {"steps": work.steps, "flops": flops[work.name], "seconds": {**seconds}}
            for work, seconds in measured.items()
        },
    }


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Return the median of the ratios within each round, with the smallest and the largest."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def _first_heading(top: str, rounds: int) -> str:
    columns = ["workload", "rounds", *(f"{arm}, s" for arm in ARMS), *(f"{arm} / {HAND}" for arm in ARMS[1:])]
    return (
        f"{top}{rounds} rounds were asked for; in each the arms take turns. Seconds per step: median over the rounds. "
        "Ratios: median over the rounds (smallest to largest), each within its round.\n\n"
        f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"
    )


def _row(work: Workload, seconds: Seconds) -> str:
    cells = [work.name, str(len(seconds[HAND])), *(f"{statistics.median(seconds[arm]):.4f}" for arm in ARMS)]
    cells += [ratio(seconds[arm], seconds[HAND]) for arm in ARMS[1:]]
    return f"| {' | '.join(cells)} |"


def _limits_heading(limits: Limits) -> str:
    return (
        f"The device itself, measured: {limits.wide / 1e9:,.0f} GFLOP/s in products of large 32-bit matrices, "
        f"{limits.half / 1e9:,.0f} in 16 bit, {limits.bandwidth / 1e9:,.0f} GB/s read and written by a copy. How much "
        "of the 32-bit rate the steps of the first table reach, counting matrix products alone:\n\n"
        "| workload | GFLOP a step | pebench, GFLOP/s | share | hand-written, share |\n|---|---|---|---|---|"
    )


def _limit_row(work: Workload, seconds: Seconds, limits: Limits, flops: Mapping[str, int]) -> str:
    ours, theirs = (flops[work.name] / statistics.median(seconds[arm]) for arm in (PEBENCH, HAND))
    shares = (f"{100 * rate / limits.wide:.0f} %" for rate in (ours, theirs))
    return f"| {work.name} | {flops[work.name] / 1e9:.2f} | {ours / 1e9:,.0f} | {' | '.join(shares)} |"


def _peers_of(work: Workload, seconds: Seconds) -> list[str]:
    return [arm for arm in seconds if arm in PEERS[work.kind]]


def _fastest_peer(work: Workload, seconds: Seconds) -> str | None:
    return min(_peers_of(work, seconds), key=lambda name: statistics.median(seconds[name]), default=None)


def _peer_heading() -> str:
    versions = []
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions.append(f"{name} {metadata.version(name)}")
    return (
        f"The same sizes in other libraries ({', '.join(versions) or 'none installed'}), their defaults but for "
        "dropout (none), in the hand-written loop; seconds over those of pebench:\n\n"
        "| workload | model | model / pebench |\n|---|---|---|"
    )


def _peer_rows(work: Workload, seconds: Seconds) -> list[str]:
    names = _peers_of(work, seconds)
    return [f"| {work.name} | {name} | {ratio(seconds[name], seconds[PEBENCH])} |" for name in names]


def tuned_rows(work: Workload, seconds: Seconds) -> list[str]:
    """Return a line for each faster setting, beside the fastest of the peers."""
    fastest = _fastest_peer(work, seconds)
    rows = []
    for name in [arm for arm in seconds if arm in {**TUNED, **BEST}]:
        cells = [work.name, name, f"{statistics.median(seconds[name]):.4f}", ratio(seconds[PEBENCH], seconds[name])]
        cells += [fastest or "none installed", ratio(seconds[fastest], seconds[name]) if fastest else "-"]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def _floor_rows(work: Workload, seconds: Seconds) -> list[str]:
    if not all(name in seconds for name in PRODUCTS):
        return []
    fastest = _fastest_peer(work, seconds)
    wide, half = (seconds[name] for name in PRODUCTS)
    cells = [work.name, *(f"{statistics.median(some):.4f}" for some in (wide, half)), ratio(half, wide)]
    cells += [ratio(wide, seconds[PEBENCH]), ratio(seconds[fastest], wide) if fastest else "-"]
    return [f"| {' | '.join(cells)} |"]
