"""The base of every LightningDataModule here: data prepared once, kept on disk, held as tensors."""

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import lightning
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from pebench.atomic import replacing
from pebench.data.batches import Batches, on_device
from pebench.data.prepared import Prepared, check_prepared
from pebench.errors import UserError
from pebench.tasks.sources import Source, prepared_file, writing

__all__ = ["SPLITS", "Prepared", "TensorDataModule", "commonest_share", "every_tenth"]

SPLITS = ("train", "val", "test")


class TensorDataModule(lightning.LightningDataModule):
    """Data of one task: three splits of tensors.

    `prepare_data` reads the source once and keeps the tensors under the cache folder with their checksum; it and
    `setup` map them into memory, and hold them to that. A subclass defines `read` (from the source to tensors), `split`
    (the examples of each split) and `describe` (the arguments of a model for this data).

    Args:
        batch_size: Examples in a training batch; evaluation takes twice as many.
        seed: Decides the order of the training data and its augmentation.
        data_dir: Local folder with a copy of the source; ``None`` downloads it.
        settings: Everything else that the prepared tensors depend on.

    Raises:
        ValueError: If `batch_size` is below 1.

    Attributes:
        fingerprint: SHA-256 of the tensors, once set up.
        factors: Sizes that the test split is wanted at, in multiples of the trained one.
        start: For training without epochs: the batch to begin with. ``None``, the default, means epochs.
    """

    title: ClassVar[str]
    """Name of the data set in messages and file names."""
    source: ClassVar[Source | None] = None
    """Source of the data; ``None`` if it is embedded."""

    def __init__(self, batch_size: int, seed: int, data_dir: Path | None, **settings: int) -> None:
        super().__init__()
        if batch_size < 1:
            raise ValueError(f"batch_size must be 1 or more, got {batch_size}")
        self.batch_size, self.seed, self.settings = batch_size, seed, settings
        self.data_dir = data_dir
        self.fingerprint = ""
        self.factors: tuple[float, ...] = ()
        self.start: int | None = None
        self._prepared: Prepared | None = None

    @abstractmethod
    def read(self) -> Prepared:
        """Read the source and make tensors of it.

        Raises:
            UserError: If the source cannot be had.
        """

    @abstractmethod
    def split(self, name: str) -> tuple[Dataset[Any], Tensor | None]:
        """Return the examples of ``train``, ``val`` or ``test``, and their lengths if those differ."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the keyword arguments that a model for this data needs."""

    @property
    def prepared(self) -> Prepared:
        """The tensors.

        Raises:
            RuntimeError: Before `setup`.
        """
        if self._prepared is None:
            raise RuntimeError("call prepare_data() and setup() first, or let a Trainer do it")
        return self._prepared

    @property
    def file(self) -> Path:
        """The file of the prepared tensors."""
        return prepared_file(self.source, self.title, self.settings, self.data_dir, type(self).__module__)

    def prepare_data(self) -> None:
        """Read the source and keep its tensors, unless that has been done; a damaged file is made anew.

        Raises:
            UserError: If the source cannot be had, is odd, or its tensors cannot be kept.
        """
        if self._prepared is not None or self._open():
            return
        if self.file.is_file():
            warnings.warn(f"{self.file} is damaged: these data are prepared anew", stacklevel=2)
        self._prepared = check_prepared(self.title, self.read())
        try:
            self.check()
        finally:
            prepared, self._prepared = self._prepared, None
        values = {"tensors": dict(prepared.tensors), "meta": dict(prepared.meta), "sha256": prepared.fingerprint}
        # Processes that prepare the same data at once all write, each its own file; the last to be moved stays,
        # and any of them serves.
        with writing(self.file.parent), replacing(self.file) as file:
            torch.save({**values, "file": self.file.name}, file)
        if not self._open():
            raise UserError(f"{self.file} is not what was just written there: is the disk or the memory at fault?")

    def check(self) -> None:
        """Refuse tensors, just read and not yet kept, that no model can be trained on.

        Raises:
            UserError: With what is odd.
        """
        for name, count in self.sizes().items():
            if not count:
                raise UserError(f"{self.title}: the split {name} has no examples, expected one at least.")

    def _open(self) -> bool:
        """Map the prepared tensors into memory, if they are there and what was written; say whether they are."""
        try:
            values = _loaded(self.file)
            prepared, name = Prepared(values["tensors"], values["meta"]), values["file"]
            # All of them are read, at some hundred MB a second: a bit that has flipped on the disk would train as well.
            intact = (name, prepared.fingerprint) == (self.file.name, values["sha256"])
        except Exception:  # of many kinds: a file that is absent, cut short, or whose bits say something else
            return False
        if intact:
            self._prepared, self.fingerprint = prepared, values["sha256"]
        return intact

    def setup(self, stage: str | None = None) -> None:
        """Map the prepared tensors into memory, unless that has been done."""
        if self._prepared is None and not self._open():
            raise RuntimeError(f"{self.title} is not prepared in {self.file}: call prepare_data() first")

    def model_arguments(self) -> dict[str, Any]:
        """Return the keyword arguments that a model for this data needs; prepares the data if need be."""
        if self._prepared is None:
            self.prepare_data()
            self.setup()
        return self.describe()

    def sizes(self) -> dict[str, int]:
        """Return the number of examples in every split."""
        return {name: len(self.split(name)[0]) for name in SPLITS}  # type: ignore[arg-type]

    def padding(self) -> float | None:
        """Return the share of padding among the tokens of the first training epoch; None where nothing is padded."""
        return None

    def chance(self) -> dict[str, float]:
        """Return what the best constant prediction reaches on the test split, by metric; nothing if it is not known."""
        return {}

    def train_dataloader(self) -> DataLoader[Any]:
        """Return shuffled batches, in an order that seed and epoch decide."""
        data, lengths = self.split("train")
        batches = Batches(len(data), self.batch_size, self.seed, lengths, self.start, self.share)  # type: ignore[arg-type]
        batches.still = bool(getattr(self.trainer, "overfit_batches", 0))
        near = self._near(data)
        return loader(near, batches, self.goes_to_gpu and near is data)

    def val_dataloader(self) -> DataLoader[Any]:
        """Return every validation example once."""
        return self._evaluation("val")

    def test_dataloader(self) -> DataLoader[Any]:
        """Return every test example once."""
        return self._evaluation("test")

    def predict_dataloader(self) -> DataLoader[Any]:
        """Return every test example once, in the order of the data, so that predictions are too."""
        return self._all_of(self.split("test")[0])

    def beyond(self, factors: Sequence[float]) -> Iterator[tuple[str, DataLoader[Any]]]:
        """Yield the test split at other sizes, each with a label such as ``2x``, and controls, labelled by a word.

        Args:
            factors: Lengths, or image sides, in multiples of those in training.
        """
        yield from ()

    def untestable(self, factors: Sequence[float]) -> dict[float, str]:
        """Return the sizes that these data cannot be tested at, each with the reason; `beyond` leaves them out."""
        return {}

    def _evaluation(self, name: str) -> DataLoader[Any]:
        data, lengths = self.split(name)
        return self._all_of(data, lengths)

    def _all_of(self, data: Dataset[Any], lengths: Tensor | None = None, size: float = 1.0) -> DataLoader[Any]:
        """Return every example once; fewer at a time where they are `size` times as large as in training."""
        most = len(data) // self.share[1]  # type: ignore[arg-type]  # every process needs a batch, or Lightning fails
        batch_size = max(1, min(round(2 * self.batch_size / size), most))
        batches = Batches(len(data), batch_size, None, lengths, share=self.share)  # type: ignore[arg-type]
        return loader(data, batches, self.goes_to_gpu)

    def _near(self, data: Dataset[Any]) -> Dataset[Any]:
        """Return training data on the GPU that they go to, where they take a twentieth of its free memory at most."""
        if not (self.trainer and self.goes_to_gpu):
            return data
        device, size = self.trainer.strategy.root_device, sum(t.nbytes for t in self.prepared.tensors.values())
        return on_device(data, device) if 20 * size < torch.cuda.mem_get_info(device)[0] else data

    @property
    def share(self) -> tuple[int, int]:
        """Index of this process, and the number of processes of the Trainer, which deal the batches out among them."""
        return (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)

    @property
    def goes_to_gpu(self) -> bool:
        """True if batches go to a GPU, which waits for its earlier work before it copies from memory not pinned."""
        return self.trainer is not None and self.trainer.strategy.root_device.type == "cuda"


def _loaded(path: Path) -> dict[str, Any]:
    """Return what `torch.save` wrote to a file, mapped into memory: processes on one machine share the pages."""
    try:
        return torch.load(path, weights_only=True, mmap=True)  # type: ignore[no-any-return]
    except UnicodeEncodeError:  # torch maps no file whose path is not Unicode, as paths of Linux need not be
        with path.open("rb") as file:
            return torch.load(file, weights_only=True)  # type: ignore[no-any-return]


def loader(data: Dataset[Any], batches: Batches, pinned: bool) -> DataLoader[Any]:
    """Return a loader of whole batches: each index tensor reaches the data set as it is, so a batch is one gather."""
    # No worker processes: the tensors are in memory, and a gather is cheap.
    return DataLoader(data, sampler=batches, batch_size=None, pin_memory=pinned)


def commonest_share(tensors: Mapping[str, Tensor]) -> dict[str, float]:
    """Return the accuracy on the test labels of the class that is the most frequent one in training."""
    commonest = tensors["train_labels"].flatten().bincount().argmax()
    return {"accuracy": (tensors["test_labels"] == commonest).double().mean().item()}


def every_tenth(count: int) -> tuple[Tensor, Tensor]:
    """Return the indices of the training and the validation part: the 10th, 20th, ... example validates.

    Example:
        >>> every_tenth(20)[1].tolist()
        [9, 19]
    """
    index = torch.arange(count)
    held_out = index % 10 == 9
    return index[~held_out], index[held_out]
