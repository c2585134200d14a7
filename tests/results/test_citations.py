"""What is cited: a complete bibliography without loose ends, and the right entries for what is asked."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from pebench import __version__
from pebench.cli import main
from pebench.config import CORE_ENCODINGS
from pebench.encodings.registry import encoding_cards, load_encoding, parts_of
from pebench.results.citations import OWN, bibliography, bibtex, fields_of, keys_of, link, sources, without_latex
from pebench.results.tables import build_tables
from pebench.results.writers.markdown import cite, inline
from pebench.runs.suite import suite_files
from pebench.tasks import TASKS
from tests.results.published import published

ROOT = Path(__file__).parents[2]
VENUE = {"inproceedings": "booktitle", "article": "journal", "techreport": "institution"}


def keys_in(text: str) -> list[str]:
    return re.findall(r"^@\w+\{([^,\s]+),$", text, re.MULTILINE)


@pytest.mark.parametrize("name", encoding_cards())
def test_every_encoding_says_in_its_own_class_what_to_cite(name):
    assert vars(load_encoding(name))["cite"] == encoding_cards()[name].declared["cite"] != ()
    assert keys_of(name) <= set(bibliography())


@pytest.mark.parametrize("name", TASKS)
def test_every_task_says_what_to_cite(name):
    assert set() < keys_of(name) <= set(bibliography())


def test_every_entry_is_cited_by_something():
    used = {key for name in [*encoding_cards(), *TASKS] for key in keys_of(name)}
    beside = {one.cite for task in TASKS.values() for one in task.published}
    assert used | beside == set(bibliography())


def test_keys_are_unique_and_none_is_lost():
    written = keys_in((ROOT / "src/pebench/results/references.bib").read_text(encoding="utf-8"))
    assert len(written) == len(set(written)) == len(bibliography()) - 1


@pytest.mark.parametrize("key", bibliography())
def test_words_of_an_entry_have_no_latex_in_them(key):
    fields = fields_of(bibliography()[key])
    shown = [link(key).text, link(key).title, without_latex(fields["author"]), without_latex(fields["title"])]
    assert not [words for words in shown if set(words) & set("\\{}")]


def test_letters_and_accents_are_those_of_the_name():
    assert (
        without_latex(r"{\O}hrstr{\o}m, Veli{\v{c}}kovi{\'c} and G{\"u}ldenring")
        == "Øhrstrøm, Veličković and Güldenring"
    )


@pytest.mark.parametrize("key", bibliography())
def test_an_entry_is_bibtex_with_the_fields_of_its_kind(key):
    entry = bibliography()[key]
    kind = entry[1 : entry.index("{")]
    fields = fields_of(entry)
    assert entry.count("\n") == len(fields) + 1  # the head, a line for each field, the end
    assert re.fullmatch(rf"@{kind}\{{{key},\n.*\n\}}", entry, re.DOTALL)
    assert {"author", "title", "year", VENUE.get(kind, "title")} <= set(fields)
    assert re.fullmatch(r"19\d\d|20\d\d", fields["year"])
    assert key == OWN or fields["year"] in key
    assert all(balanced(value) for value in fields.values())
    if "eprint" in fields:
        assert re.fullmatch(r"\d{4}\.\d{4,5}", fields["eprint"])
        assert fields["archiveprefix"] == "arXiv"


def balanced(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth < 0:
            return False
    return depth == 0


@pytest.mark.parametrize("name", encoding_cards())
def test_every_paper_that_an_encoding_cites_is_named_in_its_docstring(name):
    text = Path(sys.modules[load_encoding(name).__module__].__file__ or "").read_text(encoding="utf-8")
    for key in keys_of(name) - {OWN}:
        number = fields_of(bibliography()[key]).get("eprint")
        inner = {part for part, _ in parts_of(name, {}) if part != name}  # what it wraps has its own
        if number and key not in {other for part in inner for other in keys_of(part)} and name not in BY_REFERENCE:
            assert f"arxiv.org/abs/{number}" in text


BY_REFERENCE = {"add", "concat-wide"}  # whose docstrings name another file that names the paper


def test_pebench_itself_is_cited_as_its_citation_file_says():
    facts = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    fields = fields_of(bibliography()[OWN])
    assert fields["title"] == facts["title"]
    assert fields["version"] == facts["version"] == __version__
    assert fields["author"] == "{The pebench authors}"


def test_what_wraps_others_cites_them_too():
    assert keys_of("stack(first='alibi', second='rope')") == (
        keys_of("alibi") | keys_of("rope") | set(encoding_cards()["stack"].declared["cite"])
    )


@pytest.mark.parametrize("name", suite_files())
def test_a_suite_cites_pebench_its_data_and_its_encodings(name):
    assert OWN in keys_of(name)
    if name == "core":
        assert keys_of("core") == {OWN}.union(
            *map(keys_of, ("vit-cifar10", "text-sst2", "text-imdb", "lm-wikitext2", *CORE_ENCODINGS))
        )


def test_no_model_is_built_to_say_what_a_matched_suite_cites(monkeypatch):
    monkeypatch.setattr("pebench.runs.suite.declaration.matched", None)
    assert keys_of("fusion-parameters") >= keys_of("concat-qk")


def test_texts_do_not_cite_works_on_images(capsys):
    assert keys_of("rope") - keys_of("rope", images=False) == {"heo2024rotary"}
    assert keys_of("stack(first='add', second='rope')", images=False) >= {"heo2024rotary"}  # it names no other
    assert "he2022masked" in keys_of("add") & keys_of("core")
    assert "he2022masked" not in keys_of("shakespeare")
    for task, count in (("lm-wikitext2", 0), ("vit-cifar10", 1)):
        assert main(["cite", "rope", task]) == 0
        assert keys_in(capsys.readouterr().out).count("heo2024rotary") == count


def test_the_command_prints_each_entry_once(capsys):
    assert main(["cite", "add", "concat", "vit-cifar10"]) == 0
    out = capsys.readouterr().out
    assert keys_in(out) == sorted(keys_of("add") | keys_of("concat") | keys_of("vit-cifar10"))
    assert "Attention Is All You Need" in out


def test_the_command_prints_pebench_without_a_name(capsys):
    assert main(["cite"]) == 0
    assert keys_in(capsys.readouterr().out) == [OWN]


def test_an_unknown_name_is_refused_with_the_nearest(capsys):
    assert main(["cite", "roep"]) == 2
    assert "Did you mean 'rope'?" in capsys.readouterr().err


def test_an_encoding_of_ones_own_that_names_nothing_is_told_how(tmp_path, monkeypatch, capsys):
    (tmp_path / "mute_one.py").write_text(
        "from pebench import PositionalEncoding\nclass Mute(PositionalEncoding):\n    '''Says nothing.'''\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["cite", "mute_one:Mute"]) == 2
    assert "attribute `cite`" in capsys.readouterr().err


def test_a_table_names_its_keys_and_a_command_that_prints_just_these():
    for table in build_tables(published()):
        works, command = re.fullmatch(r"Cite: (.*); as BibTeX: `pebench cite (.*)`\.", cite(sources([table]))).groups()
        keys = sources([table]).keys
        assert keys_in(bibtex(command.split())) == list(keys)
        assert works == ", ".join(inline((link(key),)) for key in keys)
        assert set(table.task.cite) < set(keys)


def test_a_work_is_named_as_a_text_would_and_linked_where_it_is_to_be_had():
    assert inline((link("vaswani2017attention"),)) == "[Vaswani et al. 2017](https://arxiv.org/abs/1706.03762)"
    assert inline((link("hallam2026fusion"),)) == "[Hallam and Tseng 2026](https://arxiv.org/abs/2601.05807)"
    assert inline((link("krizhevsky2009learning"),)) == "Krizhevsky 2009"


def test_a_table_does_not_depend_on_packages_of_others():
    records = published()
    strange = [
        replace(r, config=replace(r.config, encoding="nobody:Has")) for r in records if r.config.encoding == "rope"
    ]
    strange += [r for r in records if r.config.encoding != "rope"]
    for table in build_tables(strange):
        assert "nobody" not in cite(sources([table]))
        assert "Vaswani et al. 2017" in cite(sources([table]))


def test_citing_needs_no_torch():
    code = "import sys; from pebench.cli import main; main(['cite', 'core']); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, timeout=60)
