"""Labelled texts of the Hugging Face hub, by their name there and a commit. No torch here."""

import re
from collections.abc import Mapping

from pebench.errors import UserError
from pebench.formatting import first_line
from pebench.tasks import sources
from pebench.tasks.own.files import SPLIT_NAMES, require_train
from pebench.tasks.own.tables import Texts, add_rows

PINNED = re.compile(r"([\w.-]+/)?[\w.-]+@[0-9a-f]{40}")
"""The name of a data set with a commit, as records hold it."""


def pinned(name: str, revision: str) -> str:
    """Return the name of a data set with the commit that a revision is now: ``owner/name@0123...``.

    Args:
        name: Name on the hub, perhaps with a commit already.
        revision: A commit, branch or tag; empty takes the newest.

    Raises:
        UserError: If the hub does not have it, or cannot be asked.
    """
    if PINNED.fullmatch(name):
        return name
    if PINNED.fullmatch(f"{name}@{revision}"):
        return f"{name}@{revision}"
    if sources.offline():
        raise UserError(f"{name}: the network is forbidden (--offline), so name the commit, as revision=0123...")
    from huggingface_hub import HfApi, errors

    try:
        commit = HfApi().dataset_info(name, revision=revision or None, timeout=10).sha
    except errors.GatedRepoError as error:
        raise UserError(
            f"the hub's data set {name!r} asks for your consent: give it on its page, then `hf auth login`."
        ) from error
    except errors.RepositoryNotFoundError as error:  # the hub does not tell the two apart
        raise UserError(
            f"the hub has no data set {name!r}, or it is private: look at its name, or `hf auth login`."
        ) from error
    except errors.RevisionNotFoundError as error:
        raise UserError(f"the hub's data set {name!r} has no revision {revision!r}.") from error
    except Exception as error:  # of many kinds
        if not sources.reachable(sources.hub_site()):
            raise UserError(
                f"{name}: {sources.hub_site()} cannot be reached. Look at the network, or give a copy of your own: "
                "texts(path=FILE)."
            ) from error
        raise UserError(f"the hub's data set {name!r} cannot be found: {first_line(error)}.") from error
    return f"{name}@{commit}"


def read_hub(name: str, options: Mapping[str, str]) -> Texts:
    """Return the labelled texts of a data set of the hub.

    Args:
        name: Its name with a commit, as `pinned` returns it.
        options: ``config``, if it has several, and names of columns as in `pebench.tasks.own.tables.read_texts`.

    Raises:
        UserError: If it cannot be had, lacks a column, or holds rows that cannot be.
    """
    import datasets

    place, _, commit = name.partition("@")
    datasets.disable_progress_bars()
    try:
        with sources.writing(sources.hub_folder(), "HF_HOME"):
            data = datasets.load_dataset(place, options.get("config") or None, revision=commit)
    except UserError:
        raise
    except Exception as error:  # of many kinds, some of them pyarrow's
        raise UserError(f"the hub's data set {name} cannot be read: {first_line(error)}.") from error
    splits = {split: SPLIT_NAMES.get(split, "") for split in data}
    require_train({part for part in splits.values() if part} or {"none"}, name)
    found = Texts()
    for split, part in splits.items():
        if not part:
            found.remarks.append(f"the split {split} is left out")
            continue
        rows = ((number, list(row.values())) for number, row in enumerate(data[split], 1))
        add_rows(found, data[split].column_names, rows, options, f"{name}, split {split}", part)
    return found
