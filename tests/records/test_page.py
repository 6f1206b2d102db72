"""docs/files.md names the fields that the records have, all of them and no other."""

import re
from pathlib import Path

import pytest

from browseruse_bench.records import data_info, judgement, label, rubric, run, task, trace

PAGE = Path(__file__).resolve().parents[2] / "docs" / "files.md"
RECORDS = [
    data_info.DataInfo, task.Task, rubric.Rubric, run.Run, run.RunIdentity, run.AttemptEntry,
    trace.Trace, trace.Step, trace.Call, trace.Observation,
    judgement.Judgement, judgement.Finding, judgement.Citation, label.Label,
]  # fmt: skip


def documented(name):
    """The names in the first column of the table below the heading of a record."""
    section = re.search(rf"^### `{name}`.*?$(.*?)(?=^#|\Z)", PAGE.read_text(), re.M | re.S)
    assert section, f"no heading `{name}`"
    rows = re.findall(r"^\| ([^|]+) \|", section[1], re.MULTILINE)
    return [field for row in rows[1:] for field in re.findall(r"`(\w+)`", row)]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_the_table_of_a_record_lists_its_fields(record):
    names = [field.alias or name for name, field in record.model_fields.items()]
    assert sorted(documented(record.__name__)) == sorted(names)
