"""`bubench run --judge`, `eval --judge`, `grade --judge` as typed, with a judge from a file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from browseruse_bench.eval.findings.judge import VERSION
from browseruse_bench.store.run_folder import find_runs
from tests.report.made_run import MadeBenchmark, row, rubric

JUDGE = '''
import json, re

def says_no(text, sample):
    """Every item is violated; says which sample it is."""
    asked = re.findall(r"in this order: (.*)", text)[-1].split(", ")
    finding = {"claim": f"sample {sample}", "citations": [], "reason": "", "because": None,
               "status": "violated"}
    return {"reading": "r", "integrity": [], "attribution": [],
            "findings": [{"item": item, **finding} for item in asked]}
'''


@pytest.fixture
def project(tmp_path):
    bench = MadeBenchmark(tmp_path / "benchmarks" / "Made", [row("a"), row("b"), row("c")])
    bench.rubrics = {name: rubric(name, 40, 60, check=False) for name in "abc"}
    bench.load()
    (tmp_path / "judge.py").write_text(JUDGE)
    (tmp_path / "agent.py").write_text(AGENT)
    return tmp_path


AGENT = '''
from browseruse_bench.agents.base import Agent, AgentReport
from browseruse_bench.records.trace import AgentId, Call

class Says(Agent):
    """Does one thing and says another."""

    name = "says"
    needs_browser = False

    def identity(self):
        return AgentId(name=self.name, version="1")

    async def attempt(self, view, session, limits, sink, workspace):
        await sink.action(Call(name="look", arguments={"at": "it"}))
        return AgentReport(status="finished", answer="done")
'''


def bub(project, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "browseruse_bench", *arguments],
        cwd=project,
        env={"PATH": "/usr/bin:/bin", "HOME": str(project), "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=False,
    )


RUN = ("run", "--agent", "agent:Says", "--benchmark", "Made", "--browser", "none")
EVAL = ("eval", "--agent", "says", "--benchmark", "Made")
BY = ("--judge", "scripted:judge.py:says_no")


def judgements(project):
    (folder,) = find_runs(project / "experiments")
    return folder.judgements()


def test_attempts_are_judged_while_the_run_goes_on(project):
    done = bub(project, *RUN, *BY)
    assert done.returncode == 0, done.stderr
    assert "3 judged, 0 judged earlier" in done.stderr
    assert "selected 3 = graded 3" in done.stdout
    assert [j.protocol for j in judgements(project)] == [f"findings/{VERSION} whole"] * 3
    again = bub(project, *EVAL, *BY)
    assert again.returncode == 0, again.stderr
    assert "0 judged, 3 judged earlier" in again.stderr


def test_a_judge_that_cannot_be_had_is_refused_before_the_first_attempt(project):
    """BL012"""
    for judge in ("typo-model", "openai:gpt-5-mini", "scripted:nothing.py:f"):
        refused = bub(project, *RUN, "--judge", judge)
        assert refused.returncode == 2, refused.stderr
        assert refused.stderr.strip().splitlines()[-1].startswith("bubench: ")
    (folder,) = find_runs(project / "experiments") or [None]
    assert folder is None or not folder.attempts_path.exists()


def test_without_a_judge_the_attempts_wait_and_what_to_type_is_said(project):
    bub(project, *RUN)
    waiting = bub(project, *EVAL)
    assert waiting.returncode == 4
    assert "name a model with --judge" in waiting.stderr
    assert bub(project, *EVAL, *BY).returncode == 0


def test_judging_again_costs_nothing_and_force_always_asks(project):
    bub(project, *RUN, *BY)
    calls = len(list((project / "experiments" / "calls").rglob("*.json")))
    for journal in (project / "experiments").rglob("judgements.jsonl"):
        journal.unlink()
    bub(project, *EVAL, *BY)
    assert len(list((project / "experiments" / "calls").rglob("*.json"))) == calls
    bub(project, *EVAL, *BY, "--force")
    claims = [judgement.findings[0].claim for judgement in judgements(project)]
    assert claims == ["sample 0"] * 3 + ["sample 1"] * 3


def test_a_panel_keeps_every_vote(project):
    done = bub(project, *RUN, "--panel", "scripted:judge.py:says_no,scripted:no.json")
    assert done.returncode == 2
    (project / "judge2.py").write_text(JUDGE + "\n# another one\n")
    both = "scripted:judge.py:says_no,scripted:judge2.py:says_no"
    done = bub(project, *RUN, "--panel", both)
    assert done.returncode == 0, done.stderr
    assert [len(judgement.votes) for judgement in judgements(project)] == [2, 2, 2]


def test_grade_shows_samples_side_by_side_and_keeps_no_verdict(project):
    bub(project, *RUN)
    (folder,) = find_runs(project / "experiments")
    path = Path(folder.try_path("a", 1, 1))
    graded = bub(project, "grade", str(path), *BY, "--samples", "3", "--json")
    assert graded.returncode == 0, graded.stderr
    found = json.loads(graded.stdout)
    assert [one["judgement"]["findings"][0]["claim"] for one in found] == [
        "sample 0",
        "sample 1",
        "sample 2",
    ]
    assert [one["score"]["points"] for one in found] == [0, 0, 0]
    assert not folder.judgements()
