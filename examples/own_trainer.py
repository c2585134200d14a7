"""pebench without its runner: your own `lightning.Trainer`, and an encoding of your own in a few lines."""

import lightning
import torch

from pebench import PositionalEncoding, ViT, datamodule


class CosineEncoding(PositionalEncoding):
    """Random Fourier features: cosines of random projections of the position, added to the input."""

    def prepare(self, positions: torch.Tensor) -> torch.Tensor:
        """Features of `positions` (L, P): (L, D), of root mean square 1."""
        draw = torch.Generator().manual_seed(0)
        directions = torch.randn(self.spec.num_axes, self.spec.d_model, generator=draw).to(positions.device)
        phases = 2 * torch.pi * torch.rand(self.spec.d_model, generator=draw).to(positions.device)
        angles = (positions.unsqueeze(-1) * directions).sum(1)  # `@` would round them under autocast
        return 2**0.5 * torch.cos(angles + phases)

    def embed(self, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """Content (B, L, D) plus position, in the content's type."""
        return x + state.to(x.dtype)


def main(max_steps: int = 200) -> dict[str, float]:
    """Train two encodings and return their test accuracies."""
    data = datamodule("vit-digits", batch_size=64)
    accuracies = {}
    for encoding in ("rope", CosineEncoding):
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
