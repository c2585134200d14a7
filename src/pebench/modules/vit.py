"""Image classification by a transformer over patches."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.nn import functional as F
from torchmetrics import MeanMetric
from torchmetrics.classification import MulticlassAccuracy

from pebench.encodings.base import EncodingLike
from pebench.models.layers import Linear, PatchEmbedding
from pebench.modules.base import SequenceModule, masked_mean


class ViT(SequenceModule):
    """Vision transformer on square patches, bidirectional, classified from the mean of its tokens.

    A batch is a pair: images (B, channels, image_size, image_size), floats of about zero mean and unit
    variance, and labels (B,).

    Args:
        encoding: Name of a positional encoding, or a class that takes a spec and options.
        encoding_args: Options of the encoding.
        image_size: Side of the image in pixels.
        patch_size: Side of a patch in pixels; must divide ``image_size``.
        channels: Colours.
        num_classes: Classes.
        d_model: See `SequenceModule`, as for all that follow.
        num_layers: Number of blocks.
        num_heads: Attention heads.
        d_ff: Width of the feed-forward layer.
        dropout: Probability of dropping a channel.
        learning_rate: Peak learning rate.
        weight_decay: Of weight matrices.
        warmup: Share of the steps.
        seed: Decides the value of every parameter.

    Raises:
        ValueError: If the patches do not tile the image.
    """

    def __init__(
        self,
        encoding: EncodingLike = "add",
        encoding_args: Mapping[str, Any] | None = None,
        *,
        image_size: int = 32,
        patch_size: int = 4,
        channels: int = 3,
        num_classes: int = 10,
        d_model: int = 192,
        num_layers: int = 6,
        num_heads: int = 3,
        d_ff: int | None = None,
        dropout: float = 0.0,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.05,
        warmup: float = 0.1,
        seed: int = 0,
    ) -> None:
        if image_size % patch_size:
            raise ValueError(f"patch_size must divide the image's side {image_size}, got {patch_size}")
        side = image_size // patch_size
        super().__init__(
            encoding=encoding, encoding_args=encoding_args, extent=(side, side), causal=False,
            d_model=d_model, num_layers=num_layers, num_heads=num_heads, d_ff=d_ff, dropout=dropout,
            learning_rate=learning_rate, weight_decay=weight_decay, warmup=warmup, seed=seed,
        )  # fmt: skip
        self.image_size = image_size
        self.input = PatchEmbedding(patch_size, channels, self.trunk.encoding.content_width)
        self.head = Linear(d_model, num_classes, gain=0.0)
        self.finish({
            "loss": MeanMetric(nan_strategy="error"),
            "accuracy": MulticlassAccuracy(num_classes, average="micro", validate_args=False),
        })  # fmt: skip

    def forward(self, images: Tensor, positions: Tensor | None = None) -> Tensor:
        """Class logits (B, num_classes) of images; `positions` (L, 2) stands in for the trained grid."""
        if positions is None and images.shape[-2:] != (self.image_size, self.image_size):
            raise ValueError(
                f"expected images of side {self.image_size}, got {tuple(images.shape[-2:])}; "
                "for another size pass the positions of its patches"
            )
        logits: Tensor = self.head(masked_mean(self.trunk(self.input(images), positions), None))
        return logits

    def loss(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """Cross-entropy in nats per image."""
        images, labels = batch
        return F.cross_entropy(self(images).float(), labels)

    def update(self, batch: tuple[Tensor, Tensor], stage: str) -> None:
        """Count loss and accuracy."""
        images, labels = batch
        logits = self(images).float()
        self.metric(f"{stage}/loss").update(F.cross_entropy(logits, labels), weight=len(labels))
        self.metric(f"{stage}/accuracy").update(logits, labels)
