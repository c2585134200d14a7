"""Encodings that move tokens at random in training: where to, and from which draws."""

import itertools

import pytest
import torch

from pebench.encodings.base import grid_positions
from pebench.models.transformer import Transformer

from .helpers import (
    attend,
    encode,
    fresh,
    moved,
    noise,
    numbers,
)


def test_a_random_code_is_the_one_that_was_loaded():
    one, other = (fresh("random", (9,), table_seed=seed) for seed in (0, 1))
    state = one.prepare(grid_positions((9,)))
    one.load_state_dict(other.state_dict())
    x = torch.zeros(1, 9, 24)
    assert torch.equal(one.embed(x, state), other.embed(x, other.prepare(grid_positions((9,)))))


def places_of(encoding, positions, training):
    return numbers(encoding.train(training).place(positions))


def draws(encoding, extent, count):
    positions = grid_positions(extent)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return [places_of(encoding, positions, training=True) for _ in range(count)]


def test_randomized_draws_ordered_places_anew_in_training():
    encoding = fresh("randomized", of="add")
    found = [[p for (p,) in places] for places in draws(encoding, (9,), 400)]
    assert all(places == sorted(set(places)) for places in found)
    assert all(len(places) == 9 and places[0] >= 0 and places[-1] < 36 for places in found)
    assert all(p == int(p) for places in found for p in places)
    assert len({tuple(places) for places in found}) > 395
    counts = [sum(place in places for places in found) for place in range(36)]  # each is drawn by one in four
    assert min(counts) > 60
    assert max(counts) < 145


def test_randomized_moves_rows_and_columns():
    encoding, cells = fresh("randomized", (3, 5), of="add", times=3), list(itertools.product(range(3), range(5)))
    for places in draws(encoding, (3, 5), 20):
        rows, columns = (sorted({place[axis] for place in places}) for axis in (0, 1))
        assert (len(rows), len(columns)) == (3, 5)
        assert rows[-1] < 9
        assert columns[-1] < 15
        assert places == [[rows[r], columns[c]] for r, c in cells]


@pytest.mark.parametrize("extent", [(9,), (3, 5)])
def test_randomized_has_one_draw_in_evaluation(extent):
    positions = grid_positions(extent)
    one, other = (places_of(fresh("randomized", extent), positions, training=False) for _ in range(2))
    assert one == other
    for n in range(1, len(positions)):  # a prefix is where it is in the whole
        assert places_of(fresh("randomized", extent), positions[:n].clone(), training=False) == one[:n]
    order = torch.arange(len(positions) - 1, -1, -1)
    assert places_of(fresh("randomized", extent), positions[order], training=False) == one[::-1]


def test_randomized_draws_in_evaluation_what_training_had_not_decided():
    encoding, positions = fresh("randomized"), grid_positions((9,))
    fixed = places_of(encoding, positions, training=False)
    state = torch.get_rng_state()
    assert places_of(encoding, positions.clone(), training=False) == fixed
    assert torch.equal(torch.get_rng_state(), state)
    moving = places_of(encoding, positions, training=True)
    assert moving != fixed
    assert places_of(encoding, positions, training=False) == fixed


def test_randomized_finds_more_places_for_a_longer_text():
    encoding = fresh("randomized")
    for length in (10, 20, 36):
        places = [p for (p,) in places_of(encoding, grid_positions((length,)), training=False)]
        assert places == sorted(set(places))
        assert len(places) == length
        assert places[-1] < 36


def test_randomized_gives_a_short_text_the_first_places_of_a_full_one():
    """So that training on texts of unequal length has the distances that evaluation has."""
    encoding = fresh("randomized")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        most = max(places_of(encoding, grid_positions((2,)), training=True)[1][0] for _ in range(200))
    assert most < 30  # two of 36 would get there


def test_a_trunk_with_random_places_is_one_with_these_positions():
    model = moved(Transformer(fresh("randomized", of="learned")))
    plain, content = model.encoding.inner, noise(2, 9, 24)
    places = model.encoding.place(grid_positions((9,)))
    inner = Transformer(plain)
    weights = {k.replace("encoding.inner", "encoding"): v for k, v in model.state_dict().items()}
    del weights["encoding._extra_state"]  # how many draws there have been
    inner.load_state_dict(weights)
    assert torch.equal(model(content), inner.eval()(content, places))
    assert torch.equal(model(content), model(content))
    model.train()
    assert not torch.equal(model(content), model(content))


@pytest.mark.parametrize(
    ("of", "table", "rows"),
    [
        ("learned", "table", 36),
        ("tupe", "table", 36),
        ("deberta", "table", 72),
        ("axial-learned", "tables", 36),
        ("random", "table", 36),
    ],
)
def test_inside_a_longer_range_tables_are_longer(of, table, rows):
    assert len(getattr(fresh("randomized", of=of).inner, table)) == rows
    if of != "deberta":  # whose table is of offsets, which a shift does not make larger
        assert len(getattr(fresh("shifted", of=of, most=27).inner, table)) == rows
    assert fresh("randomized", of="swin-bias").inner.table.shape == (2, 71, 2)


@pytest.mark.parametrize("position", [-1.0, 0.5, 36.0])
def test_randomized_refuses_what_it_has_no_place_for(position):
    with pytest.raises(ValueError, match=r"'randomized' has places for integer positions below \(36,\), got positions"):
        fresh("randomized").place(torch.tensor([[0.0], [position]]))


@pytest.mark.parametrize(("most", "top"), [(None, (3, 5)), (2, (2, 2)), (0, (0, 0))])
def test_shifted_moves_all_tokens_alike_in_training(most, top):
    encoding, cells, found = fresh("shifted", (3, 5), most=most), numbers(grid_positions((3, 5))), set()
    for places in draws(encoding, (3, 5), 400):
        shifts = {(a - c, b - d) for (a, b), (c, d) in zip(places, cells, strict=True)}
        assert len(shifts) == 1
        found |= shifts
    assert found == set(itertools.product(range(top[0] + 1), range(top[1] + 1)))
    positions = grid_positions((3, 5))
    assert encoding.eval().place(positions) is positions
    assert encoding.inner.spec.extent == (3 + top[0], 5 + top[1])


def test_shifted_gives_encodings_of_offsets_the_trained_extent():
    """Offsets are no larger than without a shift: tables of them, and lengths from which on they change, stay."""
    assert fresh("shifted", of="swin-bias").inner.table.shape == fresh("swin-bias").table.shape
    longer = [(float(p),) for p in range(18)]
    seen, alone = (
        attend(encode(name, longer, (9,), **options), longer)
        for name, options in (("shifted", {"of": "ntk-rope"}), ("ntk-rope", {}))
    )
    assert torch.equal(seen.logits, alone.logits)
    assert fresh("shifted", of="learned").inner.table.shape == (18, 24)


def test_a_trunk_with_a_relative_encoding_does_not_notice_a_shift():
    for of, same in (("rope", True), ("learned", False)):
        model, content = moved(Transformer(fresh("shifted", of=of, most=50))), noise(2, 9, 24)
        still, model = model(content), model.train()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            moving = [model(content) for _ in range(3)]
        assert all(torch.allclose(still, output, atol=1e-4) == same for output in moving)


@pytest.mark.parametrize("name", ["randomized", "shifted"])
def test_draws_leave_dropout_alone_and_go_on_from_a_checkpoint(name):
    positions = grid_positions((9,))
    encoding = fresh(name, (9,)).train()
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = [numbers(encoding.place(positions)) for _ in range(4)]
    assert torch.equal(torch.get_rng_state(), state)
    assert len({str(places) for places in first}) > 1
    other = fresh(name, (9,)).train()
    other.load_state_dict(encoding.state_dict())
    assert numbers(other.place(positions)) == numbers(encoding.place(positions))
    torch.manual_seed(6)
    encoding = fresh(name, (9,)).train()
    assert [numbers(encoding.place(positions)) for _ in range(4)] != first


def test_permuted_exchanges_trained_places_once_and_for_good():
    positions = grid_positions((9,))
    encoding, plain = fresh("permuted", (9,), of="add"), fresh("add", (9,))
    order = [int(p) for (p,) in numbers(encoding.exchanged(positions))]
    assert sorted(order) == list(range(9)) != order
    other = fresh("permuted", (9,), of="learned").train()
    assert [int(p) for (p,) in numbers(other.exchanged(positions))] == order
    assert [int(p) for (p,) in numbers(fresh("permuted", (9,), draw=1).exchanged(positions))] != order
    assert torch.equal(encoding.prepare(positions), plain.prepare(positions)[order])
    assert numbers(encoding.exchanged(positions[[3, 1]])) == [[order[3]], [order[1]]]  # in whatever order it is asked


def test_permuted_exchanges_cells_of_a_grid():
    encoding, cells = fresh("permuted", (3, 5), of="add"), grid_positions((3, 5))
    found = [tuple(place) for place in numbers(encoding.exchanged(cells))]
    assert sorted(found) == [tuple(cell) for cell in numbers(cells)]
    assert sum(place == tuple(cell) for place, cell in zip(found, numbers(cells), strict=True)) < 5
    assert len({place[0] for place in found[:5]}) > 1  # not row by row


@pytest.mark.parametrize(
    "positions",
    [torch.tensor([[9.0]]), torch.tensor([[-1.0]]), torch.tensor([[0.5]])],
    ids=["beyond", "before", "between"],
)
def test_permuted_has_places_for_trained_positions_alone(positions):
    with pytest.raises(ValueError, match=r"'permuted' knows the integer positions below \(9,\)"):
        fresh("permuted", (9,)).prepare(positions)
