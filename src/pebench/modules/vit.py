"""Image classification by a transformer over patches."""

from collections.abc import Mapping
from typing import Any, Unpack

from torch import Tensor

from pebench.encodings.base import EncodingLike
from pebench.layers import Linear, PatchEmbedding
from pebench.modules.base import Classifier, TrunkOptions, masked_mean


class ViT(Classifier):
    """Vision transformer on square patches, bidirectional, classified from the mean of its tokens.

    A batch is a pair: images (B, channels, image_size, image_size), floats of about zero mean and unit
    variance, and labels (B,).

    Args:
        encoding: Name of a positional encoding, or a class that takes a spec and options.
        encoding_args: TrunkOptions of the encoding.
        image_size: Side of the image in pixels.
        patch_size: Side of a patch in pixels; must divide ``image_size``.
        channels: Colours.
        num_classes: Classes.
        options: Size, learning rate and seed; see `SequenceModule`.

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
        **options: Unpack[TrunkOptions],
    ) -> None:
        if image_size % patch_size:
            raise ValueError(f"patch_size must divide the image's side {image_size}, got {patch_size}")
        side = image_size // patch_size
        super().__init__(encoding, encoding_args, extent=(side, side), causal=False, **options)
        self.image_size = image_size
        self.input = PatchEmbedding(patch_size, channels, self.trunk.encoding.content_width)
        self.head = Linear(self.trunk.d_model, num_classes, gain=0.0)
        self.finish_classes(num_classes)

    def forward(self, images: Tensor, positions: Tensor | None = None) -> Tensor:
        """Class logits (B, num_classes) of images; `positions` (L, 2) stands in for the trained grid."""
        if positions is None and images.shape[-2:] != (self.image_size, self.image_size):
            raise ValueError(
                f"expected images of side {self.image_size}, got {tuple(images.shape[-2:])}; "
                "for another size pass the positions of its patches"
            )
        logits: Tensor = self.head(masked_mean(self.trunk(self.input(images), positions), None))
        return logits
