"""How much slower is a training step of pebench than a hand-written PyTorch loop of the same model?

Arms take turns on synthetic data, so that a busy machine slows all of them alike:
1. hand-written: the model and the loop of this file, which owe nothing to pebench or Lightning;
2. module in the loop: pebench's module in that loop, which is what the model costs;
3. pebench: the module under the runner's Trainer, callbacks and logger, which adds what Lightning costs;
4. with --tuned, pebench in 16 bit, and compiled too, and the floor: the linear layers' matrix products alone;
5. with --peers, other libraries' models of the same sizes.

Equal parameter counts and, after copying the weights, equal logits prove first that both models are one.
Augmentation, validation and checkpoints are not timed. On a machine that does nothing else, run
    python benchmarks/studies/throughput.py --threads 2 --tuned --peers --output throughput.md
and, for memory, the same with --memory.
"""

import argparse
import contextlib
import functools
import importlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, TensorDataset

from pebench.config import Options, RunConfig, TrainConfig
from pebench.data.base import loader
from pebench.data.batches import Batches, Windows
from pebench.models import LanguageModel, TextClassifier, ViT
from pebench.models.base import SequenceModule
from pebench.models.counting import count_parameters
from pebench.tasks import find_task
from pebench.training import environment
from pebench.training.callbacks import Curve, FiniteLoss, StepSeed, Stopwatch
from pebench.training.tensorboard import RunLogger
from pebench.training.trainer import best_checkpoint, make_trainer

from lightning.pytorch import Callback, LightningModule, Trainer  # isort: skip  # after pebench, which guards it

PEER_PACKAGES = ("timm", "transformers", "vit-pytorch", "x-transformers")
WARM_UP = 2  # steps at the start of a block that are not timed
CUDA_STEPS = 200  # timed steps of a block on a GPU
RUN_STEPS = 1000  # of the run that a block begins: long enough to log every 50 steps, as real runs do
CHANNELS, PATCH = 3, 4
Tensors = tuple[Tensor, ...]
TASKS = {"image": "vit-cifar10", "text": "text-imdb", "lm": "lm-shakespeare"}
ARMS = ("hand-written", "module in the loop", "pebench")
TUNED: dict[str, dict[str, Any]] = {
    "pebench, compiled": {"compile": True},
    "pebench, bf16": {"precision": "bf16-mixed"},
    "pebench, bf16, compiled": {"precision": "bf16-mixed", "compile": True},
}
PRODUCTS = {"products, 32 bit": torch.float32, "products, 16 bit": torch.bfloat16}
MEMORY_STEPS = 2  # timed steps of a process that is there to tell its memory


@dataclass(frozen=True)
class Workload:
    """A model, its input and the length of a block."""

    name: str
    kind: str  # "image": a classifier of images; "text": one of padded texts; "lm": a causal language model
    depth: int
    width: int
    heads: int
    batch: int
    size: int  # length in tokens, or the image's side in pixels
    outputs: int  # the language model's vocabulary, or classes
    steps: int  # timed steps of a block on a CPU
    words: int = 0  # vocabulary of the padded texts

    @property
    def vocabulary(self) -> int:
        """Tokens there are."""
        return self.words or self.outputs


WORKLOADS = (
    Workload("W1", "image", depth=6, width=192, heads=3, batch=128, size=32, outputs=10, steps=4),
    Workload("W1s", "image", depth=4, width=96, heads=3, batch=128, size=32, outputs=10, steps=16),
    Workload("W2", "lm", depth=6, width=384, heads=6, batch=8, size=256, outputs=65, steps=4),
    Workload("W2c", "lm", depth=4, width=128, heads=4, batch=12, size=64, outputs=65, steps=100),
    Workload("W3", "text", depth=4, width=128, heads=4, batch=64, size=128, outputs=2, steps=8, words=16_384),
)


class PlainBlock(nn.Module):
    """Pre-norm attention and feed-forward layer."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm1, self.qkv, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """(B, L, D) to (B, L, D)."""
        batch, length, width = x.shape
        parts = self.qkv(self.norm1(x)).split(width, dim=2)
        q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2) for part in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=self.causal)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class PlainTransformer(nn.Module):
    """The model written by hand: embedding, added sinusoid, blocks, norm, output layer."""

    def __init__(self, work: Workload) -> None:
        super().__init__()
        self.work = work
        causal, side, half = work.kind == "lm", work.size // PATCH, work.width // 2
        self.blocks = nn.ModuleList(PlainBlock(work.width, work.heads, causal) for _ in range(work.depth))
        self.norm = nn.LayerNorm(work.width)
        image = work.kind == "image"
        self.input = nn.Linear(CHANNELS * PATCH**2, work.width) if image else nn.Embedding(work.vocabulary, work.width)
        self.head = nn.Linear(work.width, work.outputs)
        index = torch.arange(side**2 if image else work.size)
        grid = torch.cat((sinusoid(index // side, half), sinusoid(index % side, half)), dim=1)
        self.register_buffer("position", grid if image else sinusoid(index, work.width))

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """Tokens (B, L) to logits (B, L, V); images (B, C, S, S), or tokens with lengths (B,), to logits (B, V)."""
        valid = None if lengths is None else valid_tokens(x, lengths)
        x = self.input(F.unfold(x, PATCH, stride=PATCH).transpose(1, 2) if self.work.kind == "image" else x)
        x = x + self.position
        for block in self.blocks:
            x = block(x, None if valid is None else valid[:, None, None, :])
        x = self.norm(x)
        return self.head(x if self.work.kind == "lm" else mean_of(x, valid))

    def loss(self, batch: Tensors) -> Tensor:
        """Mean cross-entropy."""
        return F.cross_entropy(self(*batch[:-1]).flatten(0, -2), batch[-1].flatten())


def valid_tokens(tokens: Tensor, lengths: Tensor) -> Tensor:
    """(B, L): False at padding."""
    return torch.arange(tokens.shape[1], device=tokens.device) < lengths[:, None]


def mean_of(x: Tensor, valid: Tensor | None) -> Tensor:
    """(B, L, D) to (B, D), without what is padding."""
    if valid is None:
        return x.mean(dim=1)
    weights = valid.unsqueeze(-1).to(x.dtype)
    return (x * weights).sum(dim=1) / weights.sum(dim=1)


def sinusoid(at: Tensor, width: int) -> Tensor:
    """(L,) to (L, width): sine and cosine side by side, of root mean square 1."""
    angles = at[:, None] * 10000.0 ** (-torch.arange(0, width, 2, dtype=torch.float64) / width)
    return (2**0.5 * torch.stack((angles.sin(), angles.cos()), dim=2).flatten(1)).float()


def make_module(work: Workload) -> SequenceModule:
    """The same model by pebench."""
    shape: dict[str, Any] = {"d_model": work.width, "num_layers": work.depth, "num_heads": work.heads}
    if work.kind == "lm":
        return LanguageModel("add", vocab_size=work.outputs, max_len=work.size, **shape)
    if work.kind == "text":
        sizes = {"vocab_size": work.words, "max_len": work.size, "num_classes": work.outputs}
        return TextClassifier("add", **sizes, **shape)
    return ViT("add", image_size=work.size, patch_size=PATCH, channels=CHANNELS, **shape)


class Peer(nn.Module):
    """A model of another library, trained on the same batches.

    Args:
        model: The model.
        logits: What makes logits of the model and a batch's inputs.
    """

    def __init__(self, model: nn.Module, logits: Callable[..., Tensor]) -> None:
        super().__init__()
        self.model, self.logits = model, logits

    def loss(self, batch: Tensors) -> Tensor:
        """Mean cross-entropy."""
        return F.cross_entropy(self.logits(self.model, *batch[:-1]).flatten(0, -2), batch[-1].flatten())


class TorchEncoder(nn.Module):
    """`torch.nn.TransformerEncoder` with an input and an output layer."""

    def __init__(self, work: Workload) -> None:
        super().__init__()
        self.work = work
        layer = nn.TransformerEncoderLayer(
            work.width, work.heads, 4 * work.width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, work.depth, nn.LayerNorm(work.width), enable_nested_tensor=False)
        image = work.kind == "image"
        self.input = nn.Linear(CHANNELS * PATCH**2, work.width) if image else nn.Embedding(work.vocabulary, work.width)
        self.head = nn.Linear(work.width, work.outputs)
        positions = (work.size // PATCH) ** 2 if image else work.size
        self.position = nn.Parameter(torch.randn(positions, work.width))

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """As `PlainTransformer.forward`."""
        valid, causal = None if lengths is None else valid_tokens(x, lengths), self.work.kind == "lm"
        x = self.input(F.unfold(x, PATCH, stride=PATCH).transpose(1, 2) if self.work.kind == "image" else x)
        mask = nn.Transformer.generate_square_subsequent_mask(self.work.size, device=x.device) if causal else None
        hidden = None if valid is None else ~valid
        x = self.blocks(x + self.position, mask=mask, src_key_padding_mask=hidden, is_causal=causal)
        return self.head(x if causal else mean_of(x, valid))


def torch_encoder(work: Workload) -> Peer:
    """PyTorch's own."""
    return Peer(TorchEncoder(work), lambda model, *inputs: model(*inputs))


def timm_vit(work: Workload) -> Peer:
    """With mean pooling instead of a class token."""
    vit = importlib.import_module("timm.models.vision_transformer").VisionTransformer
    shape = {"img_size": work.size, "patch_size": PATCH, "in_chans": CHANNELS, "num_classes": work.outputs}
    sizes = {"embed_dim": work.width, "depth": work.depth, "num_heads": work.heads}
    return Peer(vit(**shape, **sizes, class_token=False, global_pool="avg"), lambda model, images: model(images))


def vit_pytorch(work: Workload) -> Peer:
    """Its SimpleViT: fixed sinusoids and mean pooling, as ours."""
    vit = importlib.import_module("vit_pytorch").SimpleViT
    shape = {"image_size": work.size, "patch_size": PATCH, "channels": CHANNELS, "num_classes": work.outputs}
    sizes = {"dim": work.width, "depth": work.depth, "heads": work.heads, "mlp_dim": 4 * work.width}
    return Peer(vit(**shape, **sizes, dim_head=work.width // work.heads), lambda model, images: model(images))


def hf_vit(work: Workload) -> Peer:
    """With its class token."""
    hf = importlib.import_module("transformers")
    shape = {"image_size": work.size, "patch_size": PATCH, "num_channels": CHANNELS, "num_labels": work.outputs}
    model = hf.ViTForImageClassification(hf.ViTConfig(**shape, **hf_sizes(work)))
    return Peer(model, lambda model, images: model(pixel_values=images).logits)


def hf_sizes(work: Workload) -> dict[str, Any]:
    """Sizes as transformers' encoders name them."""
    layers = {"num_hidden_layers": work.depth, "num_attention_heads": work.heads}
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return {"hidden_size": work.width, "intermediate_size": 4 * work.width, **layers, **dropout}


def hf_gpt2(work: Workload) -> Peer:
    """GPT-2."""
    hf = importlib.import_module("transformers")
    sizes = {"n_embd": work.width, "n_layer": work.depth, "n_head": work.heads, "n_positions": work.size}
    dropout = dict.fromkeys(("resid_pdrop", "embd_pdrop", "attn_pdrop"), 0.0)
    model = hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=work.outputs, **sizes, **dropout, use_cache=False))
    return Peer(model, lambda model, tokens: model(input_ids=tokens).logits)


def hf_bert(work: Workload) -> Peer:
    """BERT with its pooler."""
    hf = importlib.import_module("transformers")
    shape = {"vocab_size": work.words, "max_position_embeddings": work.size, "num_labels": work.outputs}
    model = hf.BertForSequenceClassification(hf.BertConfig(**shape, **hf_sizes(work)))

    def logits(model: nn.Module, tokens: Tensor, lengths: Tensor) -> Tensor:
        return model(input_ids=tokens, attention_mask=valid_tokens(tokens, lengths).long()).logits

    return Peer(model, logits)


def x_transformers(work: Workload, **options: Any) -> Peer:
    """Its decoder or encoder, with flash attention."""
    x = importlib.import_module("x_transformers")
    kind = x.Decoder if work.kind == "lm" else x.Encoder
    sizes = {"dim": work.width, "depth": work.depth, "heads": work.heads, "attn_dim_head": work.width // work.heads}
    layers = kind(**sizes, attn_flash=True, **options)
    if work.kind == "image":
        shape = {"image_size": work.size, "patch_size": PATCH, "channels": CHANNELS, "num_classes": work.outputs}
        return Peer(x.ViTransformerWrapper(**shape, attn_layers=layers), lambda model, images: model(images))
    model = x.TransformerWrapper(num_tokens=work.vocabulary, max_seq_len=work.size, attn_layers=layers)
    if work.kind == "lm":
        return Peer(model, lambda model, tokens: model(tokens))
    head = nn.Linear(work.width, work.outputs)

    def logits(both: nn.ModuleList, tokens: Tensor, lengths: Tensor) -> Tensor:
        valid = valid_tokens(tokens, lengths)
        return both[1](mean_of(both[0](tokens, mask=valid, return_embeddings=True), valid))

    return Peer(nn.ModuleList([model, head]), logits)


PEERS: dict[str, dict[str, Callable[[Workload], Peer]]] = {
    "image": {
        "timm VisionTransformer": timm_vit,
        "vit-pytorch SimpleViT": vit_pytorch,
        "transformers ViT": hf_vit,
        "x-transformers": x_transformers,
        "torch.nn.TransformerEncoder": torch_encoder,
    },
    "lm": {
        "transformers GPT-2": hf_gpt2,
        "x-transformers": x_transformers,
        "x-transformers, rotary": functools.partial(x_transformers, rotary_pos_emb=True),
        "torch.nn.TransformerEncoder": torch_encoder,
    },
    "text": {
        "transformers BERT": hf_bert,
        "x-transformers": x_transformers,
        "torch.nn.TransformerEncoder": torch_encoder,
    },
}


def disagreement(work: Workload) -> float:
    """Largest difference between the logits of the two models with the same random weights."""
    torch.manual_seed(0)
    plain, module = PlainTransformer(work), make_module(work)
    if count_parameters(plain) != count_parameters(module):
        raise RuntimeError(
            f"{work.name}: {count_parameters(plain)} parameters by hand, {count_parameters(module)} in pebench"
        )
    with torch.no_grad():
        for ours, theirs in zip(module.parameters(), plain.parameters(), strict=True):  # in the same order
            theirs.copy_(ours.add_(torch.randn_like(ours), alpha=0.05))  # what starts at 0 must count too
        if work.kind != "image":
            plain.input.weight *= work.width**0.5  # pebench scales its token table on use
        inputs = [part[:2] for part in take(work, make_tensors(work, work.batch), torch.device("cpu"))[:-1]]
        return float((plain(*inputs) - module(*inputs)).abs().max())


def make_tensors(work: Workload, examples: int) -> Tensors:
    """A running text; images and labels; or padded texts, at least half full, with lengths and labels. Random."""
    random = torch.Generator().manual_seed(0)
    if work.kind == "lm":
        return (torch.randint(work.outputs, (examples + work.size,), generator=random),)
    labels = torch.randint(work.outputs, (examples,), generator=random)
    if work.kind == "text":
        lengths = torch.randint(work.size // 2, work.size + 1, (examples,), generator=random)
        return torch.randint(work.words, (examples, work.size), generator=random), lengths, labels
    return torch.randn(examples, CHANNELS, work.size, work.size, generator=random), labels


def take(work: Workload, tensors: Tensors, device: torch.device) -> Tensors:
    """A random batch, as a hand-written loop gathers it."""
    if work.kind == "lm":
        start = torch.randint(len(tensors[0]) - work.size, (work.batch, 1), device=device)
        window = tensors[0][start + torch.arange(work.size + 1, device=device)]
        return window[:, :-1], window[:, 1:]
    index = torch.randint(len(tensors[0]), (work.batch,), device=device)
    return tuple(tensor[index] for tensor in tensors)


def now(device: torch.device) -> float:
    """The time when the device has done all that it was asked for."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def time_loop(work: Workload, model: PlainTransformer | SequenceModule, data: Tensors, device: torch.device) -> float:
    """Seconds per step of the hand-written loop, with all data on the device."""
    decay = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    keep = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    groups = [{"params": decay, "weight_decay": 0.05}, {"params": keep, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.98), fused=True)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 100))
    start = 0.0
    for step in range(WARM_UP + work.steps):
        if step == WARM_UP:
            start = now(device)
        loss = model.loss(take(work, data, device))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    return (now(device) - start) / work.steps


def time_products(work: Workload, dtype: torch.dtype, device: torch.device) -> float:
    """Seconds that the matrix products of a step's linear layers take by themselves, forward and backward.

    Left out: attention, what lies between the layers, and the first and the last layer.
    """
    tokens = work.batch * ((work.size // PATCH) ** 2 if work.kind == "image" else work.size)
    shapes = [(work.width, wide * work.width) for wide in (3, 1, 4)] + [(4 * work.width, work.width)]

    def random(*shape: int) -> Tensor:
        return torch.randn(shape, dtype=dtype, device=device)

    operands = [(random(tokens, i), random(i, o), random(tokens, o)) for i, o in shapes]

    def step() -> None:
        for inputs, weight, gradient in operands * work.depth:
            _ = inputs @ weight, gradient @ weight.T, inputs.T @ gradient

    step()
    start = now(device)
    for _ in range(work.steps):
        step()
    return (now(device) - start) / work.steps


class Clock(Callback):
    """Times the steps of a fit behind its warm-up, then stops it."""

    def __init__(self, steps: int) -> None:
        self.steps, self.started, self.seconds = steps, 0.0, 0.0

    def on_train_batch_end(self, trainer: Trainer, module: LightningModule, *_: Any) -> None:
        """Start and stop; other steps are left alone."""
        if trainer.global_step == WARM_UP:
            self.started = now(module.device)
        elif trainer.global_step == WARM_UP + self.steps:
            self.seconds = now(module.device) - self.started
            trainer.should_stop = True


def time_pebench(
    work: Workload, module: SequenceModule, data: Dataset[Any], device: torch.device, precision: str = "32-true"
) -> float:
    """Seconds per step of a fit as `pebench.training.runner` makes it."""
    steps = max(RUN_STEPS, WARM_UP + work.steps)
    train = TrainConfig(max_steps=steps, batch_size=work.batch, evaluations=1, precision=precision)
    config = RunConfig(TASKS[work.kind], "add", train=train)
    clock = Clock(work.steps)
    batches = Batches(len(data), work.batch, seed=0)  # type: ignore[arg-type]
    with tempfile.TemporaryDirectory() as name:
        best, curve = best_checkpoint(find_task(config.task), config, Path(name)), Curve(lambda step, metrics: None)
        callbacks = [StepSeed(0), FiniteLoss(), curve, Stopwatch(), best, clock]
        trainer = make_trainer(config, Options(Path(name), device=device.type), RunLogger(Path(name)), callbacks)
        validation = DataLoader(data, sampler=[torch.arange(work.batch)], batch_size=None)
        trainer.fit(module, loader(data, batches, device.type == "cuda"), validation)
    return clock.seconds / work.steps


def make_arm(work: Workload, name: str, device: torch.device) -> Callable[[], float]:
    """What runs a block of an arm and returns its seconds per step."""
    if name in PRODUCTS:
        return lambda: time_products(work, PRODUCTS[name], device)
    tensors = make_tensors(work, min(45_000, work.batch * max(64, 2 * work.steps)))  # CIFAR-10 has 45,000
    if name == ARMS[2] or name in TUNED:
        data: Dataset[Any] = Windows(tensors[0], work.size, 1) if work.kind == "lm" else TensorDataset(*tensors)
        settings, module = TUNED.get(name, {}), make_module(work)
        if settings.get("compile"):
            module.trunk.compile()  # as the runner does
        return lambda: time_pebench(work, module, data, device, settings.get("precision", "32-true"))
    make = {ARMS[0]: PlainTransformer, ARMS[1]: make_module, **PEERS[work.kind]}[name]
    there, model = tuple(tensor.to(device) for tensor in tensors), make(work).to(device)
    return lambda: time_loop(work, model, there, device)


def arms(work: Workload, options: argparse.Namespace) -> dict[str, Callable[[], float]]:
    """Every arm that was asked for, by name, but for peers that are not installed."""
    names = [*ARMS, *((*TUNED, *PRODUCTS) if options.tuned else ()), *(PEERS[work.kind] if options.peers else ())]
    found: dict[str, Callable[[], float]] = {}
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            found[name] = make_arm(work, name, torch.device(options.device))
    return found


def measure(work: Workload, options: argparse.Namespace) -> dict[str, list[float]]:
    """Seconds per step of every arm in every round."""
    blocks = arms(work, options)
    seconds: dict[str, list[float]] = {arm: [] for arm in blocks}
    for arm, block in [*blocks.items()] * options.rounds:
        seconds[arm].append(block())
    return seconds


def time_rows(work: Workload, options: argparse.Namespace) -> list[list[str]]:
    """A workload's lines of every table of times."""
    seconds = measure(work, options)
    return [[row(work, seconds)], peer_rows(work, seconds), tuned_rows(work, seconds), floor_rows(work, seconds)]


def memory_rows(work: Workload, options: argparse.Namespace, arguments: Sequence[str]) -> list[str]:
    """What each arm takes beyond what the process had before it, each in a process of its own."""
    lines = []
    for name in arms(work, options):
        if name in PRODUCTS:
            continue
        command = [sys.executable, __file__, *arguments, "--arm", name, "--workloads", work.name]
        gib = float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)
        lines.append(f"| {work.name} | {name} | {gib:.2f} |")
    return lines


def print_memory(work: Workload, options: argparse.Namespace) -> None:
    """The one figure of a process that `measure_memory` starts."""
    device = torch.device(options.device)
    with contextlib.suppress(ModuleNotFoundError):  # what a library's import takes is not the model's
        make_arm(replace(work, depth=1, width=32 * work.heads, steps=1, batch=2), options.arm, torch.device("cpu"))
    before = environment.peak_memory_gib(device) or 0.0
    make_arm(replace(work, steps=MEMORY_STEPS), options.arm, device)()
    print((environment.peak_memory_gib(device) or 0.0) - before)


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> str:
    """Median of the ratios within each round, with the smallest and the largest."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    return f"{statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"


def peer_heading() -> str:
    """What stands above the rows of peers: versions and the table's head."""
    versions = []
    for name in PEER_PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions.append(f"{name} {metadata.version(name)}")
    return (
        f"The same sizes in other libraries ({', '.join(versions) or 'none installed'}), their defaults but for "
        "dropout (none), in the hand-written loop; seconds over those of pebench:\n\n"
        "| workload | model | model / pebench |\n|---|---|---|"
    )


def peer_rows(work: Workload, seconds: dict[str, list[float]]) -> list[str]:
    """A line of the second table for every peer."""
    names = [arm for arm in seconds if arm in PEERS[work.kind]]
    return [f"| {work.name} | {name} | {ratio(seconds[name], seconds[ARMS[2]])} |" for name in names]


def tuned_rows(work: Workload, seconds: dict[str, list[float]]) -> list[str]:
    """A line of the third table for each way to be faster, beside the fastest of the peers."""
    names = [arm for arm in seconds if arm in PEERS[work.kind]]
    fastest = min(names, key=lambda name: statistics.median(seconds[name]), default=None)
    rows = []
    for name in [arm for arm in seconds if arm in TUNED]:
        cells = [work.name, name, f"{statistics.median(seconds[name]):.4f}", ratio(seconds[ARMS[2]], seconds[name])]
        cells += [fastest or "none installed", ratio(seconds[fastest], seconds[name]) if fastest else "-"]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def floor_rows(work: Workload, seconds: dict[str, list[float]]) -> list[str]:
    """The line of the fourth table."""
    if not all(name in seconds for name in PRODUCTS):
        return []
    names = [arm for arm in seconds if arm in PEERS[work.kind]]
    fastest = min(names, key=lambda name: statistics.median(seconds[name]), default=None)
    wide, half = (seconds[name] for name in PRODUCTS)
    cells = [work.name, *(f"{statistics.median(some):.4f}" for some in (wide, half)), ratio(half, wide)]
    cells += [ratio(wide, seconds[ARMS[2]]), ratio(seconds[fastest], wide) if fastest else "-"]
    return [f"| {' | '.join(cells)} |"]


TUNED_HEADING = (
    "pebench's other settings: 16-bit matrix products with 32-bit weights, and compiled; how many times as fast as "
    "its own default, and as the fastest peer by its defaults:\n\n"
    "| workload | settings | s | pebench / this | fastest peer | fastest peer / this |\n|---|---|---|---|---|---|"
)
FLOOR_HEADING = (
    "The floor: the matrix products of the blocks' linear layers alone, forward and backward, without attention and "
    "all else. No setting of a width makes a step faster than its products; 16 bit helps where its products take less "
    "than those of 32 bit:\n\n"
    "| workload | 32 bit, s | 16 bit, s | 16 bit / 32 bit | 32 bit / pebench | fastest peer / 32 bit |\n"
    "|---|---|---|---|---|---|"
)
MEMORY_TITLE = "# Memory of a training step of pebench and of others\n\n"
MEMORY_HEADING = (
    "Memory that training takes beyond the process and its imports, in GiB, each in a process of its own, "
    f"{WARM_UP + MEMORY_STEPS} steps:\n\n| workload | model | GiB |\n|---|---|---|"
)


def row(work: Workload, seconds: dict[str, list[float]]) -> str:
    """One line of the table."""
    cells = [work.name, str(work.steps), *(f"{statistics.median(seconds[arm]):.4f}" for arm in ARMS)]
    cells += [ratio(seconds[arm], seconds[ARMS[0]]) for arm in ARMS[1:]]
    return f"| {' | '.join(cells)} |"


def circumstances(script: str, arguments: Sequence[str], device: torch.device, threads: int | None = None) -> str:
    """When, by what and how something was measured, in two lines."""
    versions = ", ".join(f"{name} {environment.versions()[name]}" for name in ("python", "torch", "lightning"))
    where = f"{environment.device_text(device)}, {threads or torch.get_num_threads()} threads"
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, commit {environment.commit() or 'unknown'}, {versions}; {where}, 32 bit.  \n"
        f"`{shlex.join(['python', f'benchmarks/{script}', *arguments])}`\n\n"
    )


def heading(arguments: Sequence[str], rounds: int, device: torch.device) -> str:
    """What stands above the rows: circumstances and the table's head."""
    columns = ["workload", "steps", *(f"{arm}, s" for arm in ARMS), *(f"{arm} / hand-written" for arm in ARMS[1:])]
    return (
        "# A training step of pebench and of a hand-written loop\n\n"
        f"{circumstances('throughput.py', arguments, device)}"
        f"{rounds} rounds in which the arms take turns. Seconds per step: median over the rounds. "
        "Ratios: median over the rounds (smallest to largest), each within its round.\n\n"
        f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}"
    )


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    names = [work.name for work in WORKLOADS]
    parser = argparse.ArgumentParser(description="Time a training step of pebench against a hand-written loop.")
    parser.add_argument("--workloads", nargs="+", choices=names, default=names)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, help="timed steps of a block; by default a few seconds' worth")
    parser.add_argument("--threads", type=int, help="CPU threads; by default PyTorch's choice")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument(
        "--peers", action="store_true", help="time other libraries too: timm, vit-pytorch, x-transformers, transformers"
    )
    parser.add_argument("--tuned", action="store_true", help="time pebench in 16 bit and compiled too")
    parser.add_argument("--memory", action="store_true", help="measure each arm's memory instead")
    parser.add_argument("--arm", help=argparse.SUPPRESS)  # for a process that tells its memory
    parser.add_argument("--output", type=Path, help="Markdown file for the table")
    parser.add_argument("--quick", action="store_true", help="tiny models, to see that it works")
    return parser.parse_args(arguments)


def resized(work: Workload, options: argparse.Namespace) -> Workload:
    """With as many steps as asked for, and tiny if it is only to be seen to work."""
    work = replace(work, steps=options.steps or (work.steps if options.device == "cpu" else CUDA_STEPS))
    return replace(work, depth=1, width=16, heads=2, batch=4, size=8, steps=2) if options.quick else work


def main(arguments: Sequence[str]) -> None:
    """Check that the models are one, time the arms, print the tables and write them."""
    options = parse(arguments)
    if options.threads:
        torch.set_num_threads(options.threads)
    works = [resized(work, options) for work in WORKLOADS if work.name in options.workloads]
    if options.arm:
        print_memory(works[0], options)
        return
    device = torch.device(options.device)
    heads = (heading(arguments, options.rounds, device), peer_heading(), TUNED_HEADING, FLOOR_HEADING)
    if options.memory:
        heads = (f"{MEMORY_TITLE}{circumstances('throughput.py', arguments, device)}{MEMORY_HEADING}",)
    tables: dict[str, list[str]] = {head: [] for head in heads}
    for work in works:
        if not disagreement(work) <= 1e-4:  # nor NaN
            raise RuntimeError(f"{work.name}: the two models do not compute the same")
        news = [memory_rows(work, options, arguments)] if options.memory else time_rows(work, options)
        for lines, more in zip(tables.values(), news, strict=True):
            lines += more
        print("\n".join(line for lines in news for line in lines), file=sys.stderr, flush=True)
        page = "\n\n".join("\n".join([head, *lines]) for head, lines in tables.items() if lines) + "\n"
        if options.output:  # after every workload: an hour's figures are not lost to its last minute
            options.output.write_text(page, encoding="utf-8")
    sys.stdout.write(page)


if __name__ == "__main__":
    main(sys.argv[1:])
