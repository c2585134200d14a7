"""What surrounds the code agrees with it: versions, the changelog, the workflow, the image and the hooks."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from pebench import __version__

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
FORMS = sorted(path.name for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def parsed(path: str) -> Any:
    return yaml.safe_load(read(path))


def releases() -> list[tuple[str, str]]:
    """The changelog's sections: a heading without its marks, and the lines below it."""
    found = re.findall(r"^## (.*)\n((?:(?!## ).*\n)*)", read("CHANGELOG.md"), re.MULTILINE)
    assert found
    return found


def test_citation_and_changelog_name_the_version_of_the_package() -> None:
    citation = parsed("CITATION.cff")
    (unreleased, _), (newest, _), *_ = releases()
    assert unreleased == "[Unreleased]"
    assert newest == f"[{__version__}] - {citation['date-released']}"
    assert citation["version"] == __version__


def test_releases_of_the_changelog_are_short_and_in_order() -> None:
    headings = [heading for heading, _ in releases()[1:]]
    dates = [heading.partition(" - ")[2] for heading in headings]
    numbers = [tuple(map(int, heading.partition("]")[0].lstrip("[").split("."))) for heading in headings]
    assert dates == sorted(dates, reverse=True)
    assert numbers == sorted(numbers, reverse=True)
    assert {heading: text.count("\n") for heading, text in releases() if text.count("\n") >= 150} == {}
    kinds = set(re.findall(r"^### (.*)$", read("CHANGELOG.md"), re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_workflow_runs_what_a_submission_is_held_to_on_the_oldest_and_newest_python() -> None:
    workflow = parsed(".github/workflows/ci.yml")
    check = workflow["jobs"]["check"]
    assert [step["run"] for step in check["steps"] if "run" in step] == [".ci/run"]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    supported = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r"Python :: \d\.\d+$", line)]
    assert PROJECT["requires-python"] == f">={supported[0]}"
    assert check["strategy"]["matrix"]["python"] == [supported[0], supported[-1]]
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["cancel-in-progress"] is True


def test_every_job_ends_and_its_commands_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", read("Makefile"), re.MULTILINE))
    for job in parsed(".github/workflows/ci.yml")["jobs"].values():
        assert job["timeout-minutes"] <= 360  # where GitHub ends it
        for command in (step["run"] for step in job["steps"] if "run" in step):
            assert command == ".ci/run" or command.removeprefix("make ") in targets


@pytest.mark.parametrize("name", FORMS)
def test_a_form_asks_for_what_it_needs(name: str) -> None:
    form = parsed(f".github/ISSUE_TEMPLATE/{name}")
    assert {"name", "description", "body"} <= set(form)
    ids = [field["id"] for field in form["body"]]
    assert len(ids) == len(set(ids))
    assert any(field.get("validations", {}).get("required") for field in form["body"])
    assert all(field["attributes"]["label"] for field in form["body"])


def test_the_image_holds_what_the_package_is_built_from() -> None:
    """A file that a wheel needs is copied, and not kept from the build context."""
    dockerfile, ignored = read("Dockerfile"), read(".dockerignore").splitlines()
    wheel = tomllib.loads(read("pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {PROJECT["readme"], *PROJECT["license-files"], *wheel["force-include"], "pyproject.toml", "src"}
    copied = {word for line in re.findall(r"^COPY (.*) \S+$", dockerfile, re.MULTILINE) for word in line.split()}
    assert copied == needed
    assert {line.removeprefix("!") for line in ignored if line.startswith("!")} == needed
    for package in re.findall(r"'(torch[^']*)'", dockerfile):  # installed first, and held to the same versions
        assert package in PROJECT["dependencies"]
    assert re.search(r"^USER [1-9]\d*$", dockerfile, re.MULTILINE)


def test_hooks_of_pre_commit_look_where_make_lint_looks() -> None:
    hooks = {hook["id"]: hook for repo in parsed(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"]}
    assert set(hooks) == {"ruff-check", "ruff-format", "end-of-file", "yaml", "large-files"}
    (folders,) = set(re.findall(r"ruff \w+ (?:--\w+ )?(src .*)$", read("Makefile"), re.MULTILINE))
    for name in ("ruff-check", "ruff-format"):
        assert hooks[name]["files"] == f"^({'|'.join(folders.split())})/"
        assert hooks[name]["language"] == "system"  # the ruff of the extra `dev`, not a second one
