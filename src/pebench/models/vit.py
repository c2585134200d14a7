"""Image classification by a transformer over patches."""

from collections.abc import Mapping
from typing import Any, Unpack

from torch import Tensor

from pebench.encodings.build import EncodingLike
from pebench.layers import Linear, PatchEmbedding
from pebench.models.base import Classifier, TrunkOptions, masked_mean


class ViT(Classifier):
    """Vision transformer on square patches, bidirectional, classified from the mean of its tokens.

    A batch is a pair: images (B, channels, height, width), floats of about zero mean and unit variance, and labels
    (B,).

    Args:
        encoding: Name of a positional encoding, or a class that takes a spec and options.
        encoding_args: Options of the encoding.
        image_size: Side of the image in pixels, or its height and width.
        patch_size: Side of a patch in pixels; must divide the image's sides.
        channels: Colours.
        num_classes: Classes.
        options: Size, learning rate and seed; see `SequenceModule`.

    Raises:
        UserError: For an unknown name of an encoding.
        ValueError: If the sizes make no model, the encoding cannot serve it, or the patches do not tile the image.
    """

    def __init__(
        self,
        encoding: EncodingLike = "add",
        encoding_args: Mapping[str, Any] | None = None,
        *,
        image_size: int | tuple[int, int] = 32,
        patch_size: int = 4,
        channels: int = 3,
        num_classes: int = 10,
        **options: Unpack[TrunkOptions],
    ) -> None:
        height, width = (image_size, image_size) if isinstance(image_size, int) else image_size
        if patch_size < 1 or height % patch_size or width % patch_size:
            raise ValueError(f"patch_size must be positive and divide the image's side {image_size}, got {patch_size}")
        extent = height // patch_size, width // patch_size
        super().__init__(encoding, encoding_args, extent=extent, causal=False, **options)
        self.image_size, self.sides = image_size, (height, width)
        self.input = PatchEmbedding(patch_size, channels, self.trunk.encoding.content_width)
        # From zero: with every encoding training begins at the loss of a uniform guess, log(num_classes).
        self.head = Linear(self.trunk.d_model, num_classes, gain=0.0)
        self.finish_classes(num_classes)

    def _positions(self, images: Tensor) -> Tensor:
        """Return the positions (L, 2) of the patches of images of another size."""
        patch = self.input.patch_size
        rows, columns = images.shape[-2] // patch, images.shape[-1] // patch
        if (rows * patch, columns * patch) != images.shape[-2:]:
            raise ValueError(f"expected images that patches of side {patch} tile, got {tuple(images.shape[-2:])}")
        # From the cache: what an encoding prepared is kept as long as it is given the same tensor.
        return self.trunk.cache.grid((rows, columns), images.device)

    def forward(self, images: Tensor, positions: Tensor | None = None) -> Tensor:
        """Return the class logits (B, num_classes) of images of any size that patches tile.

        Args:
            images: (B, channels, height, width).
            positions: (L, 2), or (B, L, 2) with each image's own; by default the row and the column of each patch,
                from 0.
        """
        if positions is None and tuple(images.shape[-2:]) != self.sides:
            positions = self._positions(images)
        logits: Tensor = self.head(masked_mean(self.trunk(self.input(images), positions), None))
        return logits
