"""One run, from configuration to record: the function behind every executor."""

import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import Tensor

from pebench.config import Options, RunConfig, section_values
from pebench.data import datamodule_of
from pebench.data.base import TensorDataModule
from pebench.encodings import registry
from pebench.encodings.checks import blame
from pebench.errors import UserError
from pebench.models.attention import fastest_kernel
from pebench.models.base import SequenceModule
from pebench.models.counting import count_parameters
from pebench.runs.costs import cost
from pebench.runs.records import Record, write_record
from pebench.runs.rubbish import CHECKPOINTS, LAST_CHECKPOINT
from pebench.tasks import Task, find_task
from pebench.tasks.registry import task_origin
from pebench.training import environment
from pebench.training.analysis import analyze
from pebench.training.callbacks import Curve, FiniteLoss, LastValidation, OwnSignals, Resumable, StepSeed
from pebench.training.extrapolation import measure_extrapolation
from pebench.training.guests import contained
from pebench.training.loggers import Guarded, make_loggers
from pebench.training.position_share import measure_position_share
from pebench.training.probe import Probe, probe
from pebench.training.resume import check_best, clear, resumable_step
from pebench.training.steps import captured_steps
from pebench.training.stopwatch import Stopwatch
from pebench.training.tensorboard import RunLogger, log_outcome
from pebench.training.token_tables import take_table
from pebench.training.trainer import best_checkpoint, make_trainer, telling_divergence
from pebench.training.turns import turns_of_this_run
from pebench.training.weights import keep_weights

Progress = Callable[[int, Mapping[str, float]], None]
Measure = Callable[[SequenceModule, SequenceModule, TensorDataModule, Callable[[], bool]], Mapping[str, Sequence[Any]]]


@dataclass(frozen=True)
class Attempt:
    """Objects that one attempt at a run trains with.

    Args:
        task: The run's task.
        plugins: Package, version and digest of its encodings and task that are not ours, if any.
        data: Its data, which begin where an earlier attempt stopped.
        module: Model to train.
        probe: Counts made on the untrained model.
        trainer: Lightning's trainer, with the callbacks below.
        logger: TensorBoard logger.
        others: Loggers of the user's choice.
        curve: Callback that keeps the validation metrics.
        stopwatch: Callback that measures training time.
        best: Callback that keeps the best weights.
        checkpoint: Checkpoint of an earlier attempt to go on from; None for a new run.
    """

    task: Task
    plugins: Mapping[str, Any]
    data: TensorDataModule
    module: SequenceModule
    probe: Probe
    trainer: Trainer
    logger: RunLogger
    others: Sequence[Guarded]
    curve: Curve
    stopwatch: Stopwatch
    best: ModelCheckpoint
    checkpoint: Path | None


def train(
    config: RunConfig,
    options: Options,
    on_progress: Progress = lambda step, metrics: None,
    stop: Callable[[], bool] = lambda: False,
    measure: Measure = measure_position_share,
) -> Record:
    """Train, choose by validation, test once, and leave a record. An interrupted run goes on where it was.

    Args:
        config: Run to train.
        options: Output folder, device, threads and the like.
        on_progress: Called with the step and the latest metrics now and then.
        stop: Asked at every step whether to stop.
        measure: Called after the test with the model as it began and as it is; its result is recorded as position
            shares.

    Raises:
        InterruptedRunError: If asked to stop.
        DivergedError: If the loss or a validation metric is not finite.
        UserError: If the data cannot be had, or the devices do not divide the batch.
        ValueError: If the encoding does not fit the model.
    """
    _prepare_process(config, options)
    attempt = _prepare_attempt(config, options, on_progress, stop)
    trainer, module, data = attempt.trainer, attempt.module, attempt.data
    with telling_divergence(trainer):
        trainer.fit(module, datamodule=data, ckpt_path=attempt.checkpoint, weights_only=True)

    # Of training, as tests at other sizes differ; where runs share the process, nothing tells theirs from this one's.
    memory = None if turns_of_this_run() else environment.peak_memory_gib(trainer.strategy.root_device)
    metrics = attempt.curve.best(*attempt.task.monitored(config.train.monitor))
    # Before the test, which must not be made with weights of another process.
    check_best(attempt.best, metrics["best_step"])
    untrained: SequenceModule | None = None
    shares: Mapping[str, Sequence[Any]] = {}
    beyond: Mapping[str, Any] = {}
    if config.stage == "test":  # a run that selects a setting never sees the test split
        trainer.test(module, datamodule=data, ckpt_path=attempt.best.best_model_path, verbose=False, weights_only=True)
        metrics |= tested_metrics(trainer.callback_metrics)
        sizes = measure_extrapolation(trainer, module, data, data.factors, stop, config.train.interpolate)
        metrics, beyond = metrics | sizes.metrics, sizes.facts
        if trainer.is_global_zero:
            # Parameters are a function of the seed: built again, the model is as it was before training.
            untrained = build(config, data, options.out)
            shares = measure(untrained, module, data, stop)

    record = replace(_make_record(config, attempt, metrics, memory, shares), beyond=beyond)
    if options.analyze and untrained is not None:
        record = replace(record, analysis=_analyzed(module, data, untrained))
    if trainer.is_global_zero:
        _keep_record(record, options, attempt)
    return record


def build(config: RunConfig, data: TensorDataModule, out: Path | None = None) -> SequenceModule:
    """Return the model of a run, untrained.

    Args:
        config: Run to build it for.
        data: Data of its task; prepared here if need be.
        out: Output folder with the run whose token table it takes, if it takes one; without it all is drawn.

    Raises:
        UserError: If the weights of that run are not there.
    """
    train = config.train
    module: SequenceModule = find_task(config.task).model_class()(
        config.encoding,
        config.encoding_args,
        **data.model_arguments(),
        **section_values(config, "model"),
        learning_rate=train.learning_rate,
        weight_decay=train.weight_decay,
        warmup=train.warmup,
        seed=config.seed,
    )
    if out is not None:
        take_table(module, config, out)
    return module


def _prepare_process(config: RunConfig, options: Options) -> None:
    """Set up the process: threads, peak memory, and the modules in which encodings of the user's are found."""
    environment.reset_peak_memory()  # an earlier run may have been in this process
    environment.commit()  # kept, as is the code later: the checkout may have others when the run ends
    if options.threads:
        torch.set_num_threads(options.threads)
    if config.train.batch_size % options.devices:
        raise UserError(f"train.batch_size must be a multiple of --devices, got {config.train.batch_size}.")
    registry.adopt(options.folders, ())
    what = f"importing the encodings of {config.directory}"  # others' too, which are not this run's
    if options.modules:
        with contained(what):
            registry.adopt((), options.modules)
    names = [name for name, _ in registry.parts_of(config.encoding, config.encoding_args)]  # some are known only now
    if any(map(registry.find_plugin, names)):
        with contained(what):
            for name in names:
                registry.load_encoding(name)


def _prepare_attempt(config: RunConfig, options: Options, on_progress: Progress, stop: Callable[[], bool]) -> Attempt:
    """Build data, model, callbacks and trainer, and find where an earlier attempt stopped."""
    task, folder = find_task(config.task), options.out / config.directory
    data = datamodule_of(config, options.data_dir)
    module = build(config, data, options.out)
    plugins = described_plugins(task, module.trunk.encoding)
    made_of = {"data": data.fingerprint, "code": environment.code(), "versions": environment.versions(), **plugins}
    checkpoint = folder / LAST_CHECKPOINT
    step = resumable_step(checkpoint, made_of)
    clear(folder, step)  # only now that the step is known: with 0 it removes the checkpoints
    _, lengths = data.split("train")
    environment.keep_freed_memory(lengths is None)  # else batches differ in length
    # Before compilation: within a compiled trunk the counter sees no single operations.
    probed = probe(module, data)
    if config.train.compile:
        module.trunk.compile()

    curve, stopwatch, best = Curve(on_progress), Stopwatch(), best_checkpoint(task, config, folder)
    resumable = Resumable(checkpoint, stop, made_of)
    # `resumable` last: what it saves holds the others' state with the step or validation that has just ended.
    callbacks = [OwnSignals(), StepSeed(config.seed), FiniteLoss(), LastValidation(), curve, stopwatch, best, resumable]
    logger = RunLogger(folder, step)
    others = make_loggers(options.loggers, config, folder, step)
    trainer = make_trainer(config, options, [logger, *others], callbacks)
    data.start = step  # one stream of batches, a function of seed and step: Lightning would begin the epoch again
    on_progress(step, {})  # where it begins: the steps of an earlier attempt took none of this one's time
    start = checkpoint if step else None
    return Attempt(task, plugins, data, module, probed, trainer, logger, others, curve, stopwatch, best, start)


def tested_metrics(logged: Mapping[str, Tensor]) -> dict[str, float]:
    """Return the metrics of the test split among those that the trainer logged."""
    return {name: float(value) for name, value in logged.items() if name.startswith("test/")}


def described_plugins(task: Task, encoding: torch.nn.Module) -> dict[str, Any]:
    """Return package, version and digest of a run's encodings and task that are not ours, if any."""
    found = registry.origins(type(part) for part in encoding.modules())
    described: dict[str, Any] = {"plugins": found} if found else {}
    if origin := task_origin(task):
        described["task"] = origin
    return described


def _analyzed(module: SequenceModule, data: TensorDataModule, untrained: SequenceModule) -> dict[str, Any]:
    """Return the figures of `pebench.analyze`; nothing where they cannot be had."""
    try:
        return analyze(module, data, untrained).as_dict()
    except Exception as error:  # no reason to lose a run: `pebench analyze` may measure it later
        warnings.warn(f"this run was not analyzed: {blame(error)}", stacklevel=2)
        return {}


def _make_record(
    config: RunConfig,
    attempt: Attempt,
    metrics: dict[str, float],
    memory: float | None,
    shares: Mapping[str, Sequence[Any]],
) -> Record:
    module, data, stopwatch = attempt.module, attempt.data, attempt.stopwatch
    examples = config.train.batch_size * stopwatch.steps  # batches of all devices together
    return Record(
        config=config,
        metrics=metrics,
        curve=attempt.curve.points,
        parameters={"encoding": count_parameters(module.trunk.encoding), "total": count_parameters(module)},
        flops_per_sample=attempt.probe.flops,
        matched_flops=cost(config).of(config.regime) if config.regime == "FLOPs" else None,
        throughput=examples / stopwatch.seconds if stopwatch.seconds else None,
        peak_memory_gib=memory,
        duration_s=stopwatch.wall,
        dataset=_dataset(config, data),
        environment=_circumstances(config, attempt),
        position_shares=shares,
        started=stopwatch.started,
    )


def _dataset(config: RunConfig, data: TensorDataModule) -> dict[str, Any]:
    """Return the record's part on the data; with the chance level where the task does not declare one."""
    task, found = find_task(config.task), {"fingerprint": data.fingerprint, "sizes": data.sizes()}
    chance = data.chance().get(task.metric) if task.chance is None else None
    return {**found, "padding": data.padding(), **({} if chance is None else {"chance": chance})}


def _circumstances(config: RunConfig, attempt: Attempt) -> dict[str, Any]:
    """Return the record's part on versions, devices, precision and the attention kernel."""
    # The choice depends on type, device and gradients alone, so empty ones stand in for those of training.
    dtype = torch.bfloat16 if config.train.precision.startswith("bf16") else torch.float32
    queries = torch.empty(0, dtype=dtype, device=attempt.trainer.strategy.root_device)
    kernel = fastest_kernel(queries, attempt.probe.bias)
    compiled = config.train.compile and not attempt.module.trunk.uncompiled  # what ran, not what was asked for
    described = environment.describe(attempt.stopwatch.devices, config.train.precision, compiled, kernel)
    described |= {"captured": captured_steps(attempt.trainer) > 0} if config.train.capture else {}
    return {**described, "devices": attempt.trainer.world_size, **attempt.plugins}


def _keep_record(record: Record, options: Options, attempt: Attempt) -> None:
    """Write the record, and remove the checkpoints that it makes superfluous."""
    try:
        log_outcome(attempt.logger, record, attempt.module.trunk.encoding)
    except Exception as error:  # what TensorBoard shows is no reason to lose a run
        warnings.warn(f"TensorBoard lacks the outcome of this run: {error}", stacklevel=2)
    for other in attempt.others:
        other.log_outcome(record)
    if options.keep_weights and record.config.stage == "test":  # a run that selects tests none
        keep_weights(attempt.module, record.config, options.out)
    # In this order, as a run with a record is over, and without one the next attempt needs the checkpoints.
    write_record(record, options.out)
    shutil.rmtree(options.out / record.config.directory / CHECKPOINTS, ignore_errors=True)
