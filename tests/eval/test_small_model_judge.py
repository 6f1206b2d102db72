"""The whole path with a real model on the real wire: run folder, evidence, judge, journal, ledger.

Its verdicts are worth nothing. What counts is that each is a verdict with a finding for every
item, or no verdict with the raw reply kept, and that nothing else can come of it.
"""

import asyncio

import pytest

from browseruse_bench.eval.evaluate import Asking, evaluate_run
from browseruse_bench.eval.findings.judge import FindingsJudge
from browseruse_bench.models.base import Params
from browseruse_bench.models.ledger import Ledger
from browseruse_bench.models.open import open_model
from tests.models.real.local import CannotStart, running
from tests.report.made_run import MadeBenchmark, MadeRun, row, rubric

pytestmark = pytest.mark.slow


def test_attempts_are_judged_by_a_real_model_and_every_reply_is_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bench = MadeBenchmark(tmp_path / "Made", [row("a")])
    bench.rubrics = {"a": rubric("a", 40, 60, check=False)}
    loaded = bench.load()
    run = MadeRun.of(tmp_path / "experiments", loaded)
    run.settle(loaded, "a", "the answer")
    calls = tmp_path / "experiments" / "calls"
    try:
        with running() as url:
            model = open_model(f"openai-compatible:smollm2@{url}", calls=calls, cwd=tmp_path)
            judge = FindingsJudge(model, params=Params(max_tokens=300))
            judged = asyncio.run(
                evaluate_run(run.folder, loaded, asking=Asking(judge=judge, concurrency=1))
            )
    except CannotStart as why:
        pytest.skip(f"the small real model cannot start: {why}")
    assert [j.task_id for j in judged.new] == ["a"]
    ledger = Ledger(calls)
    for judgement in run.folder.judgements():
        assert judgement.usage, judgement
        if judgement.status == "graded":
            assert [finding.item for finding in judgement.findings] == ["I0", "I1"]
        else:
            assert judgement.reason == "judge_fault", judgement
            assert judgement.message
        assert ledger.read(judgement.raw_ref).raw
        assert judgement.score is None
