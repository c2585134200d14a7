"""Sources of data: a local folder, a cache, or the network by each library's normal route. No torch here."""

import contextlib
import errno
import hashlib
import json
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from pathlib import Path
from typing import Any

from pebench.encodings.origins import digest, source_of
from pebench.errors import UserError, given_path

PROBE_S = 3.0
"""Longest wait for the network before it counts as absent, in seconds."""

PREPARATION = 8
"""Version of the way from source to tensors: raise it with a change, so that older prepared files are not used."""


OF_A_DISK = {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOTDIR,
    errno.EEXIST, errno.EISDIR, errno.ENAMETOOLONG, errno.ELOOP,
}  # fmt: skip
"""Numbers of the errors of a folder or a disk, as opposed to those of a network."""


def data_folder(given: Path | str | None) -> Path | None:
    """Return the folder of local data: the given one, else that of ``PEBENCH_DATA_DIR``; empty counts as none."""
    folder = given or os.environ.get("PEBENCH_DATA_DIR")
    return given_path("data_dir", folder) if folder else None


@dataclass(frozen=True)
class Source:
    """A data set outside this package.

    Args:
        title: Its name in messages and file names.
        local: Its files in a local data folder.
        url: The address of the download, or of the site that is asked whether it can be reached.
        hub: Its name on the Hugging Face hub, if it is there.
        config: Its configuration on the hub, if it has several.
        pin: Commit on the hub, or checksum.
        contents: SHA-256 of what is read of it, by split or file; see `check_contents`.
    """

    title: str
    local: str
    url: str
    hub: str | None = None
    config: str | None = None
    pin: str = ""
    contents: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    @property
    def folder(self) -> str:
        """Its folder in a local data folder."""
        return self.local.split("/")[0]

    @property
    def site(self) -> str:
        """The address that shows whether the network is there: that of the hub that the user has chosen, or `url`."""
        return hub_site() if self.hub else self.url

    def __str__(self) -> str:
        where = f"{self.hub}{f', {self.config},' if self.config else ''} at" if self.hub else f"{self.url},"
        return f"{where} {self.pin}"


# Each pin is a commit of the hub: a data set that its owner changes there stays the same one here.
HUB = "https://huggingface.co"
IMDB = Source(
    "imdb", "imdb/*.parquet", HUB, "stanfordnlp/imdb", None, "e6281661ce1c48d982bc483cf8a173c1bbeb5d31",
    contents={
        "train": "bd49211c7634d70eff6fa41d3ece6d9bf8795d26d73080d2b844751f126804da",
        "test": "550156f9ac00135e0367acbc9a0f4f090662db731f81bd50ff2eb1b508b5749b",
    },
)  # fmt: skip
IMDB_TEXT = replace(IMDB, title="imdb-text")  # the same files: titles tell prepared data apart
SST2 = Source(
    "sst2", "sst2/*.parquet", HUB, "stanfordnlp/sst2", None, "8d51e7e4887a4caaa95b3fbebbf53c0490b58bbb",
    contents={
        "train": "c44d15c1f563b75ae962f5be056844433316cbcf839ccdbc5c7a8045f59b3396",
        "validation": "523ad5f4ac81a984ac32593d4040a1ecf98595a575d70ecc7220d394359cb810",
    },
)  # fmt: skip
AG_NEWS = Source(  # contents not known: no published run holds them
    "ag_news", "ag_news/*.parquet", HUB, "fancyzhx/ag_news", None, "eb185aade064a813bc0b7f42de02595523103ca4"
)
NEWSGROUPS = Source(
    "20_newsgroups", "20_newsgroups/*.parquet", "https://figshare.com",
    pin="read by scikit-learn, which checks SHA-256 8f1b2514ca22a5ade8fbb9cfa5727df95fa587f4c87b786e15c759fa66d95610",
    contents={
        "train": "148145c5ae5a17c3618753b3c3778f5f49e00a4c891bf739b16f5b29a8205446",
        "test": "09be6c59a6c61eeacd937b87817f9f23ed3abe72a6d9130577fda75e7a7c0a55",
    },
)  # fmt: skip
WIKITEXT2 = Source(
    "wikitext2", "wikitext-2-v1/*.parquet", HUB, "Salesforce/wikitext", "wikitext-2-v1",
    "b08601e04326c79dfdd32d625aee71d232d685c3",
    contents={
        "train": "5c051504560e91dba69fafa0644af71583476afcd12d5c71aca71989b1e51e25",
        "validation": "cc5587e925687c37417f7211a57b1fbf1b0b9df50e9a85f37ef5eb031bd5de3a",
        "test": "c7649fd0c9d966e1f2a6d28c5017695e227ff256b94fa36cddbb33257d413d08",
    },
)  # fmt: skip
WIKITEXT2_PAIRS = replace(WIKITEXT2, title="wikitext2-pairs")
CIFAR10 = Source(
    "cifar10", "cifar-10-batches-py/", "https://www.cs.toronto.edu/~kriz/cifar.html",
    pin="read and downloaded by torchvision, which checks MD5 c58f30108f718f92721af3b95e74349a",
)  # fmt: skip
SHAKESPEARE = Source(
    "tiny_shakespeare", "tiny_shakespeare/input.txt",
    "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
    pin="86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
    contents={"input.txt": "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"},
)  # fmt: skip


def cache_folder() -> Path:
    """Return the folder of downloads and prepared data: ``PEBENCH_CACHE_DIR``, or pebench in the user's cache."""
    if named := os.environ.get("PEBENCH_CACHE_DIR"):
        return Path(named)
    return _user_caches("PEBENCH_CACHE_DIR") / "pebench"


def hub_folder() -> Path:
    """Return the folder of the Hugging Face libraries: ``HF_HOME``, or huggingface in the user's cache."""
    return Path(os.environ.get("HF_HOME") or _user_caches("HF_HOME") / "huggingface")


def _user_caches(variable: str) -> Path:
    if named := os.environ.get("XDG_CACHE_HOME"):
        return Path(named)
    try:
        return Path.home() / ".cache"
    except RuntimeError as error:  # as in a container whose user has no entry in its list of users
        raise UserError(f"this user has no home folder: set {variable} to a folder that can be written.") from error


@contextlib.contextmanager
def writing(folder: Path, variable: str = "PEBENCH_CACHE_DIR") -> Iterator[None]:
    """Name the folder of a cache, and the variable that names another one, where it cannot be written.

    Args:
        folder: The folder.
        variable: The variable.

    Raises:
        UserError: For a disk that is full, and whatever else is of the folder; other errors are left as they are.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in OF_A_DISK:
            raise
        raise UserError(
            f"the cache {str(folder)!r} cannot be written ({error.strerror}): "
            f"make room for it, or set {variable} to a folder that can be written."
        ) from error


def files_folder(data_dir: Path | None) -> Path:
    """Return the folder of files that no library caches: the local data folder if one is used, else our downloads."""
    return data_dir or cache_folder() / "downloads"


def hub_site() -> str:
    """Return the address of the hub: Hugging Face's, or that in ``HF_ENDPOINT``."""
    return os.environ.get("HF_ENDPOINT", HUB)


def offline() -> bool:
    """Return True if the user has forbidden the network: ``--offline``, ``PEBENCH_OFFLINE`` or ``HF_HUB_OFFLINE``."""
    names = ("PEBENCH_OFFLINE", "HF_HUB_OFFLINE")
    return any(os.environ.get(name, "").lower() in ("1", "on", "true", "yes") for name in names)


def reachable(url: str, seconds: float | None = None) -> bool:
    """Return True if a server answers at all, proxies included, within so many seconds (`PROBE_S`)."""
    seconds = PROBE_S if seconds is None else seconds
    if offline():
        return False
    answered, done = [], threading.Event()

    def ask() -> None:
        try:
            # HEAD, as the address may be that of a large file.
            urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=seconds).close()
            answered.append(True)
        except urllib.error.HTTPError:
            answered.append(True)  # a refusal is an answer
        except (OSError, ValueError, HTTPException):
            pass
        finally:
            done.set()

    threading.Thread(target=ask, daemon=True).start()  # name look-up obeys no time-out of ours
    done.wait(seconds)
    return bool(answered)


def prepared_file(
    source: Source | None, title: str, settings: Mapping[str, Any], data_dir: Path | None, module: str = ""
) -> Path:
    """Return the file that keeps the tensors made of a source.

    Args:
        source: The data's source; None if it is embedded.
        title: The data's title.
        settings: Everything else that the tensors depend on.
        data_dir: Local data folder, if one is used; a changed file in it changes the name.
        module: The module of the class that prepares them; outside pebench a change in its file changes the name.
    """
    origin = "embedded" if source is None else str(source)
    if source and data_dir:
        folder = data_dir / source.folder
        # Name, size and time stand for the content, which would take long to read before every run.
        stats = [(path.name, path.stat()) for path in sorted(folder.rglob("*")) if path.is_file()]
        origin = repr([(name, stat.st_size, stat.st_mtime_ns) for name, stat in stats])
    parts = [PREPARATION, title, origin, settings]
    if module and module.split(".")[0] != "pebench":  # ours raise PREPARATION instead
        parts.append(digest(source_of(module)))
    identity = json.dumps(parts, sort_keys=True)
    return cache_folder() / f"{title}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}.pt"


def check_available(source: Source, data_dir: Path | None) -> None:
    """Find out in seconds whether data can be had, before anything heavy is loaded.

    Args:
        source: The data's source, which has not been prepared on this machine.
        data_dir: Local data folder, if one is used.

    Raises:
        UserError: If it cannot, naming both ways out.
    """
    if data_dir is not None:
        if not any(data_dir.glob(source.local.rstrip("/"))):
            raise UserError(
                f"{source.title} is not in the local data folder: expected {data_dir / source.local}. "
                "Put a copy there, or leave out --data-dir (and unset PEBENCH_DATA_DIR)"
                f"{' and --offline' if offline() else ''} to download it."
            )
    elif not downloaded(source) and not reachable(source.site):
        why = "the network is forbidden (--offline)" if offline() else "the network cannot be reached"
        raise UserError(
            f"{source.title} is not on this machine and {why}. Either run once with network access, which downloads "
            f"it, or pass --data-dir DIR (or set PEBENCH_DATA_DIR) with a copy in DIR/{source.local}."
        )


def check_contents(source: Source, part: str, found: str, place: str) -> None:
    """Hold what was read to the published data set; a part whose checksum is not known passes.

    Args:
        source: The data's source.
        part: A split, or a file.
        found: SHA-256 of its contents: those of a table's rows (`pebench.data.tables.Rows`), or of a text in UTF-8.
        place: The part's name in messages.

    Raises:
        UserError: If it is another one.
    """
    expected = source.contents.get(part, found)
    if found != expected:
        raise UserError(
            f"{place} is not what was published as {source.title}: expected contents of SHA-256 {expected}, got "
            f"{found}. It is damaged or of another version: replace it, by that of {source}. Data of your own: "
            "pebench run --data FILE."
        )


def downloaded(source: Source) -> bool:
    """Return True if an earlier download is on this machine."""
    if source.hub is None:
        return any(files_folder(None).glob(source.local.rstrip("/")))
    hub = Path(os.environ.get("HF_HUB_CACHE") or hub_folder() / "hub")
    # The layout of the hub's own cache, read without its package: importing that takes longer than this look.
    return (hub / f"datasets--{source.hub.replace('/', '--')}" / "snapshots" / source.pin).is_dir()
