"""The demo ranks whoever earned something, whatever befell another."""

import click
import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from browseruse_bench.errors import IncompleteError


@pytest.fixture
def seen(monkeypatch):
    """What is called, with the oracle's one attempt lost to the infrastructure."""
    calls = []

    def runs(request):
        calls.append(("run", request.agent))
        return 4 if request.agent == "oracle" else 0

    @click.command()
    def judges(agent, **more):
        calls.append(("eval", agent))
        if agent == "oracle":
            raise IncompleteError("without a grade: 1 of 58 attempts")

    monkeypatch.setattr("browseruse_bench.cli.running.run_and_print", runs)
    monkeypatch.setattr("browseruse_bench.cli.eval.command", judges)
    monkeypatch.setattr("browseruse_bench.cli.demo._installed", lambda agent: False)
    ranks = click.Command("leaderboard", callback=lambda **more: calls.append(("rank", "")))
    monkeypatch.setattr("browseruse_bench.cli.leaderboard.command", ranks)
    return calls


def test_an_attempt_without_a_grade_keeps_nobody_from_the_leaderboard(seen, tmp_path):
    done = CliRunner().invoke(bubench, ["demo", "--experiments", str(tmp_path)])
    assert done.exit_code == 4, done.output
    assert "oracle: without a grade: 1 of 58 attempts" in done.stderr
    assert seen == [
        *(("run", "oracle"), ("eval", "oracle")),
        *(("run", "nop"), ("eval", "nop")),
        ("rank", ""),
    ]
