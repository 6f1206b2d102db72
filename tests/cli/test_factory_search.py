"""`bubench factory search|compare|drift` over a workspace with scripted models."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from browseruse_bench.factory.search.chosen import read_chosen
from browseruse_bench.factory.search.labeller import shipped
from tests.factory.search.scripted import labelled, save

MODELS = """
import os, pathlib, time

PAID = pathlib.Path(__file__).with_name("paid.log")

def pay(what):
    time.sleep(float(os.environ.get("SLOW", "0")))
    with PAID.open("a") as file:
        file.write(what.replace("\\n", " ") + "\\n")

def label(text, sample):
    task = text.partition("\\nThe task:\\n\\n")[2]
    version = text.partition("\\n\\nReply with these")[0]
    pay("label " + version[:40] + " | " + task)
    number = int(task.split()[-1])
    suits = number % 3 == 0
    if version != "Say suitable of every third." and number % 2 == 0:
        suits = not suits
    return {"reason": "so", "quote": "", "tags": [], "verdict": "suitable" if suits else "unsuitable"}

def timid(text, sample):
    return {"reason": "no", "quote": "", "tags": [], "verdict": "unsuitable"}

def propose(text, sample):
    pay("propose %d" % sample)
    texts = {1: ["Say nothing.", "Say suitable of every third."], 2: ["Say more.", "Say less."]}
    return {"variants": [{"change": "bold", "text": t} for t in texts.get(sample, [])]}
"""
CONFIG = """
name = "w"
[roles]
labeller = "small"
proposer = "great"
[models.small]
id = "scripted:models.py:label"
may_see = "restricted"
[models.timid]
id = "scripted:models.py:timid"
may_see = "restricted"
[models.great]
id = "scripted:models.py:propose"
may_see = "restricted"
"""
ROWS = [
    (f"compare what three shops say of {i}", {"ann": "suitable" if i % 3 == 0 else "unsuitable"})
    for i in range(60)
]


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    (tmp_path / "workspace.toml").write_text(CONFIG)
    (tmp_path / "models.py").write_text(MODELS)
    labelled(tmp_path / "restricted" / "labels", ROWS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bub(*arguments):
    return CliRunner().invoke(bubench, ["factory", *arguments])


def paid(workspace):
    return (workspace / "paid.log").read_text().splitlines()


def test_search_chooses_says_what_is_shown_and_sets_the_prompt(workspace):
    done = bub("search", "--versions", "5")
    assert done.exit_code == 0, done.output
    assert "is shown to be the best of" in done.stdout
    assert "no validation" not in done.stdout
    assert "McNemar" in done.stdout
    assert read_chosen(workspace).prompt.text == "Say suitable of every third."
    assert "is now the prompt of the workspace" in done.stderr
    n = len(paid(workspace))
    again = bub("search", "--versions", "5", "--json")
    assert len(paid(workspace)) == n
    value = json.loads(again.stdout)
    assert value["decision"]["shown"] is True
    assert len(value["versions"]) == 5


def test_keep_leaves_the_prompt_and_first_begins_with_another(workspace):
    (workspace / "mine.md").write_text("Say something.\n")
    done = bub("search", "--versions", "1", "--first", "mine.md", "--keep")
    assert done.exit_code == 0, done.output
    assert read_chosen(workspace) is None
    assert {line.partition(" | ")[0] for line in paid(workspace)} == {"label Say something."}


def test_no_version_that_may_be_chosen_is_exit_4_and_changes_nothing(workspace):
    config = CONFIG.replace('labeller = "small"', 'labeller = "timid"')
    (workspace / "workspace.toml").write_text(config)
    done = bub("search", "--versions", "2")
    assert done.exit_code == 4
    assert "fewer than 50% of the suitable tasks" in done.stderr
    assert read_chosen(workspace) is None


def test_compare_shows_agreement_leaning_and_cost(workspace):
    bub("search", "--versions", "5")
    done = bub("compare", "small", "timid")
    assert done.exit_code == 0, done.output
    assert "timid is over-conservative: it rejects" in done.stdout
    assert "small agrees most" in done.stdout
    assert "The prompt was searched for small" in done.stdout
    value = json.loads(bub("compare", "small", "--prompt", "shipped", "--json").stdout)
    assert value["prompt"] == shipped().id
    assert value["tuned_for"] is None


def test_drift_tells_of_labels_that_were_given_twice(workspace):
    from browseruse_bench.factory.labels.store import LabelStore

    done = bub("drift")
    assert done.exit_code == 2
    assert "--recheck N" in done.stderr
    save(LabelStore(workspace / "restricted" / "labels"), ROWS[:20], recheck=True)
    done = bub("drift")
    assert done.exit_code == 0, done.output
    assert "ann: the same verdict on 100.0%" in done.stdout


@pytest.mark.parametrize(
    ("config", "arguments", "message"),
    [
        (CONFIG.replace('proposer = "great"', ""), ("search",), "[roles] names no proposer"),
        (CONFIG.replace('"restricted"', '"clean"'), ("search",), "is not cleared"),
        (CONFIG, ("compare", "smal"), "smal"),
        (CONFIG, ("compare", "small", "small"), "name each model once"),
        (CONFIG, ("compare", "small", "--prompt", "nowhere.md"), "nowhere.md"),
    ],
)
def test_what_is_wrong_is_exit_2_before_anything_is_paid(workspace, config, arguments, message):
    (workspace / "workspace.toml").write_text(config)
    done = bub(*arguments)
    assert done.exit_code == 2, done.output
    assert message in done.stderr
    assert not (workspace / "paid.log").exists()


def test_a_workspace_without_labels_says_how_to_get_some(tmp_path, monkeypatch):
    (tmp_path / "workspace.toml").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    done = bub("search")
    assert done.exit_code == 2
    assert "bubench factory label" in done.stderr


@pytest.mark.slow
def test_kill_9_at_any_moment_loses_nothing_and_pays_nothing_twice(workspace):
    command = [sys.executable, "-m", "browseruse_bench", "factory", "search", "--versions", "5"]
    environment = {**os.environ, "SLOW": "0.02"}
    for number in range(5):
        process = subprocess.Popen(command, cwd=workspace, env=environment)
        n = len(paid(workspace)) if (workspace / "paid.log").exists() else 0
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if (workspace / "paid.log").exists() and len(paid(workspace)) > n + 7 * number:
                break
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    done = subprocess.run(command, cwd=workspace, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # At most one call was under way at each kill, answered and not yet kept.
    assert len(paid(workspace)) - len(set(paid(workspace))) <= 5
    assert read_chosen(workspace).prompt.text == "Say suitable of every third."
