"""The study of encodings' costs measures them on text and images, and writes its page."""

from pebench.benchmarks.studies import encoding_costs


def test_encodings_are_measured_on_text_and_images(tmp_path):
    output = tmp_path / "costs.md"
    asked = [word for name in ("add", "alibi", "t5-bias", "transformer-xl") for word in ("--pe", name)]
    assert encoding_costs.main([*asked, "--quick", "--device", "cpu", "--output", str(output)]) == 0
    page = output.read_text()
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines()]
    cells = {line[0]: line[1:] for line in lines if len(line) > 1}
    assert cells["`alibi`"][-1] == "sdpa with bias"
    assert cells["`t5-bias`"][-1] == "matmul with bias"
    assert cells["`transformer-xl`"].count("does not serve") == 2
    assert [name for name in cells if name.startswith("`")] == ["`add`", "`alibi`", "`t5-bias`", "`transformer-xl`"]
    assert "- `add`: " in page
    assert "- `rope`: " not in page


def test_what_is_not_measured_yet_is_left_empty():
    table = encoding_costs.table(["add", "rope"], {"text": {"rope": [1.0, 3.0, 2.0]}}, {"add": "sdpa", "rope": "sdpa"})
    assert [line.split("|")[2].strip() for line in table.splitlines()[2:]] == ["", "2.00 (1.00 to 3.00)"]
