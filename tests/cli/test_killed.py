"""kill -9 in the midst of commands that pay for answers: nothing is lost, paid or counted twice."""

import hashlib
import json
import os
import random
import shutil
import signal
from collections import Counter
from pathlib import Path

import pytest

import browseruse_bench.cli.batching
import browseruse_bench.cli.judging
import browseruse_bench.eval.findings.judge
import browseruse_bench.models.open
import browseruse_bench.report.redteam  # noqa: F401  imported once, before the forks
from browseruse_bench.cli.root import bubench
from browseruse_bench.eval.redteam.campaign import JOURNAL, read_trials
from browseruse_bench.models.ledger import Ledger
from browseruse_bench.models.spending_log import FILE, Spending
from tests.cli.test_models import CONFIG, says_no
from tests.eval.conftest import MakeTrace
from tests.eval.findings.believer import Believer
from tests.eval.redteam.made import Made
from tests.models.batch_provider import KEY, BatchProvider
from tests.report.made_run import MadeBenchmark, MadeRun, row, rubric
from tests.zygote import Zygote

PAID = "payments.log"


def type_it(root):
    """Carry out the command that stands in a file, in this folder, and print how it ended."""
    os.chdir(root)
    arguments = json.loads(Path("command.json").read_text())
    try:
        bubench(arguments)
    except SystemExit as end:
        print("\nexit", end.code, flush=True)


def paid_believer(text, sample):
    """A judge that believes everything and notes each payment."""
    with Path(PAID).open("a") as log:
        log.write(hashlib.sha256(f"{sample} {text}".encode()).hexdigest() + "\n")
    return Believer()(text, sample)


class Shell:
    """Types commands in a folder, and kills some of them."""

    def __init__(self, root, zygote, seed):
        self.root = root
        self.zygote = zygote
        self.chance = random.Random(seed)
        self.n_kills = 0

    def type(self, *arguments, kill_after_s=None, begun=lambda: True):
        """The exit status of a command; None if it was killed."""
        (self.root / "command.json").write_text(json.dumps([str(a) for a in arguments]))
        self.zygote.fork()
        if kill_after_s is not None:
            self.zygote.kill_once(begun, after_s=self.chance.uniform(0, kill_after_s))
        code, said = self.zygote.wait()
        if code == -signal.SIGKILL:
            self.n_kills += 1
            return None
        assert code == 0, said
        return int(said.rsplit("exit ", 1)[1])


REDTEAM = (
    *("redteam", "--judge", "scripted:tests.cli.test_killed:paid_believer", "--judge-all"),
    *("--attacks", "typed,clicked-together,verdict-in-page,honest-untouched,files"),
    *("--into", "rt", "--json"),
)


@pytest.mark.slow
def test_random_kills_of_redteam_lose_and_double_nothing(tmp_path):
    killed, calm = tmp_path / "killed", tmp_path / "calm"
    killed.mkdir()
    Made(killed, MakeTrace(killed), n_tasks=3)
    shutil.copytree(killed, calm)
    journal = killed / "rt" / JOURNAL
    work = "tests.cli.test_killed:type_it"
    with Zygote(work, calm, output=tmp_path / "said") as zygote:
        assert Shell(calm, zygote, 0).type(*REDTEAM) == 0
    with Zygote(work, killed, output=tmp_path / "said") as zygote:
        shell = Shell(killed, zygote, 4)
        for _ in range(8):
            size = journal.stat().st_size if journal.exists() else 0

            def grew(size=size):
                return journal.exists() and journal.stat().st_size > size

            assert shell.type(*REDTEAM, kill_after_s=0.04, begun=grew) is None
        assert shell.type(*REDTEAM) == 0
    found, wanted = read_trials(journal), read_trials(calm / "rt" / JOURNAL)
    by_name = lambda trial: (trial.task_id, trial.judge_key, trial.attack)  # noqa: E731
    assert sorted(found, key=by_name) == sorted(wanted, key=by_name)
    assert len({by_name(trial) for trial in found}) == len(found) == 3 * 2 * 12
    paid = (killed / PAID).read_text().splitlines()
    assert set(paid) == set((calm / PAID).read_text().splitlines())
    # What was asked and not yet kept when a kill came is asked again: at most what was in flight.
    assert len(paid) <= len(set(paid)) + 2 * shell.n_kills
    kept = [len(list(Ledger(at / "experiments" / "calls").calls())) for at in (killed, calm)]
    assert kept[0] == kept[1] == len(set(paid))


@pytest.mark.slow
def test_random_kills_of_eval_by_batch_submit_and_fetch_lose_and_double_nothing(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ids = [f"t{n}" for n in range(8)]
    bench = MadeBenchmark(tmp_path / "Made", [row(task_id) for task_id in ids])
    bench.rubrics = {task_id: rubric(task_id, 40, 60, check=False) for task_id in ids}
    loaded = bench.load()
    run = MadeRun.of(tmp_path / "experiments", loaded)
    for task_id in ids:
        run.settle(loaded, task_id, f"answer {task_id}")
    judge = ("eval", "--agent", "scripted", "--benchmark", bench.path, "--judge", "judge")
    commands = (
        (*judge, "--batch", "batch"),
        ("models", "batch", "submit", "batch", "--price-factor", "0.5"),
        ("models", "batch", "fetch", "batch", "--price-factor", "0.5"),
    )
    with BatchProvider(says_no) as provider:
        (tmp_path / "bubench.toml").write_text(CONFIG.format(url=provider.openai_url))
        with Zygote("tests.cli.test_killed:type_it", tmp_path, output=tmp_path / "said") as zygote:
            shell = Shell(tmp_path, zygote, 7)
            ended = []
            for turn in range(90):
                command = commands[turn % 3]
                status = shell.type(*command, kill_after_s=0.5 if shell.n_kills < 15 else None)
                ended.append((command[0], status))
                if shell.chance.random() < 0.3 or shell.n_kills >= 15:
                    provider.end_all()
                if ended[-1] == ("eval", 0):
                    break
    assert ended[-1] == ("eval", 0)
    assert shell.n_kills > 3
    sent = [line["custom_id"] for job in provider.jobs.values() for line in job["lines"]]
    assert len(sent) == len(set(sent)) == len(ids)
    judged = run.folder.judgements()
    assert Counter(judgement.task_id for judgement in judged) == dict.fromkeys(ids, 1)
    assert {judgement.status for judgement in judged} == {"graded"}
    calls = tmp_path / "experiments" / "calls"
    assert len(list(Ledger(calls).calls())) == len(ids)
    spending = Spending(calls / FILE)
    assert spending.under_way()[0] == 0
    (ever,) = spending.ever.values()
    assert ever.n_calls == len(ids)
    assert ever.known_usd == pytest.approx(
        sum(use.cost_usd for judgement in judged for use in judgement.usage)
    )
