"""Makes SVG smaller without changing what it shows: fewer decimals, relative paths, no names that nothing refers to."""

import re
from xml.etree import ElementTree

SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
GROUP, USE = f"{{{SVG}}}g", f"{{{SVG}}}use"
HREF = f"{{{XLINK}}}href"

DECIMALS = 2
"""Digits after the point that coordinates keep: a hundredth of a point, which nobody sees."""


def compact(image: str) -> str:
    r"""Return a smaller SVG image that looks the same.

    Args:
        image: SVG as matplotlib writes it: paths of absolute ``M``, ``L``, ``Q``, ``C`` and ``z`` alone.

    Example:
        >>> compact('<svg xmlns="http://www.w3.org/2000/svg"><g id="a"><path d="M 1.004 2 L 1 3.5 z"/></g></svg>')
        '<svg xmlns="http://www.w3.org/2000/svg"><path d="m1 2l0 1.5z"/></svg>\n'
    """
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    root = ElementTree.fromstring(image)
    names = {name: f"i{place}" for place, name in enumerate(dict.fromkeys(_references(root)))}
    for element in root.iter():
        _shorten(element, names)
    _unwrap(root)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=True).replace(" />", "/>") + "\n"


def _references(root: ElementTree.Element) -> list[str]:
    """Return the ids that elements refer to, in order."""
    found = []
    for element in root.iter():
        for value in element.attrib.values():
            found += re.findall(r"^#(.+)$|url\(#(.+?)\)", value)
    return [one or other for one, other in found]


def _shorten(element: ElementTree.Element, names: dict[str, str]) -> None:
    """Shorten the attributes of an element, and take the blanks around it away.

    Args:
        element: The element to change.
        names: Short id of each id that something refers to.
    """
    element.tail = None
    if element.text and not element.text.strip():
        element.text = None
    if (name := element.attrib.pop("id", None)) in names:
        element.set("id", names[name])
    for key, value in element.attrib.items():
        if key == HREF:
            element.set(key, f"#{names[value[1:]]}" if value[1:] in names else value)
        elif key == "clip-path":
            element.set(key, re.sub(r"#(.+?)\)", lambda found: f"#{names[found[1]]})", value))
        elif key in SHORTER:
            element.set(key, SHORTER[key](value))
    moved = re.fullmatch(r"translate\((\S+) 0\)", element.get("transform", ""))
    if moved and element.tag == USE and not {"x", "y"} & element.attrib.keys():  # a letter in its line
        element.set("x", moved[1])
        del element.attrib["transform"]


def _transform(text: str) -> str:
    return re.sub(r"(?<=translate\()[^)]*", lambda found: " ".join(map(_rounded, found[0].split())), text)


def _style(text: str) -> str:
    return text.replace("; ", ";")


def _unwrap(element: ElementTree.Element) -> None:
    """Replace every group without attributes below an element by what it holds, and drop empty ones."""
    kept: list[ElementTree.Element] = []
    for child in element:
        _unwrap(child)
        if child.tag == GROUP and not child.attrib:
            kept += child
        elif child.tag != GROUP or len(child):
            kept.append(child)
    element[:] = kept


def _relative(path: str) -> str:
    """Return a path with each point relative to the one before, in as few characters as it takes.

    A path with other commands than matplotlib's, one segment each, is returned as it is.

    Example:
        >>> _relative("M 10 10 L 10.5 12 L 11 12 Q 12 12 12 13.256 z M 0 0")
        'm10 10l.5 2 .5 0q1 0 1 1.26zm-10-10'
    """
    if re.search(r"[^MLQCz\d\seE.+-]", path):
        return path
    text, last = [], ""
    here = start = (0, 0)
    for command, numbers in re.findall(r"([MLQCz])([^MLQCz]*)", path):
        if command == "z":
            text.append("z")
            here, last = start, "z"
            continue
        flat = list(map(_hundredths, numbers.split()))
        points = list(zip(flat[::2], flat[1::2], strict=True))
        moved = [_number(value) for x, y in points for value in (x - here[0], y - here[1])]
        text.append(_joined(moved, command.lower() if command != last or command == "M" else " "))
        here, last = points[-1], command
        if command == "M":
            start = here
    return "".join(text)


def _joined(numbers: list[str], before: str) -> str:
    """Return numbers after a command; a minus sign separates them from what stands before, too."""
    text = before
    for number in numbers:
        text += number if number.startswith("-") or not text[-1:].isdigit() else f" {number}"
    return text[1:] if text.startswith(" -") else text


def _hundredths(number: str) -> int:
    return round(float(number) * 10**DECIMALS)


def _number(hundredths: int) -> str:
    """Return a number of hundredths as text.

    Example:
        >>> _number(1050), _number(-5), _number(0)
        ('10.5', '-.05', '0')
    """
    text = f"{hundredths / 10**DECIMALS:.{DECIMALS}f}".rstrip("0").rstrip(".")
    return re.sub(r"^(-?)0\.", r"\1.", text)


def _rounded(number: str) -> str:
    return _number(_hundredths(number))


SHORTER = {"d": _relative, "x": _rounded, "y": _rounded, "style": _style, "transform": _transform}
"""Makes the values of an attribute shorter, by its name."""
