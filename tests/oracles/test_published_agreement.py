"""Published tables of agreement come out to the printed digit, by `bubench agreement` itself.

The data is not part of this repository: BUBENCH_ORACLE_DATA names the folder it is in.
"""

import csv
import json
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench

DATA = os.environ.get("BUBENCH_ORACLE_DATA")
pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(DATA is None, reason="BUBENCH_ORACLE_DATA names no folder of public data"),
]
ROOT = Path(DATA or "")


@pytest.fixture(scope="module")
def expected():
    return json.loads((ROOT / "expected.json").read_text())


def agreement(tmp_path, rows, *options, truth="truth", verdict="verdict"):
    """Group -> what `bubench agreement --csv FILE --json` says; the whole is under "all"."""
    path = tmp_path / "table.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    command = ["agreement", "--csv", path, "--truth", truth, "--verdict", verdict, "--json"]
    found = CliRunner().invoke(bubench, [*map(str, command), *options], catch_exceptions=False)
    assert found.exit_code == 0, found.stderr
    (topic,) = json.loads(found.stdout)["topics"]
    by_group = {each["group"] or "all": each["agreement"] for each in topic["compared"]}
    return by_group, topic


def of(found, label):
    return found["by_class"][found["classes"].index(label)]


def percent(share):
    return None if share["rate"] is None else round(100 * share["rate"], 1)


# ---- WebJudge on AgentRewardBench -----------------------------------------------------------

JUDGES = ["webjudge_gpt4o", "webjudge_7B", "webjudge_o4_mini"]


@pytest.mark.parametrize("judge", JUDGES)
def test_webjudge_on_agent_reward_bench(judge, expected, tmp_path):
    """Precision of five benchmarks and overall; confusion, recall, F1 and kappa overall."""
    vectors = json.loads((ROOT / f"webjudge-on-arb/{judge}.success_vectors.json").read_text())
    rows = [
        {"group": name, "truth": truth, "verdict": verdict}
        for name, agents in vectors.items()
        if name != "all"
        for agent, vector in agents.items()
        if agent != "all"
        for truth, verdict in zip(vector["y_human"], vector["y_judge"], strict=True)
    ]
    found, _ = agreement(tmp_path, rows, "--group", "group")
    want = expected["webjudge_on_arb"]
    assert {name: percent(of(each, "1")["precision"]) for name, each in found.items()} == want[
        "precision"
    ][judge]
    yes = of(found["all"], "1")
    counts = [yes[name] for name in ("tp", "fp", "fn", "tn")]
    assert counts == want["confusion_all_tp_fp_fn_tn"][judge]
    assert sum(counts) == found["all"]["n"] == 1106
    assert percent(yes["recall"]) == want["recall_all"][judge]
    assert percent(yes["f1"]) == want["f1_all"][judge]
    kappa = found["all"]["kappa"]
    assert round(kappa["value"], 3) == want["cohen_kappa_all(own computation)"][judge]
    assert kappa["low"] < kappa["value"] < kappa["high"]


# ---- AgentRewardBench -----------------------------------------------------------------------

AGENTS = {"claude-3.7": "claude-3.7", "gpt-4o": "gpt-4o", "llama-3.3": "Llama-3.3", "qwen2.5-vl": "Qwen2.5"}  # fmt: skip


@pytest.fixture(scope="module")
def annotations():
    """(benchmark, task, model) -> labels in the order of the file; and the split of each task."""
    with (ROOT / "agent-reward-bench/splits.csv").open() as file:
        split = {row["task_id"]: row["split"] for row in csv.DictReader(file)}
    labels, n_rows = {}, 0
    with (ROOT / "agent-reward-bench/annotations.csv").open() as file:
        for row in csv.DictReader(file):
            task = re.sub(r"\.(resized|improved)", "", row["task_id"])
            thing = (row["benchmark"], task, row["model_name"])
            labels.setdefault(thing, []).append(row["trajectory_success"])
            n_rows += 1
    return labels, split, n_rows


def test_agent_reward_bench_counts(annotations, expected):
    labels, split, n_rows = annotations
    want = expected["agent_reward_bench"]["n"]
    assert (n_rows, len(labels)) == (want["rows"], want["trajectories"])
    assert [sum(split[t] == s for _, t, _ in labels) for s in ("test", "dev")] == [
        want["test"],
        want["dev"],
    ]


def test_two_experts_of_agent_reward_bench_agree_as_published(annotations, expected, tmp_path):
    """ "Unsure" is declared missing: one pair of 106 has it, and it is counted."""
    labels, split, _ = annotations
    rows = [
        {
            "truth": said[0],
            "verdict": said[1],
            "task": f"{thing[0]} {thing[1]}",
            "split": split[thing[1]],
        }
        for thing, said in labels.items()
        if len(said) > 1
    ]
    want = expected["agent_reward_bench"]
    options = ["--positive", "Successful", "--missing", "Unsure"]
    found, topic = agreement(tmp_path, rows, *options, "--group", "split", "--cluster", "task")
    assert len(rows) == want["n_pairs_all"]
    assert topic["missing"] == {"Unsure": 1}
    assert found["all"]["n"] + 1 == want["n_pairs_all"]
    assert round(100 * found["all"]["accuracy"]["rate"], 2) == want["agreement_all_pct"]
    assert found["test"]["n"] == want["n_pairs_test"]
    rate = found["test"]["accuracy"]["rate"]
    assert round(100 * rate, 2) == want["inter_annotator_success_agreement_test_pct"]


def test_an_undeclared_unsure_is_a_class_and_not_dropped(annotations, tmp_path):
    labels, _, _ = annotations
    rows = [{"truth": s[0], "verdict": s[1]} for s in labels.values() if len(s) > 1]
    found, _ = agreement(tmp_path, rows, "--positive", "Successful")
    assert found["all"]["classes"] == ["Successful", "Unsuccessful", "Unsure"]
    assert found["all"]["n"] == 106


def test_success_rates_of_agent_reward_bench_by_its_first_expert(annotations, expected, tmp_path):
    labels, split, _ = annotations
    rows = [
        {
            "truth": said[0],
            "agent": next(name for name, part in AGENTS.items() if part in model),
            "benchmark": "workarena++" if re.search(r"-l[23]$", task) else benchmark,
        }
        for (benchmark, task, model), said in labels.items()
        if split[task] == "test"
    ]
    for agent, want in expected["agent_reward_bench"]["expert_success_rate_pct"].items():
        mine = [row for row in rows if row["agent"] == agent]
        options = ["--positive", "Successful", "--group", "benchmark"]
        found, _ = agreement(tmp_path, mine, *options, verdict="truth")
        rates = {
            name: percent(of(each, "Successful")["truth_rate"]) for name, each in found.items()
        }
        assert rates == want


# ---- Online-Mind2Web ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def online():
    """Rows with a level and a label of each agent."""
    tasks = json.loads((ROOT / "online-mind2web/tasks_06042025.json").read_text())
    level = {task["task_id"]: task["level"] for task in tasks}
    rows = json.loads((ROOT / "online-mind2web/human_label.json").read_text())
    return [
        {"level": level[row["task_id"]]}
        | {key.removesuffix("_human_label"): v for key, v in row.items() if key.endswith("_label")}
        for row in rows
    ]


def test_people_on_online_mind2web_with_not_executable_in_the_denominator(
    online, expected, tmp_path
):
    """Label 2 is "not executable"; the published rate counts it as no success, of all 300."""
    want = expected["online_mind2web_human"]
    n_strange = 0
    for agent, rate in want["overall_pct"].items():
        found, _ = agreement(tmp_path, online, "--group", "level", truth=agent, verdict=agent)
        assert found["all"]["n"] == 300
        assert percent(of(found["all"], "1")["truth_rate"]) == rate
        levels = [
            percent(of(found[name], "1")["truth_rate"]) for name in ("easy", "medium", "hard")
        ]
        assert levels == (
            want["operator_easy_medium_hard"]
            if agent == "Operator"
            else want["all_easy_medium_hard"][agent]
        )
        counts = {name: found[name]["n"] for name in ("easy", "medium", "hard")}
        assert counts == want["level_counts"]
        if "2" in found["all"]["classes"]:
            twos = of(found["all"], "2")
            n_strange += twos["tp"] + twos["fn"]
    assert n_strange == 10 + 7 + 2 + 1


def test_leaving_not_executable_out_is_another_figure_and_says_so(online, tmp_path):
    options = ["--missing", "2"]
    found, topic = agreement(tmp_path, online, *options, truth="Operator", verdict="Operator")
    assert topic["missing"]["2"] == 20
    assert (found["all"]["n"], found["all"]["missing"]["both"]) == (290, 10)
    assert percent(of(found["all"], "1")["truth_rate"]) == 63.4


# ---- two annotators of suitability ----------------------------------------------------------


def test_two_annotators_of_suitability_agree_as_stated(tmp_path):
    """120 texts in common: agreement .967, kappa .897, three classes."""
    lines = (ROOT / "suitability/labels.jsonl").read_text().splitlines()
    rows = []
    for line in map(json.loads, lines):
        said = {each["annotator"]: each["label"] for each in line["labels"]}
        rows.append({"truth": said.get("A", ""), "verdict": said.get("B", "")})
    found, _ = agreement(tmp_path, rows, "--positive", "suitable")
    assert found["all"]["classes"] == ["suitable", "uncertain", "unsuitable"]
    assert found["all"]["n"] == 120
    assert round(found["all"]["accuracy"]["rate"], 3) == 0.967
    assert round(found["all"]["kappa"]["value"], 3) == 0.897
    missing = found["all"]["missing"]
    assert missing["truth"] + missing["verdict"] == 400
