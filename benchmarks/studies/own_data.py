"""Measure how long data of a user's own take to be prepared, and how much memory: on texts and images made here.

Processor seconds, not those of a clock, as other work may share the machine.
    python -m benchmarks.studies.own_data --output results/studies/own_data.md
"""

import argparse
import csv
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from pebench.benchmarks.studies.pages import circumstances, report_progress, write_page

TEXTS, IMAGES, MANY = 10_000, 20_000, 1_000_000

CHILD = """
import os, resource, signal, time
import pebench
from pebench.engine.observer import Observer

class First(Observer):
    def progress(self, config, step, metrics):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(time.process_time(), peak, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)  # nothing after the first step is measured

pebench.run({task!r}, ["add"], seeds=1, tier="smoke", device="cpu", threads=1, executor="sequential", observer=First())
"""


def write_texts(path: Path, count: int, words: int) -> None:
    """Write labelled texts of a small vocabulary, all different."""
    noise, known = random.Random(0), [f"word{index}" for index in range(5000)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["text", "label"])
        for index in range(count):
            writer.writerow([" ".join([str(index), *noise.choices(known, k=noise.randint(2, words))]), index % 4])


def write_images(folder: Path, count: int) -> None:
    """Write PNG files of 32x32 pixels in ten classes."""
    from PIL import Image

    noise = np.random.default_rng(0)
    for label in range(10):
        (folder / str(label)).mkdir(parents=True)
    for index in range(count):
        pixels = noise.integers(0, 256, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / str(index % 10) / f"{index}.png")


def measured(kind: str, path: Path) -> tuple[float, float]:
    """Return the processor's seconds and the GiB of a fresh process up to the first step of training on data."""
    command = [sys.executable, "-c", CHILD.format(task=f"{kind}(path={str(path)!r})")]
    environment = {**os.environ, "PEBENCH_CACHE_DIR": str(path.parent)}
    done = subprocess.run(command, env=environment, cwd=path.parent, capture_output=True, text=True)
    if not done.stdout.strip():
        raise RuntimeError(f"{kind} did not get to its first step: {done.stderr}")
    seconds, peak = done.stdout.strip().splitlines()[-1].split()
    return float(seconds), float(peak)


def pages(arguments: Sequence[str]) -> Iterator[str]:
    """Yield the page after each measurement."""
    text = (
        "# Data of one's own up to the first step of training\n\n"
        f"{circumstances('own_data', arguments, torch.device('cpu'), threads=1)}"
        "A fresh process each, with all imports. Texts have up to 60 words, the many short ones up to 12; images have "
        "32 x 32 pixels in colour, as PNG.\n\n| Data | Processor, s | Memory at most, GiB |\n|---|---|---|\n"
    )
    with tempfile.TemporaryDirectory() as temporary:
        for title, kind, path in _cases(Path(temporary)):
            seconds, peak = measured(kind, path)
            text += f"| {title} | {seconds:.1f} | {peak:.2f} |\n"
            report_progress(f"{title}: {seconds:.1f} s, {peak:.2f} GiB")
            yield text


def _cases(home: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield a title, a kind of task and a path for each measurement; the data are made just before."""
    write_texts(home / "texts.csv", TEXTS, 60)
    yield f"{TEXTS:,} texts, CSV", "texts", home / "texts.csv"
    write_images(home / "images", IMAGES)
    yield f"{IMAGES:,} images", "images", home / "images"
    yield f"{IMAGES:,} images, prepared before", "images", home / "images"
    write_texts(home / "many.csv", MANY, 12)
    yield f"{MANY:,} short texts, CSV", "texts", home / "many.csv"


def main(arguments: Sequence[str]) -> int:
    """Make the data, and measure what each takes."""
    parser = argparse.ArgumentParser(description="Measure how long data of a user's own take to be prepared.")
    parser.add_argument("--output", type=Path, metavar="FILE", help="Markdown file for the page")
    return write_page(pages(arguments), parser.parse_args(arguments).output)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
