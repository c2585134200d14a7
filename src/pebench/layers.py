"""Layers with the initialisation of the protocol."""

import torch
from torch import Tensor, nn

from pebench.seeding import stream


def initialise(model: nn.Module, seed: int) -> None:
    """Draw every parameter from a random stream of its module's own, named after it.

    Two models with the same seed then agree on every parameter that they share by name and shape, and
    an encoding with parameters of its own does not shift the rest. PyTorch's generator is left as it was.

    Args:
        model: Every module in it that owns parameters must have ``reset_parameters``.
        seed: The run's seed.

    Raises:
        TypeError: Where a module owns parameters that it cannot draw.
    """
    if problem := undrawable(model):
        raise TypeError(f"{type(model).__name__} {problem}")
    with torch.random.fork_rng(devices=[]):
        for name, module in model.named_modules():
            if _owns(module):
                torch.default_generator.manual_seed(stream(seed, name))  # manual_seed would reach CUDA too
                module.reset_parameters()


def undrawable(model: nn.Module) -> str:
    """Return a sentence about the module that owns parameters but cannot draw them; empty if there is none."""
    for name, module in model.named_modules():
        if _owns(module) and not callable(getattr(module, "reset_parameters", None)):
            part = f"has a {type(module).__name__}, {name}, which " if name else ""
            return f"{part}owns parameters and needs a method reset_parameters that draws them"
    return ""


def _owns(module: nn.Module) -> bool:
    return next(module.parameters(recurse=False), None) is not None


class Linear(nn.Linear):
    """A linear layer that keeps the root mean square of its input at initialisation, times `gain`.

    Args:
        in_features: Width of the input.
        out_features: Width of the output.
        gain: 1 keeps the scale, 0 starts the layer at zero.
        shift: Largest bias at initialisation, for networks of few numbers: without one all their kinks lie at zero.
    """

    def __init__(self, in_features: int, out_features: int, gain: float = 1.0, shift: float = 0.0) -> None:
        self.gain, self.shift = gain, shift
        super().__init__(in_features, out_features)

    def reset_parameters(self) -> None:
        """Draw the weight from N(0, gain² / in_features), and the bias from U(-shift, shift)."""
        if not self.weight.is_meta:  # which has no numbers to draw
            nn.init.normal_(self.weight, std=self.gain * self.in_features**-0.5)
            nn.init.uniform_(self.bias, -self.shift, self.shift)


class TokenEmbedding(nn.Module):
    """Token ids to vectors of root mean square `scale`.

    The table is stored as N(0, scale²/pace²) and multiplied by the pace on use, by default sqrt(width), as in Vaswani
    et al. 2017, section 3.4: under Adam a table of unit scale would hardly move.

    Args:
        vocab_size: Number of tokens.
        width: Channels of the output.
        pace: How many times as fast as other weights the output moves under Adam; ``None`` takes sqrt(width).
        scale: Root mean square of the output at the start; ``None`` is 1.

    Shape:
        (B, L) integers to (B, L, width).
    """

    def __init__(self, vocab_size: int, width: int, pace: float | None = None, scale: float | None = None) -> None:
        super().__init__()
        self.pace, self.scale = width**0.5 if pace is None else pace, 1.0 if scale is None else scale
        # two formulas: published runs depend on the last bit
        self.spread = self.scale * (width**-0.5 if pace is None else 1 / pace)
        self.table = nn.Parameter(torch.empty(vocab_size, width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the table from N(0, scale²/pace²)."""
        if not self.table.is_meta:  # which has no numbers to draw
            nn.init.normal_(self.table, std=self.spread)

    def forward(self, tokens: Tensor) -> Tensor:
        """Look the tokens up."""
        return nn.functional.embedding(tokens, self.table) * self.pace


class SegmentedEmbedding(TokenEmbedding):
    """Token ids to vectors, with a learned vector for each of the two texts of a pair.

    The first text ends with the first separator, which is of it; all tokens after are of the second. Segments' vectors
    start, move and decay as those of tokens do.

    Args:
        vocab_size: Number of tokens.
        width: Channels of the output.
        segments: ``sum`` adds the segment's vector to the token's, as Devlin et al. 2019, section 3, do. ``concat``
            gives it the last eighth of the channels, and the token's vector the others.
        separator: Token that ends the first text.
        pace: How many times as fast as other weights the output moves under Adam; ``None`` takes the square root of
            each table's width.

    Shape:
        (B, L) integers to (B, L, width).

    Raises:
        ValueError: If there is no channel for segments or tokens.
    """

    def __init__(self, vocab_size: int, width: int, segments: str, separator: int, pace: float | None = None) -> None:
        apart = segments == "concat"
        own = max(1, width // 8) if apart else width
        if apart and own == width:
            raise ValueError("model.segments=concat needs two channels of content or more, got 1")
        super().__init__(vocab_size, width - own if apart else width, pace)
        self.apart, self.separator = apart, separator
        self.segment = TokenEmbedding(2, own, pace)

    def forward(self, tokens: Tensor) -> Tensor:
        """Look up the tokens and their segments."""
        ends = (tokens == self.separator).long()
        before = ends.cumsum(dim=1) - ends  # (B, L): separators before each token
        content, segment = super().forward(tokens), self.segment(before.clamp(max=1))
        return torch.cat((content, segment), dim=-1) if self.apart else content + segment


def tied_logits(x: Tensor, table: Tensor) -> Tensor:
    """Return the logits of an output layer that is the token table: (B, L, D) to (B, L, vocab_size).

    Args:
        x: (B, L, D), of which the first channels are read, as many as the table is wide: content stands there.
        table: (vocab_size, width), as `TokenEmbedding` stores it.
    """
    return nn.functional.linear(x[..., : table.shape[1]], table)


class PatchEmbedding(nn.Module):
    """Square patches of an image to vectors, of root mean square 1 where the pixels' is 1.

    Args:
        patch_size: Side of a patch in pixels; must divide the image's.
        channels: Colours.
        width: Channels of the output.

    Shape:
        (B, channels, height, width) to (B, L, width), patches in row-major order.
    """

    def __init__(self, patch_size: int, channels: int, width: int) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.linear = Linear(channels * patch_size**2, width)

    def forward(self, images: Tensor) -> Tensor:
        """Cut into patches and embed each.

        Raises:
            ValueError: For images without an axis of the batch, or of other channels.
        """
        channels = self.linear.in_features // self.patch_size**2
        if images.ndim != 4 or images.shape[1] != channels:
            raise ValueError(f"expected images (B, {channels}, height, width), got {tuple(images.shape)}")
        patches = nn.functional.pixel_unshuffle(images, self.patch_size)
        if patches.is_floating_point():  # data make 32-bit images, whatever a Trainer makes of the model
            patches = patches.to(self.linear.weight.dtype)
        # (B, C·patch², rows, columns) to (B, C·patch², L) to (B, L, C·patch²)
        embedded: Tensor = self.linear(patches.flatten(2).transpose(1, 2))
        return embedded
