"""Data by property: whatever a file of a cache or of a data folder holds, the right data or one message by name."""

import itertools
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import strategies as st

from pebench.config import Options
from pebench.data import datamodule
from pebench.engine.executors.server import _prepare
from pebench.tasks import configure, sources
from tests.data.copies import write_ag_news
from tests.reliability.test_bad_inputs import EXAMPLES, try_all

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*is damaged.*:UserWarning")]


@st.composite
def damaged(draw: st.DrawFn, content: bytes) -> bytes:
    """Return a file's content as a disk, a copy that was broken off, or a hand may leave it."""
    place = draw(st.integers(0, len(content) - 1))
    kind = draw(st.sampled_from(["cut", "flipped", "zeroed", "longer", "another"]))
    if kind == "cut":
        return content[:place]
    if kind == "flipped":
        return content[:place] + bytes([content[place] ^ 1 << draw(st.integers(0, 7))]) + content[place + 1 :]
    if kind == "zeroed":
        return content[:place] + bytes(min(512, len(content) - place)) + content[place + 512 :]
    other = draw(st.binary(max_size=200))
    return content[:place] + other + content[place:] if kind == "longer" else other


def test_damaged_prepared_data_are_the_same_data_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path / "cache"))
    first = datamodule("text-order")
    first.prepare_data()
    first.setup()
    content = first.file.read_bytes()

    def check(given: bytes) -> None:
        first.file.unlink()  # not in place: it is mapped
        first.file.write_bytes(given)
        again = datamodule("text-order")
        again.prepare_data()
        again.setup()
        assert again.fingerprint == first.fingerprint
        assert [path.name for path in first.file.parent.iterdir()] == [first.file.name]

    record_property("injections", try_all(damaged(content), check, EXAMPLES))


def test_a_damaged_table_is_named_or_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
) -> None:
    monkeypatch.setattr(sources, "check_contents", lambda *_: None)  # a small copy is not what was published
    monkeypatch.setenv("PEBENCH_OFFLINE", "1")
    write_ag_news(tmp_path / "data")
    config = configure("text-agnews", "add", 0, "smoke")
    (table,) = (tmp_path / "data" / "ag_news").glob("train*")
    content, numbers = table.read_bytes(), itertools.count()

    def check(given: bytes) -> None:
        cache = tmp_path / f"cache{next(numbers)}"  # what was prepared is not read again
        monkeypatch.setenv("PEBENCH_CACHE_DIR", str(cache))
        table.write_bytes(given)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            problems = _prepare([config], Options(tmp_path, data_dir=tmp_path / "data"), lambda _: None)
        for problem in problems:
            assert problem.startswith("text-agnews: ")
            assert str(table) in problem
            assert len(problem) < 1000
            assert not [path for path in cache.rglob("*") if path.is_file()]
        shutil.rmtree(cache, ignore_errors=True)

    record_property("injections", try_all(damaged(content), check, EXAMPLES))
