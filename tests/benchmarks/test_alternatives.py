"""The marker of alternatives is read in answers; elsewhere it would never match."""

import pytest

from browseruse_bench.benchmarks.folder import find
from browseruse_bench.benchmarks.problems import lines
from browseruse_bench.benchmarks.validate import examine
from tests.benchmarks.small import TASKS, check

INFO = {"sites": {"shop.test": "m:S"}, "probes": {"done": {"script": "1"}}}
LITERAL = [
    ({"kind": "url", "host": "shop.test", "path": "/a |OR| /b"}, "path"),
    ({"kind": "url", "host": "shop.test", "query": {"q": "a|OR|b"}}, "query"),
    ({"kind": "file", "name": "a.csv|OR|b.csv", "contains": "x"}, "name"),
    ({"kind": "file", "name": "a.csv", "contains": "x|OR|y"}, "contains"),
    ({"kind": "state", "site": "shop.test", "sql": "SELECT 1", "equals": [["a|OR|b"]]}, "equals"),
    ({"kind": "probe", "name": "done", "equals": {"x": ["a|OR|b"]}}, "equals"),
]


def warned(folder):
    examined = examine(find(str(folder)))
    assert examined.problems == ()
    return list(lines(examined.warnings))


@pytest.mark.parametrize(("value", "field"), LITERAL)
def test_a_marker_that_nothing_reads_is_listed_with_its_field_bl039(make, value, field):
    """BL039."""
    (only,) = warned(make(TASKS[:1], info=INFO, rubrics={"a": check(value)}))
    assert only.startswith(f"rubrics/a.json.items[0].check.{field}: item 'A1': '|OR|'")


def test_alternatives_in_an_answer_are_not_listed_bl039(make):
    value = {"kind": "answer", "values": ["65 |OR| 3"], "seen": ["65|OR|3"]}
    assert warned(make(TASKS[:1], info=INFO, rubrics={"a": check(value)})) == []
