"""`bubench stability` over the whole way: a scripted model behind the findings judge."""

import json

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from browseruse_bench.store.journal import read_journal
from tests.report.made_run import MadeBenchmark, MadeRun, row, rubric

JUDGE = '''
import random
import re

SALT = "{salt}"


def answer(text, sample):
    """Gives credit with the probability that the requirement names, by the page that was seen."""
    if "{fails}" and sample == 1:
        return "I would rather not say."
    token = re.search(r"token of this trace is (\\w+)", text)[1]
    findings = []
    for item, words in re.findall(r"^ITEM (\\S+)\\nevidence: page\\nrequirement: (.*)$", text, re.M):
        chance = float(re.search(r"met with ([\\d.]+)", words)[1])
        met = random.Random(SALT + token + words + str(sample)).random() < chance
        findings.append(
            {{
                "item": item,
                "claim": "The page was open." if met else "Not by this reading.",
                "citations": [
                    {{"step": "1", "source": "page", "ref": None, "quote": "page http://shop.test/0"}}
                ],
                "reason": "so it says",
                "because": None,
                "status": "met" if met else "violated",
            }}
        )
    return {{"reading": "As it says.", "findings": findings, "integrity": [], "attribution": []}}
'''


def texts(task_id, *requirements):
    made = rubric(task_id, *[100 // len(requirements)] * len(requirements), check=False)
    for item, text in zip(made["items"], requirements, strict=True):
        item["requirement"] = text
    return made


@pytest.fixture
def bench(tmp_path):
    rubrics = {
        "a": texts("a", "met with 1.0", "met with 0.5"),
        "b": texts("b", "met with 1.0", "met with 0.0"),
    }
    return MadeBenchmark(tmp_path / "Made", [row("a"), row("b")], rubrics=rubrics)


@pytest.fixture
def run(tmp_path, bench):
    loaded = bench.load()
    made = MadeRun.of(tmp_path / "experiments", loaded, repeat=2)
    for task_id in "ab":
        for attempt in (1, 2):
            made.settle(loaded, task_id, "An answer", attempt=attempt)
    return made


@pytest.fixture
def judge(tmp_path):
    def make(name, salt="", fails=""):
        path = tmp_path / f"{name}.py"
        path.write_text(JUDGE.format(salt=salt, fails=fails))
        return f"scripted:{path}:answer"

    return make


def stability(run, tmp_path, *arguments):
    command = ["stability", run.folder.path, "--experiments", tmp_path / "experiments", *arguments]
    return CliRunner().invoke(bubench, [*map(str, command)])


def test_regrades_are_made_reported_and_kept_apart_from_the_verdicts(run, judge, tmp_path):
    shown = stability(run, tmp_path, "--judge", judge("one"), "--samples", 4)
    assert shown.exit_code == 0, shown.output
    assert "16 regraded, $0.00, 0 regraded earlier" in shown.stderr
    assert "1 of 4 items flipped" in shown.stdout
    assert "claim" in shown.stdout
    assert len(read_journal(run.folder.path / "stability.jsonl")) == 16
    assert not run.folder.judgements_path.exists()


def test_json_is_the_only_thing_on_standard_output(run, judge, tmp_path):
    shown = stability(run, tmp_path, "--judge", judge("one"), "--json")
    found = json.loads(shown.stdout)
    (row_,) = found["judges"]
    assert row_["items"][0]["flips"]["item"] == "I1"
    assert row_["items"][0]["flips"]["task_id"] == "a"
    assert row_["judge"].startswith("scripted:one")
    assert found["disagreements"][0]["credit"]["finding"]["claim"] == "The page was open."
    assert row_["claim"]["shown"] is False
    assert row_["parameters"]["model"]["name"]
    assert row_["parameters"]["protocol"].startswith("findings/")


def test_a_panel_is_a_judge_too_and_its_models_are_recorded(run, judge, tmp_path):
    panel = f"{judge('one')},{judge('two', 'salt')},{judge('three', 'more')}"
    shown = stability(run, tmp_path, "--panel", panel, "--json")
    assert shown.exit_code == 0, shown.output
    (row_,) = json.loads(shown.stdout)["judges"]
    assert len(row_["parameters"]["panel"]) == 3
    assert row_["pooled"]["n_traces"] == 4


def test_markdown_shows_pairs_side_by_side(run, judge, tmp_path):
    shown = stability(run, tmp_path, "--judge", judge("one"), "--markdown")
    assert "## Disagreements side by side" in shown.stdout
    assert "| claim | The page was open. | Not by this reading. |" in shown.stdout


def test_the_same_command_asks_nothing_again_and_without_a_judge_nothing_is_asked(
    run, judge, tmp_path
):
    one = judge("one")
    first = stability(run, tmp_path, "--judge", one, "--json")
    again = stability(run, tmp_path, "--judge", one, "--json")
    assert "0 regraded, 20 regraded earlier" in again.stderr
    told = stability(run, tmp_path, "--json")
    assert first.stdout == again.stdout == told.stdout


def test_a_second_judge_is_compared_with_the_first(run, judge, tmp_path):
    shown = stability(
        run, tmp_path, "--judge", judge("one"), "--second-judge", judge("two", "salt"), "--json"
    )
    found = json.loads(shown.stdout)
    assert len(found["judges"]) == 2
    assert found["between"]["pooled"]["n_traces"] == 4
    assert {row_["item"] for row_ in found["between"]["items"]} == {"I1"}


def test_regrades_without_a_grade_are_told_and_asked_again_on_demand(run, judge, tmp_path):
    failing = judge("one", fails="yes")
    shown = stability(run, tmp_path, "--judge", failing, "--samples", 2)
    assert shown.exit_code == 4
    assert "judge_fault" in shown.stderr
    assert "--retry-ungraded" in shown.stderr
    again = stability(run, tmp_path, "--judge", failing, "--samples", 2, "--retry-ungraded")
    assert again.exit_code == 0, again.output
    assert "without a grade 4 (judge_fault 4)" in " ".join(again.stdout.split())


def test_fewer_traces_are_those_of_more_tasks(run, judge, tmp_path):
    shown = stability(run, tmp_path, "--judge", judge("one"), "--traces", 2, "--json")
    found = json.loads(shown.stdout)
    assert (found["n_traces"], found["n_fit"], found["n_tasks"]) == (2, 4, 2)


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (["--second-judge", "x"], 2, "--judge"),
        (["--samples", "1"], 2, "samples"),
        (["--threshold", "0"], 2, "threshold"),
        (["--threshold", "nan"], 2, "threshold"),
        (["--limit", "nan"], 2, "limit"),
        (["--panel", ","], 2, "panel"),
        (["--json"], 2, "nothing was regraded"),
        (["--judge", "nobody"], 2, "nobody"),
    ],
)
def test_what_is_typed_wrongly_is_refused_in_a_line(run, tmp_path, arguments, status, word):
    shown = stability(run, tmp_path, *arguments)
    assert shown.exit_code == status, shown.output
    assert word in shown.stderr
    assert "Traceback" not in shown.output
    assert not (run.folder.path / "stability.jsonl").exists()


def test_the_same_model_twice_is_refused(run, judge, tmp_path):
    one = judge("one")
    shown = stability(run, tmp_path, "--judge", one, "--second-judge", one)
    assert shown.exit_code == 2
    assert "same" in shown.stderr
