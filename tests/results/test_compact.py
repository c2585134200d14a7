"""Smaller SVG shows what matplotlib drew: the same marks at the same places, and nothing that leads nowhere."""

import io
import re
from collections.abc import Iterator
from xml.etree import ElementTree

import pytest

from pebench.results import figures
from pebench.results.figures import style
from pebench.results.figures.compact import HREF, SVG, compact
from pebench.results.page import Page
from tests.results.published import published_page

SHAPES = {f"{{{SVG}}}{name}" for name in ("path", "use", "rect")}
PARTS = {"m": 2, "l": 2, "q": 4, "c": 6, "z": 0}


@pytest.fixture(scope="module", params=range(3))
def drawn(request: pytest.FixtureRequest) -> tuple[ElementTree.Element, ElementTree.Element]:
    """A picture as matplotlib writes it, and smaller."""
    picture = figures.pictures(Page(published_page().tables[:1]))[request.param]
    text = io.StringIO()
    with style.styled():
        picture.figure.savefig(text, format="svg")
    whole = text.getvalue()
    assert len(compact(whole)) < 0.7 * len(whole)
    return ElementTree.fromstring(whole), ElementTree.fromstring(compact(whole))


def shapes(image: ElementTree.Element) -> list[ElementTree.Element]:
    return [element for element in image.iter() if element.tag in SHAPES]


def absolute(path: str) -> Iterator[tuple[str, list[float]]]:
    """Each segment of a path of relative commands: the command, and its points from the origin."""
    x = y = left = top = 0.0
    for command, text in re.findall(r"([mlqcz])([^mlqcz]*)", path):
        numbers = list(map(float, re.findall(r"-?(?:\d+\.?\d*|\.\d+)", text)))
        parts = PARTS[command]
        if command == "z":
            x, y = left, top
            yield command, []
        for start in range(0, len(numbers), parts or 1):
            points = [number + (x, y)[place % 2] for place, number in enumerate(numbers[start : start + parts])]
            x, y = points[-2:]
            if command == "m":
                left, top = x, y
            yield command, points


def test_every_point_is_where_it_was(drawn: tuple[ElementTree.Element, ElementTree.Element]) -> None:
    before, after = map(shapes, drawn)
    assert [element.tag for element in after] == [element.tag for element in before]
    for one, other in zip(before, after, strict=True):
        if "d" in one.attrib:
            known = [
                (command.lower(), list(map(float, text.split())))
                for command, text in re.findall(r"([MLQCz])([^MLQCz]*)", one.attrib["d"])
            ]
            found = list(absolute(other.attrib["d"]))
            assert [command for command, _ in found] == [command for command, _ in known]
            assert [n for _, numbers in found for n in numbers] == pytest.approx(
                [n for _, numbers in known for n in numbers], abs=0.0051
            )
        assert placed(other) == pytest.approx(placed(one), abs=0.0051)


def placed(element: ElementTree.Element) -> list[float]:
    """Where an element is put: by its coordinates, or by a translation."""
    moved = re.search(r"translate\((\S+) (\S+)\)", element.get("transform", ""))
    return [float(moved[place + 1] if moved else element.get(name, 0)) for place, name in enumerate("xy")]


def test_every_reference_leads_to_the_shape_that_it_led_to(
    drawn: tuple[ElementTree.Element, ElementTree.Element],
) -> None:
    before, after = ({e.get("id"): place for place, e in enumerate(shapes(image)) if e.get("id")} for image in drawn)
    links = [
        [ids[element.attrib[HREF][1:]] for element in shapes(image) if HREF in element.attrib]
        for image, ids in zip(drawn, (before, after), strict=True)
    ]
    assert links[0] == links[1] != []
    clips = re.findall(r"url\(#(.*?)\)", ElementTree.tostring(drawn[1], encoding="unicode"))
    ids = {element.get("id") for element in drawn[1].iter()}
    assert set() < {*clips} <= ids
