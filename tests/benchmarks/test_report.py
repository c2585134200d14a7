"""The study of reports makes up records that are like real ones."""

import json
import random

from pebench.benchmarks.studies import report
from pebench.runs.records import read_records


def test_records_are_the_same_in_a_file_and_in_a_folder(tmp_path):
    report.make_records(tmp_path / "out", ["vit-digits", "text-order"], ["add", "rope"], 3)
    records = read_records(tmp_path / "out" / "all.jsonl")
    assert len(records) == 12
    assert {record.config.key: record for record in read_records(tmp_path / "out" / "runs")} == {
        record.config.key: record for record in records
    }


def test_one_record_in_a_hundred_has_failed(tmp_path):
    report.make_records(tmp_path / "out", ["vit-digits"], ["add"], 1)
    (example,) = read_records(tmp_path / "out" / "all.jsonl")
    draw = random.Random(0)
    made = [report.make_record(example.config, 0, example, draw) for _ in range(1000)]
    failed = [record for record in made if not record.ok]
    assert 5 <= len(failed) <= 15
    assert all(json.loads(json.dumps(record.to_dict()))["error"]["kind"] == "diverged" for record in failed)
