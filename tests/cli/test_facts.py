import json

import pytest
from click.testing import CliRunner

from browseruse_bench.benchmarks.fact_checks import FactFolder
from browseruse_bench.cli.root import bubench
from browseruse_bench.records.fact_check import FactCheck, fact_key
from browseruse_bench.records.rubric import Rubric
from tests.records.made_rubrics import released
from tests.store.archive.made_archive import archived


def bub(*arguments):
    return CliRunner().invoke(bubench, ["facts", *map(str, arguments)])


@pytest.fixture
def rubric(tmp_path):
    """A rubric's file whose first fact is archived."""
    folder = tmp_path / "rubrics"
    folder.mkdir()
    archives = tmp_path / "facts" / "archives"
    archives.mkdir(parents=True)
    _, page = archived(archives, "Kettle, 31.90")
    made = released()
    made["facts"][0]["archived"] = [page.key]
    (folder / "kettle.json").write_text(json.dumps(made))
    return folder / "kettle.json"


def check(rubric, outcome, day, **more):
    read = Rubric.model_validate_json(rubric.read_text())
    key = fact_key(read.facts[0])
    return FactCheck(
        task_id="kettle", fact="F1", fact_key=key, at=f"{day}T10:00:00Z", outcome=outcome, **more
    )


def test_offline_re_extracts_each_quote(rubric):
    done = bub("verify", "--offline", rubric, "--fact", "F1", "--json")
    told = json.loads(done.output)
    assert (done.exit_code, told["counts"]) == (0, {"confirmed": 1})
    assert told["facts"][0]["reason"] == "in the text of http://shop.test/kettle"
    # The other one names no archive that is here, which is no rot.
    done = bub("verify", "--offline", rubric)
    assert (done.exit_code, "no archive" in done.output or "unquoted" in done.output) == (4, True)
    archive = next(rubric.parent.parent.glob("facts/archives/*"))
    archive.write_bytes(archive.read_bytes()[:-20])
    done = bub("verify", "--offline", rubric, "--fact", "F1")
    assert (done.exit_code, "damaged" in done.output) == (3, True)


def test_the_report_tells_what_rotted_since_when_and_both_quotes(rubric):
    folder = FactFolder(rubric.parent.parent / "facts")
    folder.append(check(rubric, "confirmed", "2026-09-01"))
    found = {
        "found": "Kettle, 32.90",
        "url": "http://shop.test/kettle",
        "reason": "no longer there",
    }
    folder.append(check(rubric, "changed", "2026-10-01", **found))
    folder.append(check(rubric, "changed", "2026-10-02", **found))
    folder.append(check(rubric, "login", "2026-10-03", reason="HTTP 401"))
    done = bub("report", rubric)
    assert done.exit_code == 0
    for line in (
        "kettle: rotted since 2026-10-01",
        "  F1 since 2026-10-01, last confirmed 2026-09-01: changed: no longer there",
        "    was  Kettle, 31.90",
        "    now  Kettle, 32.90",
        "kettle F1: not settled on 2026-10-03: login: HTTP 401",
        "1 rubrics: 1 rotted; 2 facts: 1 rotted, 0 hold, 1 never settled since they were written; "
        "1 not settled at their last check",
    ):
        assert line in done.output.splitlines()
    told = json.loads(bub("report", rubric, "--json").output)
    assert (told["rotted"], told["rubrics"][0]["since"]) == (["kettle"], "2026-10-01")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("verify", "x.json"), "--offline or --live"),
        (("report", "x.json"), "x.json: no such file"),
        (("report", "NoSuchBenchmark"), "NoSuchBenchmark"),
        (("verify", "--offline"), "RUBRICS"),
    ],
)
def test_what_is_typed_wrongly_is_refused(arguments, said):
    done = bub(*arguments)
    assert (done.exit_code, said in done.output) == (2, True), done.output


def test_a_task_or_fact_that_is_not_there_is_named(rubric):
    for option, name in (("--task-ids", "kettel"), ("--fact", "F9")):
        done = bub("verify", "--offline", rubric, option, name)
        assert (done.exit_code, f"'{name}'" in done.output) == (2, True), done.output
