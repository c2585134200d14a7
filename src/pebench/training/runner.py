"""One run, from configuration to record: the function behind every executor."""

import logging
import os
import shutil
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from pebench.atomic import PART
from pebench.config import Options, RunConfig
from pebench.data import datamodule_of
from pebench.data.base import TensorDataModule
from pebench.encodings import registry
from pebench.errors import UserError
from pebench.models import transformer
from pebench.models.base import SequenceModule
from pebench.runs.costs import cost
from pebench.runs.records import FILE_NAME, Record, write_record
from pebench.tasks import find_task
from pebench.tasks.registry import task_origin
from pebench.training import environment
from pebench.training.extrapolation import measure_beyond
from pebench.training.position_share import measure_shares

import lightning  # isort: skip  # after pebench, which guards it against a torchvision that does not fit
from lightning.pytorch.callbacks import ModelCheckpoint  # isort: skip
from lightning.fabric.plugins.environments import LightningEnvironment  # type: ignore[attr-defined]  # isort: skip

from pebench.training.callbacks import (  # isort: skip
    Curve, DurableCheckpointIO, FiniteLoss, LastValidation, OwnSignals, Resumable, StepSeed, Stopwatch,
)  # fmt: skip
from pebench.training.tensorboard import FAILED, RunLogger, log_outcome  # isort: skip

NOT_NEWS = (
    ".*does not have many workers.*",  # the data is in memory
    ".*GPU available but not used.*",
    ".*exists and is not empty.*",
    ".*smaller than the logging interval.*",
    ".*LeafSpec.*",  # lightning 2.6 beside torch 2.15
    ".*srun.*",  # a machine with SLURM
    ".*sync_dist=True.*",  # what is logged is computed over all processes
)
"""Warnings of Lightning's that mean nothing here."""

Progress = Callable[[int, Mapping[str, float]], None]
Measure = Callable[[SequenceModule, SequenceModule, TensorDataModule, Callable[[], bool]], Mapping[str, Sequence[Any]]]


def build(config: RunConfig, data: TensorDataModule) -> SequenceModule:
    """The model of a run.

    Args:
        config: Of the run.
        data: Of its task; prepared here if it is not yet.
    """
    train = config.train
    return find_task(config.task).model_class()(
        config.encoding,
        config.encoding_args,
        **data.model_arguments(),
        **vars(config.model),
        learning_rate=train.learning_rate,
        weight_decay=train.weight_decay,
        warmup=train.warmup,
        seed=config.seed,
    )


def run(
    config: RunConfig,
    options: Options,
    on_progress: Progress = lambda step, metrics: None,
    stop: Callable[[], bool] = lambda: False,
    measure: Measure = measure_shares,
) -> Record:
    """Train, choose by validation, test once, and leave a record. An interrupted run goes on where it was.

    Args:
        config: What to run.
        options: Where and on what.
        on_progress: Told the step and the latest metrics now and then.
        stop: Asked at every step whether to stop.
        measure: Told the model as it began and as it is after the test, for what the record has as its shares.

    Raises:
        InterruptedRunError: If asked to stop.
        UserError: If the data cannot be had, or the devices do not divide the batch.
        ValueError: If the encoding does not fit the model.
    """
    environment.reset_peak_memory()  # an earlier run may have been in this process
    environment.commit()  # kept, as is the code below: the checkout may have others when the run ends
    if options.threads:
        torch.set_num_threads(options.threads)
    if config.train.batch_size % options.devices:
        raise UserError(f"train.batch_size must be a multiple of --devices, got {config.train.batch_size}.")
    registry.adopt(options.folders, options.modules)
    folder = options.out / config.directory
    last = folder / "checkpoints" / "last.ckpt"
    data = datamodule_of(config, options.data_dir)
    module = build(config, data)
    made_of = {"data": data.fingerprint, "code": environment.code(), "versions": environment.versions()}
    made_of |= described_plugins(config, module.trunk.encoding)
    step = resumable_step(last, made_of)
    if is_first_process():
        clear(folder, step)
    flops, learned_bias = probe(module, data)
    if config.train.compile:
        module.trunk.compile()
    curve, stopwatch, best = Curve(on_progress), Stopwatch(), best_checkpoint(config, folder)
    resumable = Resumable(last, stop, made_of)
    callbacks = [OwnSignals(), StepSeed(config.seed), FiniteLoss(), LastValidation(), curve, stopwatch, best, resumable]
    logger = RunLogger(folder, step)
    trainer = make_trainer(config, options, logger, callbacks)
    if trainer.precision != config.train.precision:  # Lightning takes another, and only warns
        raise UserError(f"train.precision={config.train.precision} needs a GPU; on processors: bf16-mixed.")
    data.start = step  # one stream of batches, a function of seed and step: Lightning would begin the epoch again
    on_progress(step, {})  # where it begins, so that what remains is not taken for what an earlier attempt left
    trainer.fit(module, datamodule=data, ckpt_path=last if step else None, weights_only=True)
    device = trainer.strategy.root_device
    memory = environment.peak_memory_gib(device)  # of training: tests at other sizes are not the same for all rows
    check_best(best, chosen_metrics(config, {}, curve.points)["best_step"])
    if config.stage == "test":  # a run that selects a setting never sees the test split
        trainer.test(module, datamodule=data, ckpt_path=best.best_model_path, verbose=False, weights_only=True)
    metrics = chosen_metrics(config, trainer.callback_metrics, curve.points)
    if config.stage == "test":
        metrics |= measure_beyond(trainer, module, data, find_task(config.task).beyond, stop)
    told = config.stage == "test" and trainer.is_global_zero
    shares = measure(build(config, data), module, data, stop) if told else {}
    record = Record(
        config=config,
        metrics=metrics,
        curve=curve.points,
        parameters={"encoding": count(module.trunk.encoding), "total": count(module)},
        flops_per_sample=flops,
        matched_flops=cost(config).of(config.regime) if config.regime == "FLOPs" else None,
        throughput=config.train.batch_size * stopwatch.steps / stopwatch.seconds if stopwatch.seconds else None,
        peak_memory_gib=memory,
        duration_s=stopwatch.wall,
        dataset={"fingerprint": data.fingerprint, "sizes": data.sizes(), "padding": data.padding()},
        environment=environment.describe(
            stopwatch.devices,
            config.train.precision,
            config.train.compile,
            attention_kernel(config, device, learned_bias),
        )
        | {"devices": trainer.world_size}
        | described_plugins(config, module.trunk.encoding),
        position_shares=shares,
        started=stopwatch.started,
    )
    if trainer.is_global_zero:
        try:
            log_outcome(logger, record, module.trunk.encoding)
        except Exception as error:  # what TensorBoard shows is no reason to lose a run
            warnings.warn(f"TensorBoard lacks the outcome of this run: {error}", stacklevel=2)
        write_record(record, options.out)
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return record


def is_first_process() -> bool:
    """Whether this is the process, of those that share a run, that writes."""
    return os.environ.get("LOCAL_RANK", "0") == "0"


def resumable_step(checkpoint: Path, made_of: Mapping[str, Any] | None = None) -> int:
    """The step that an earlier attempt can be resumed from; 0 if there is none, or it cannot be read.

    Args:
        checkpoint: That the earlier attempt left.
        made_of: Data, code and versions of this one, if they matter; a run of others is another run, and begins again.
    """
    if not checkpoint.is_file():
        return 0
    try:
        values = torch.load(checkpoint, weights_only=True, mmap=True)
        if made_of and values["callbacks"].get("Resumable", {}).get("made_of") != made_of:
            warnings.warn(f"{checkpoint} is of other data, code or versions; the run begins again", stacklevel=2)
            return 0
        return int(values["global_step"])
    except Exception as error:  # torch raises many kinds for a damaged file
        warnings.warn(f"{checkpoint} is damaged ({error}); the run begins again", stacklevel=2)
        return 0


def clear(folder: Path, step: int) -> None:
    """Remove what an earlier attempt left in its folder, but for what this one resumes from."""
    folder.mkdir(parents=True, exist_ok=True)
    leftovers = [*folder.glob(PART), *folder.glob(f"*{FAILED}")]
    for record in folder.glob(FILE_NAME):  # of a newer pebench, or damaged: it cannot be read here
        record.replace(folder / f"unreadable-{time.time_ns()}.json")
    if not step:
        shutil.rmtree(folder / "checkpoints", ignore_errors=True)
        leftovers += folder.glob("events.out.tfevents.*")
    leftovers += folder.glob(f"checkpoints/{PART}")
    for leftover in {*leftovers}:
        leftover.unlink(missing_ok=True)  # another process may have finished writing it


def check_best(best: ModelCheckpoint, step: float) -> None:
    """Refuse weights that this run did not write: two processes may be at one run where neither sees the other.

    Raises:
        RuntimeError: If they are of another step. Checkpoints are removed: from them it would end so again.
    """
    path = Path(best.best_model_path)
    found = torch.load(path, weights_only=True, mmap=True)["global_step"] if path.is_file() else None
    if found != step:
        shutil.rmtree(str(best.dirpath), ignore_errors=True)
        raise RuntimeError(
            f"{path} holds {'nothing' if found is None else f'step {found}'}, expected step {step:g}: another process "
            "was at this run, or it was killed between two checkpoints. Tried again, it begins anew."
        )


class Best(ModelCheckpoint):
    """One that finds its weights beside the checkpoint that it goes on from, wherever that has been moved."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a checkpoint."""

        def here(path: str) -> str:
            return path and str(Path(str(self.dirpath)) / Path(path).name)

        names = ("best_model_path", "kth_best_model_path", "last_model_path")
        moved: dict[str, Any] = {name: here(state_dict[name]) for name in names}
        moved["best_k_models"] = {here(path): score for path, score in state_dict["best_k_models"].items()}
        super().load_state_dict(state_dict | moved | {"dirpath": self.dirpath})


def best_checkpoint(config: RunConfig, folder: Path) -> ModelCheckpoint:
    """Keeps the weights that validation likes best."""
    monitor, mode = find_task(config.task).monitored(config.train.monitor)
    return Best(
        folder / "checkpoints", filename="best", monitor=monitor, mode=mode, save_top_k=1, save_weights_only=True
    )


def make_trainer(config: RunConfig, options: Options, logger: RunLogger, callbacks: list[Any]) -> lightning.Trainer:
    """A Lightning Trainer for one run, silent but for TensorBoard.

    Args:
        config: Of the run.
        options: Where and on what.
        logger: Of the run.
        callbacks: To watch it.
    """
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    for message in NOT_NEWS:
        warnings.filterwarnings("ignore", message)
    train, device = config.train, options.device
    if device == "auto":  # never a Mac's GPU, which lacks the 64-bit numbers in which encodings work out angles
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return lightning.Trainer(
        accelerator=device,
        devices=options.devices,
        strategy="ddp" if options.devices > 1 else "auto",
        precision=train.precision,  # type: ignore[arg-type]
        max_steps=train.max_steps,
        max_epochs=-1,
        val_check_interval=max(1, train.max_steps // train.evaluations),
        check_val_every_n_epoch=None,
        gradient_clip_val=train.clip,
        log_every_n_steps=min(50, max(1, train.max_steps // 10)),
        num_sanity_val_steps=0,
        logger=logger,
        plugins=[DurableCheckpointIO(), LightningEnvironment()],  # whatever scheduler we are under, a run is ours
        use_distributed_sampler=False,  # the data deals out its own batches
        callbacks=callbacks,
        enable_autolog_hparams=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )


def chosen_metrics(config: RunConfig, tested: Mapping[str, Tensor], curve: list[dict[str, float]]) -> dict[str, float]:
    """Test metrics, and the validation metrics at the step that was chosen."""
    metric, mode = find_task(config.task).monitored(config.train.monitor)
    best = (min if mode == "min" else max)(curve, key=lambda point: point[metric])
    validation = {name: value for name, value in best.items() if name.startswith("val/")}
    test = {name: float(value) for name, value in tested.items() if name.startswith("test/")}
    return {"best_step": best["step"], **validation, **test}


def described_plugins(config: RunConfig, encoding: torch.nn.Module) -> dict[str, Any]:
    """Return where the encodings of a model, and its task, come from that are not ours, if any."""
    found = registry.origins(type(part) for part in encoding.modules())
    described: dict[str, Any] = {"plugins": found} if found else {}
    if task := task_origin(config.task):
        described["task"] = task
    return described


def count(module: torch.nn.Module) -> int:
    """Number of trained parameters."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


def probe(module: SequenceModule, data: TensorDataModule) -> tuple[int, bool]:
    """Floating-point operations of forward and backward on one example, and whether a bias in it needs a gradient.

    Counted by PyTorch's counter on an example of median length; it counts matrix products, which is nearly
    all. The attention kernel that it can see into is used.
    """
    examples, lengths = data.split("train")
    median = 0 if lengths is None else int(lengths.argsort(stable=True)[len(lengths) // 2])
    batch = data.on_after_batch_transfer(examples[torch.tensor([median])], 0)
    learned = False

    def visible(q: Tensor, mask: Tensor | None) -> str:
        nonlocal learned
        learned = learned or (mask is not None and mask.requires_grad)
        return "matmul"

    chosen, transformer.attention_kernel = transformer.attention_kernel, visible
    try:
        with FlopCounterMode(display=False) as counter:
            module.loss(batch).backward()  # type: ignore[no-untyped-call]
    finally:
        transformer.attention_kernel = chosen
    module.zero_grad()
    return counter.get_total_flops(), learned


def attention_kernel(config: RunConfig, device: torch.device, learned_bias: bool) -> str:
    """Which way of computing attention a run took."""
    dtype = torch.bfloat16 if config.train.precision.startswith("bf16") else torch.float32
    bias = torch.empty(0, requires_grad=True) if learned_bias else None
    return transformer.attention_kernel(torch.empty(0, dtype=dtype, device=device), bias)
