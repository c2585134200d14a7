"""pebench without its runner: your own `lightning.Trainer`, and an encoding of your own in a few lines."""

import lightning
import torch

from pebench import PositionalEncoding, ViT, datamodule


class RowEncoding(PositionalEncoding):
    """Tells a patch which row of the image it is in: a fixed random vector per row, added to the input."""

    def prepare(self, positions: torch.Tensor) -> torch.Tensor:
        """Vectors for `positions` (L, P): (L, D)."""
        table = torch.randn(100, self.spec.d_model, generator=torch.Generator().manual_seed(0))
        return table.to(positions.device)[positions[:, 0].long()]

    def embed(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Content plus the row's vector."""
        return x + state


def main(max_steps: int = 200) -> dict[str, float]:
    """Train two encodings and return their test accuracies."""
    data = datamodule("vit-digits", batch_size=64)
    accuracies = {}
    for encoding in ("rope", RowEncoding):
        model = ViT(encoding, **data.model_arguments(), d_model=32, num_layers=2, num_heads=2, learning_rate=3e-3)
        trainer = lightning.Trainer(
            max_steps=max_steps, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
        )
        trainer.fit(model, data)
        trainer.test(model, data, verbose=False)
        name = encoding if isinstance(encoding, str) else encoding.__name__
        accuracies[name] = float(trainer.callback_metrics["test/accuracy"])
    return accuracies


if __name__ == "__main__":
    for name, accuracy in main().items():
        print(f"{name}: {100 * accuracy:.1f} % of the test digits")
