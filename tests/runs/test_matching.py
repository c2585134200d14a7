"""Suites: rows that are equally costly under a regime."""

from dataclasses import replace

import pytest

from pebench.encodings.registry import encoding_cards
from pebench.errors import UserError
from pebench.runs.costs import check_costs, cost
from pebench.runs.suite import serves
from pebench.tasks import configure
from tests.runs.plans import EMBEDDED, NARROW, RATE, asked, keys, matched_regimes, plan_of, scored
from tests.sampling import sampled


@matched_regimes
def test_a_regime_given_as_text_makes_the_runs_of_the_suite(regime: str) -> None:
    assert keys(asked("--pe", "add", "--pe", "learned", "--seeds", "2", "--regime", regime).testing({})) == keys(
        plan_of(encodings=["add", "learned"], regime=regime).testing({})
    )


TOO_COSTLY = ("dape", "deberta", "path")
"""What costs more than `add`'s model even with a feed-forward layer of one channel, on some embedded task."""


MATCHED = [pytest.param(task, regime, id=f"{task}-{regime}") for task in EMBEDDED for regime in ("parameters", "FLOPs")]


@pytest.mark.parametrize(("task", "regime"), sampled(MATCHED, 0.2, lambda task, _: task, lambda _, regime: regime))
def test_every_row_of_a_matched_suite_costs_what_add_does(task: str, regime: str) -> None:
    served = [name for name in encoding_cards() if serves(task, name) and name not in TOO_COSTLY]
    encodings = [*served, ("concat", {"d_p": 8}), ("learned", {"ratio": 0.5})]
    kinds = plan_of(tasks=[task], encodings=encodings, tier="quick", regime=regime).kinds
    target = cost(configure(task, "add", tier="quick")).of(regime)
    assert len(kinds) == len(encodings)
    assert [cost(kind).of(regime) for kind in kinds] == pytest.approx([target] * len(kinds), rel=0.01)
    for kind in kinds:
        usual = configure(task, kind.encoding, 0, "quick", None, kind.encoding_args)
        assert replace(kind, model=usual.model) == replace(usual, regime=regime)  # no more than the model has moved
        assert replace(kind.model, d_ff=None) == usual.model  # and there no more than d_ff


@matched_regimes
@pytest.mark.parametrize("name", ["learned", "t5-bias", "add-proj"])
def test_no_other_width_of_a_matched_row_is_nearer(name: str, regime: str) -> None:
    _, row = plan_of(tasks=["lm-grammar"], encodings=["add", name], tier="quick", regime=regime).kinds
    target, width = (
        cost(configure("lm-grammar", "add", tier="quick")).of(regime),
        row.model.d_ff or 4 * row.model.d_model,
    )
    away = {
        near: abs(cost(replace(row, model=replace(row.model, d_ff=near))).of(regime) - target)
        for near in range(width - 1, width + 2)
    }
    assert min(away, key=lambda near: (away[near], near != width)) == width


def test_a_suite_may_leave_out_what_cannot_serve() -> None:
    names = ["add", "cope", "rope-mixed", ("xpos", {"scale_base": 100.0})]
    kinds = plan_of(tasks=EMBEDDED, encodings=names, where_served=True).kinds
    found = {task: [kind.encoding for kind in kinds if kind.task == task] for task in EMBEDDED}
    assert found == {
        "vit-digits": ["add", "rope-mixed"], "text-order": ["add"], "lm-grammar": ["add", "cope", "xpos"],
    }  # fmt: skip
    with pytest.raises(UserError, match=r"text-order with cope: .*serves causal models alone"):
        check_costs(plan_of(tasks=["text-order"], encodings=names).kinds)


@matched_regimes
def test_the_reference_of_a_matched_suite_is_add_wherever_it_stands(regime: str) -> None:
    names = ["learned", "concat", "add"]
    kinds = plan_of(encodings=names, tier="quick", regime=regime).kinds
    assert kinds[2] == replace(configure("vit-digits", "add", tier="quick"), regime=regime)
    turned = plan_of(encodings=names[::-1], tier="quick", regime=regime).kinds
    assert {kind.encoding: kind for kind in kinds} == {kind.encoding: kind for kind in turned}


def test_every_task_of_a_matched_suite_has_its_own_reference() -> None:
    plan = plan_of(tasks=EMBEDDED, encodings=["add", "learned"], tier="quick", regime="parameters")
    for task in EMBEDDED:
        alone = plan_of(tasks=[task], encodings=["add", "learned"], tier="quick", regime="parameters")
        assert [kind for kind in plan.kinds if kind.task == task] == alone.kinds


def test_nothing_is_matched_where_nothing_is_asked() -> None:
    assert plan_of(encodings=["add", "learned"]).kinds == [
        configure("vit-digits", name, tier="smoke") for name in ("add", "learned")
    ]


def test_regimes_are_different_runs_even_where_they_have_the_same_model() -> None:
    found = {plan_of(encodings=["add"], regime=regime).kinds[0].key for regime in ("width", "parameters", "FLOPs")}
    assert len(found) == 3


def test_what_selects_is_as_costly_as_what_is_tested() -> None:
    plan = plan_of(encodings=["add", "learned"], tier="quick", regime="parameters", select={RATE: [1e-3, 1e-2]})
    widths = {kind.encoding: kind.model.d_ff for kind in plan.kinds}
    assert widths["learned"] != widths["add"]
    runs = [*plan.selecting(), *plan.testing(scored(plan, lambda c: 1.0))]
    assert {(c.encoding, c.model.d_ff, c.regime) for c in runs} == {(*item, "parameters") for item in widths.items()}


@pytest.mark.parametrize("task", ["lm-grammar", "text-order"])
def test_a_row_that_cannot_be_matched_is_refused_with_its_numbers(task: str) -> None:
    add, learned = (configure(task, name, tier="quick", settings=NARROW) for name in ("add", "learned"))
    thinnest = replace(learned, model=replace(learned.model, d_ff=1))
    assert cost(thinnest).parameters > 1.01 * cost(add).parameters
    with pytest.raises(UserError) as caught:
        plan_of(tasks=[task], encodings=["add", "learned", "none"], tier="quick", settings=NARROW, regime="parameters")
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"{task} with learned: ")
    assert f"{cost(add).parameters:,} within 1%" in line
    assert f"the nearest has {cost(thinnest).parameters:,}" in line


def test_all_rows_that_cannot_be_matched_are_named_at_once() -> None:
    with pytest.raises(UserError) as caught:
        plan_of(
            tasks=["lm-grammar", "text-order"], encodings=["add", "none", "learned", ("learned", {"ratio": 2.0})],
            tier="quick", settings=NARROW, regime="parameters",
        )  # fmt: skip
    lines = str(caught.value).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["lm-grammar with learned", "text-order with learned"]


def test_an_encoding_that_cannot_serve_the_model_is_told_where_it_is_matched() -> None:
    with pytest.raises(UserError, match=r"vit-digits with rope: .*multiple of 4"):
        plan_of(settings={"model.d_model": 8, "model.num_heads": 4}, regime="parameters")


def test_a_matched_suite_needs_its_reference() -> None:
    with pytest.raises(UserError, match=r"must be one of them \(--pe add, or --reference NAME for another\)\."):
        plan_of(encodings=["rope", "learned"], regime="parameters")


@matched_regimes
def test_rows_are_matched_at_the_value_that_they_have(regime: str) -> None:
    both = plan_of(encodings=["add", "learned"], regime=regime, vary={"model.num_layers": [1, 3]})
    for layers in (1, 3):
        alone = plan_of(encodings=["add", "learned"], regime=regime, settings={"model.num_layers": layers})
        assert {c.kind_key for c in alone.kinds} <= {c.kind_key for c in both.kinds}
