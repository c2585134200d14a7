"""Runs on a Ray cluster of two nodes, which are groups of processes on this machine."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pebench.config import RunConfig
from pebench.engine.progress import Display
from pebench.errors import UserError
from pebench.runs.leases import holder_of
from pebench.tasks import configure

ray = pytest.importorskip("ray", reason="needs Ray: pip install '.[ray]'")

from ray.cluster_utils import Cluster  # noqa: E402

from pebench.engine.executors.ray import execute  # noqa: E402

pytestmark = [pytest.mark.cluster, pytest.mark.xdist_group("ray")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        cluster.add_node(num_cpus=1)
        yield cluster
        cluster.shutdown()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def long(seed: int) -> RunConfig:
    return configure("vit-digits", "rope", seed, "smoke", {"train.max_steps": 1000, "train.evaluations": 5})


def test_every_run_leaves_its_record(
    cluster: Cluster, do: Callable[..., Any], expected: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PEBENCH_CACHE_DIR", str(tmp_path))  # the nodes do not have this from the environment
    expected.check(do(execute, expected.plan, jobs=0, address=cluster.address))
    assert not ray.is_initialized()
    assert len(list(tmp_path.iterdir())) > 0


def test_data_of_a_user_are_found(cluster: Cluster, check_own_data: Callable[..., None]) -> None:
    check_own_data(execute, address=cluster.address)


def test_a_run_whose_node_is_lost_is_done_on_another(cluster: Cluster, do: Callable[..., Any], tmp_path: Path) -> None:
    (node,) = cluster.worker_nodes
    (raylet,) = node.all_processes["raylet"]

    def hook(config: RunConfig, step: int) -> None:
        holder = holder_of(tmp_path / config.directory)
        if cluster.worker_nodes and holder and parent_of(holder.pid) == raylet.process.pid:
            cluster.remove_node(node, allow_graceful=False)

    outcome = do(execute, [long(0), long(1)], hook, out=tmp_path, address=cluster.address)
    assert not cluster.worker_nodes
    cluster.add_node(num_cpus=1)
    assert outcome.statuses == ["ok", "ok"]
    assert sum("is started again" in line for line in outcome.lines) == 1
    assert len(list(tmp_path.rglob("record.json"))) == 2
    assert not list(tmp_path.rglob("failure.json"))


def test_a_run_whose_worker_is_killed_is_started_again_but_not_for_ever(
    cluster: Cluster, check_killed: Callable[..., None]
) -> None:
    check_killed(execute, address=cluster.address)


def test_a_run_that_hangs_is_ended(cluster: Cluster, check_hanging: Callable[..., None]) -> None:
    check_hanging(execute, address=cluster.address)


def test_an_interrupt_ends_what_runs(cluster: Cluster, check_interrupt: Callable[..., Any]) -> None:
    check_interrupt(execute, address=cluster.address)


def test_a_run_that_fits_no_node_waits_for_one(
    cluster: Cluster, do: Callable[..., Any], expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = []

    def note(display: Display, message: str) -> None:
        if message.endswith("has 3 CPUs and 0 GPUs for a run: waiting for one"):
            added.append(cluster.add_node(num_cpus=3))

    monkeypatch.setattr(Display, "note", note)
    outcome = do(execute, expected.plan[:1], address=cluster.address, num_cpus="3")
    assert outcome.statuses == ["ok"]
    assert outcome.records[0].environment["threads"] == 1  # as the options say
    assert len(added) == 1
    cluster.remove_node(added[0])


def test_mistakes_are_told_in_a_line(do: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError, match="Did you mean 'num_gpus'"):
        do(execute, [], gpus="1")
    with pytest.raises(UserError, match="num_cpus expects a number that is not negative, got -1"):
        do(execute, [], num_cpus="-1")
    with pytest.raises(UserError, match=r"^no connection to Ray: .*refused"):
        do(execute, [], address="127.0.0.1:1")
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    with pytest.raises(UserError, match=r"^no connection to Ray: .*refused"):
        do(execute, [])
