"""The time that a run's training takes, without its warm-up, validations and checkpoints."""

import time
from datetime import UTC, datetime
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer

from pebench.training import environment


class Stopwatch(Callback):
    """Measures training time without validation or checkpoints, from the end of the first steps of every attempt on.

    Attributes:
        seconds: Training time measured; of attempts on one device with as many threads, the latest.
        steps: Steps in it.
        earlier: Wall-clock time of the attempts that this one resumes, in seconds.
        started: When the first of them began, in UTC.
        devices: Devices that they ran on, each once, the latest last.
    """

    WARM_UP = 3

    def __init__(self) -> None:
        self.seconds, self.steps, self.earlier = 0.0, 0, 0.0
        self.started = datetime.now(UTC).isoformat(timespec="seconds")
        self.devices: list[str] = []
        self._place: list[Any] = []  # device, threads and processes, which decide the speed
        self._born = time.perf_counter()
        self._since: float | None = None
        self._taken = 0  # steps of this attempt: one that is resumed must warm up, or compile, again
        self._counted = 0

    def setup(self, trainer: Trainer, module: LightningModule, stage: str) -> None:
        """Keep the device's name."""
        if not self.devices:
            self.devices = [environment.device_text(trainer.strategy.root_device)]
            self._place = [*self.devices, torch.get_num_threads(), trainer.world_size]

    def needs(self, trainer: Trainer, step: int) -> bool:
        """Return True where the watch is to start."""
        return self._since is None

    def on_train_batch_start(self, trainer: Trainer, module: LightningModule, batch: Any, batch_idx: int) -> None:
        """Start the watch, once warm and after every validation."""
        # The first steps compile, allocate and choose kernels. A run too short for that warm-up measures its last step.
        if self._since is None and self._taken >= min(self.WARM_UP, max(1, int(trainer.max_steps) - 1)):
            self._since, self._counted = time.perf_counter(), trainer.global_step

    def on_train_batch_end(
        self, trainer: Trainer, module: LightningModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Count the steps since the last that this was called for."""
        self._taken += 1
        if self._since is not None:
            self.steps += trainer.global_step - self._counted
            self._counted = trainer.global_step

    def on_validation_start(self, trainer: Trainer, module: LightningModule) -> None:
        """Stop the watch."""
        self._pause()

    def on_train_end(self, trainer: Trainer, module: LightningModule) -> None:
        """Stop the watch."""
        self._pause()

    def _pause(self) -> None:
        if self._since is not None:
            if torch.cuda.is_initialized():
                torch.cuda.current_stream().synchronize()  # work that is still queued was not done in no time
            self.seconds += time.perf_counter() - self._since
            self._since = None

    def state_dict(self) -> dict[str, Any]:
        """Stop the watch, and return the time so far for the checkpoint that is being written."""
        self._pause()
        kept = {"seconds": self.seconds, "steps": self.steps, "wall": self.wall}
        return {**kept, "started": self.started, "devices": self.devices, "place": self._place}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        # Lightning calls `setup` before, so that `devices` holds that of this attempt.
        earlier, here = state_dict["devices"], self.devices[-1:]
        if state_dict["place"] == self._place:  # another place has another speed
            self.seconds, self.steps = state_dict["seconds"], state_dict["steps"]
        self.earlier, self.started = state_dict["wall"], state_dict["started"]
        self.devices = [*(device for device in earlier if device not in here), *here]

    @property
    def wall(self) -> float:
        """Seconds since the run began, without those between an interruption and its resumption."""
        return self.earlier + time.perf_counter() - self._born
