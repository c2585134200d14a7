"""Measure how long data of a user's own take to be prepared, and how much memory: on texts and images made here.

Run it as ``python -m benchmarks.studies.own_data``. Processor seconds, not those of a clock, as other work may share
the machine.
"""

import csv
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

TEXTS, IMAGES, MANY = 10_000, 20_000, 1_000_000

CHILD = """
import os, resource, time
import pebench
from pebench.engine.observer import Observer

class First(Observer):
    def progress(self, config, step, metrics):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{{time.process_time():.1f}} s of the processor to the first step, {{peak:.2f}} GiB at most", flush=True)
        os._exit(0)

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


def measured(kind: str, path: Path) -> str:
    """Return the processor time and the memory of a fresh process up to the first step of training on data."""
    command = [sys.executable, "-c", CHILD.format(task=f"{kind}(path={str(path)!r})")]
    environment = {**os.environ, "PEBENCH_CACHE_DIR": str(path.parent)}
    done = subprocess.run(command, env=environment, cwd=path.parent, capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def main() -> None:
    """Make the data, and print what each takes."""
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        write_texts(home / "texts.csv", TEXTS, 60)
        print(f"{TEXTS:,} texts: {measured('texts', home / 'texts.csv')}", flush=True)
        write_images(home / "images", IMAGES)
        for turn in ("prepared", "again, prepared before"):
            print(f"{IMAGES:,} images, {turn}: {measured('images', home / 'images')}", flush=True)
        write_texts(home / "many.csv", MANY, 12)
        print(f"{MANY:,} short texts: {measured('texts', home / 'many.csv')}", flush=True)


if __name__ == "__main__":
    main()
