"""Predictions on new data: train with weights kept, load them, and name the digits of images that no split has."""

import tempfile
from pathlib import Path

import torch

import pebench
from pebench.training.weights import load_weights


def predict(run: Path, images: torch.Tensor) -> torch.Tensor:
    """Return the classes (count,) of images, bytes (count, channels, side, side), by the weights in a run's folder."""
    model = load_weights(run)
    data = pebench.datamodule("vit-digits")
    data.model_arguments()  # prepares it: images are normalised by mean and deviation of those in training
    inputs, _ = data.on_after_batch_transfer((images, torch.zeros(len(images))), 0)
    with torch.inference_mode():
        return model(inputs).argmax(dim=1)


def main(out: Path, max_steps: int = 400) -> tuple[float, float]:
    """Return the accuracy on the test images, as recorded, and on the same images moved by a pixel, which are new."""
    settings = {"train.max_steps": max_steps}
    results = pebench.run("vit-digits", ["rope"], 1, settings=settings, out=out, keep_weights=True)
    (record,) = results.records
    data = pebench.datamodule("vit-digits")
    data.model_arguments()
    images, labels = data.prepared.tensors["test_images"], data.prepared.tensors["test_labels"]
    found = predict(out / record.config.directory, images.roll(1, dims=-1))
    return record.metrics["test/accuracy"], float((found == labels).float().mean())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        usual, moved = main(Path(folder))
    print(f"{100 * usual:.1f} % of the test digits, {100 * moved:.1f} % of them moved by a pixel")
