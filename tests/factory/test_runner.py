import asyncio
import json
import os
import random
import signal
import tracemalloc
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.errors import BudgetError, ConfigError, DataError, StageError, StoreError
from browseruse_bench.factory.context import Resources
from browseruse_bench.factory.runner import run_fold, run_stage
from browseruse_bench.factory.stage import Dropped, Flow, Kept
from browseruse_bench.factory.stage_folder import StageFolder
from browseruse_bench.models.base import OutageError, PendingError
from browseruse_bench.models.ledger import Ledger
from browseruse_bench.records.trace import Usage
from tests.factory.doubles import (
    Asks,
    Billed,
    First,
    Halve,
    Number,
    billed_context,
    billed_key,
    context,
    numbers,
)
from tests.zygote import Zygote, grown


@pytest.fixture
def folder(tmp_path):
    return StageFolder(tmp_path / "halve")


def run(stage, units, folder, ctx=None, **options):
    folder.claim(stage, "abc")
    ctx = ctx or context(folder.path.parent)
    return asyncio.run(run_stage(stage, units, folder, ctx, source="test", **options))


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_every_unit_that_came_in_is_somewhere(folder):
    done = run(Halve(broken=frozenset({4})), numbers(*range(11)), folder)
    assert done.flow == Flow(n_in=11, kept=3, dropped={"five": 3, "odd": 4}, failed=1)
    assert done.n_now == 11
    assert [line["value"]["n"] for line in lines(folder.path / "kept.jsonl")] == [1, 3, 4]
    dropped = {line["unit"]: line for line in lines(folder.path / "dropped.jsonl")}
    assert dropped["n00005"]["evidence"] == {"n": 5}


def test_counts_that_do_not_add_up_cannot_be_made():
    with pytest.raises(ValueError, match="in 3"):
        Flow(n_in=3, kept=1, dropped={"odd": 1})


def test_what_settled_is_final_and_what_failed_is_owed_again(folder):
    run(Halve(broken=frozenset({4, 6})), numbers(*range(8)), folder)
    again = Halve(broken=frozenset({6}))
    done = run(again, numbers(*range(10)), folder)
    assert sorted(again.seen) == [4, 6, 8, 9]
    assert (done.flow.failed, done.flow.n_in) == (1, 10)
    failed = [line for line in lines(folder.journal_path) if line["status"] == "failed"]
    assert "ValueError: no luck" in failed[-1]["error"]


def test_a_unit_that_comes_in_twice_is_one_unit_and_the_other_is_said_to_be_merged(folder):
    done = run(Halve(), numbers(2, 2, 4), folder)
    assert (done.n_now, done.n_merged) == (2, 1)
    assert done.flow == Flow(n_in=3, kept=2, dropped={"merged": 1})
    assert {"unit": "n00002", "reason": "merged", "evidence": {}} in lines(
        folder.path / "dropped.jsonl"
    )


def test_two_units_that_differ_under_one_key_are_refused_before_anything_is_asked(folder):
    class Named(Number):
        name: str

    stage = Halve()
    stage.takes = Named
    with pytest.raises(StageError, match="two units that differ have the key n00002"):
        run(stage, [Named(n=2, name="a"), Named(n=2, name="b")], folder)
    assert stage.seen == []
    assert not folder.journal_path.exists()


def test_a_higher_version_settles_every_unit_again_and_keeps_what_was(folder):
    run(Halve(), numbers(1, 2, 3), folder)
    later = Halve()
    later.version = 2
    assert run(later, numbers(1, 2, 3), folder).n_now == 3
    assert len(lines(folder.journal_path)) == 6
    with pytest.raises(ConfigError, match="newer program"):
        folder.claim(Halve(), None)


def test_a_changed_configuration_is_refused_and_named(folder):
    run(Halve(threshold=1), numbers(1, 2), folder)
    with pytest.raises(ConfigError, match=r"settings\.threshold.*--restart"):
        run(Halve(threshold=2), numbers(1, 2), folder)
    assert run(Halve(threshold=1), numbers(1, 2), folder).n_now == 0
    aside = folder.set_aside()
    assert aside.name == "halve.before-1"
    assert run(Halve(threshold=2), numbers(1, 2), folder).n_now == 2


def test_a_changed_prompt_is_refused_and_another_commit_is_not(folder, tmp_path):
    prompt = tmp_path / "label.md"
    prompt.write_text("Say it.")
    stage = Halve()
    stage.prompts = (prompt,)
    run(stage, numbers(1), folder)
    folder.claim(stage, "another commit")
    prompt.write_text("Say it well.")
    with pytest.raises(ConfigError, match=r"prompts\.label\.md"):
        folder.claim(stage, "abc")


def test_each_drop_of_units_is_noted_once(folder):
    for _ in range(2):
        run(Halve(), numbers(1, 2), folder)
    run(Halve(), numbers(3, 2, 1), folder)
    drops = lines(folder.inputs_path)
    assert [(drop["n_units"], drop["n_new"]) for drop in drops] == [(2, 2), (3, 1)]


def test_a_reached_budget_ends_the_stage_and_leaves_the_rest_pending(folder):
    def answer(text, sample):
        if text == "3":
            raise BudgetError("5 USD are spent")
        return text

    done = run(Asks(), numbers(*range(6)), folder, context(folder.path, answer), in_flight=1)
    assert done.over_budget == "5 USD are spent"
    assert (done.flow.kept, done.flow.pending) == (3, 3)
    assert run(Asks(), numbers(*range(6)), folder).flow.kept == 6


def test_what_waits_in_a_batch_is_pending_and_not_failed(folder):
    def answer(text, sample):
        if text == "3":
            raise PendingError("queued")
        return text

    done = run(Asks(), numbers(*range(6)), folder, context(folder.path, answer))
    assert (done.flow.kept, done.flow.pending, done.flow.failed) == (5, 1, 0)


def test_what_a_unit_cost_stands_in_its_line_also_where_it_failed(folder):
    def answer(text, sample):
        if text == "1":
            raise OutageError("503", usage=Usage(model="m", cost_usd=0.25))
        return text

    done = run(Asks(), numbers(1, 2), folder, context(folder.path, answer))
    by_unit = {line["unit"]: line for line in lines(folder.journal_path)}
    assert by_unit["n00001"]["usage"][0]["cost_usd"] == 0.25
    assert by_unit["n00002"]["usage"][0]["cost_usd"] == 0.0
    assert {use.model: use.cost_usd for use in done.usage_now} == {"m": 0.25, "scripted": 0.0}


def test_a_reason_that_a_stage_does_not_declare_is_its_fault(folder):
    stage = Halve()
    stage.reasons = frozenset({"five"})
    done = run(stage, numbers(1, 5), folder)
    assert (done.flow.failed, done.flow.dropped) == (1, {"five": 1})


def test_nothing_further_starts_once_it_is_stopped(folder):
    async def stopped():
        stop = asyncio.Event()
        stage = Halve()
        folder.claim(stage, None)
        return await run_stage(
            stage,
            numbers(*range(100)),
            folder,
            context(folder.path),
            source="test",
            in_flight=4,
            stop=stop,
            on_settled=lambda progress: stop.set() if progress.n_now == 10 else None,
        )

    done = asyncio.run(stopped())
    assert 10 <= done.n_now <= 14
    assert done.flow.pending == 100 - done.n_now


def test_many_units_are_settled_at_a_time(folder):
    class Waits(Halve):
        most = now = 0

        async def settle(self, unit, ctx):
            self.now += 1
            self.most = max(self.most, self.now)
            await asyncio.sleep(0.01)
            self.now -= 1
            return await super().settle(unit, ctx)

    stage = Waits()
    run(stage, numbers(*range(40)), folder, in_flight=8)
    assert stage.most == 8


def test_a_full_disk_is_said_and_nothing_is_half_written(folder, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    stage = Halve()
    with pytest.raises((StoreError, OSError), match="No space left"):
        run(stage, numbers(*range(5)), folder)
    monkeypatch.undo()
    assert run(stage, numbers(*range(5)), folder).flow.pending == 0


@given(cut=st.integers(0, 2000))
def test_a_journal_that_is_cut_anywhere_resumes_to_the_same_result(tmp_path_factory, cut):
    folder = StageFolder(tmp_path_factory.mktemp("cut") / "halve")
    whole = run(Halve(), numbers(*range(12)), folder)
    before = [(folder.path / name).read_bytes() for name in ("kept.jsonl", "dropped.jsonl")]
    text = folder.journal_path.read_bytes()
    folder.journal_path.write_bytes(text[: min(cut, len(text))])
    assert run(Halve(), numbers(*range(12)), folder).flow == whole.flow
    after = [(folder.path / name).read_bytes() for name in ("kept.jsonl", "dropped.jsonl")]
    assert after == before


def test_a_damaged_line_is_named_and_nothing_is_lost(folder):
    run(Halve(), numbers(1, 2), folder)
    text = folder.journal_path.read_text()
    folder.journal_path.write_text("{nonsense}\n" + text)
    with pytest.raises(DataError, match="line 1 is damaged"):
        run(Halve(), numbers(1, 2), folder)
    assert folder.journal_path.read_text().endswith(text)


# Folds


def fold(units, folder, step=None):
    step = step or First()
    folder.claim(step, None)
    return asyncio.run(run_fold(step, units, folder, context(folder.path), source="test"))


def test_a_fold_decides_over_all_units_and_earlier_outcomes_stand(folder):
    assert fold(numbers(13, 15, 27), folder).flow == Flow(n_in=3, kept=2, dropped={"later": 1})
    done = fold(numbers(11, 13, 15, 27, 31), folder)
    assert done.n_now == 2
    kept = [line["value"]["n"] for line in lines(folder.path / "kept.jsonl")]
    assert sorted(kept) == [13, 27, 31]


def test_a_fold_that_leaves_a_unit_out_is_refused_whole(folder):
    class Forgets(First):
        def fold(self, units, prior, ctx):
            yield from list(super().fold(units, prior, ctx))[1:]

    with pytest.raises(StageError, match="1 units have no outcome"):
        fold(numbers(1, 2, 3), folder, Forgets())
    assert not folder.journal_path.exists()


def test_a_fold_that_names_a_stranger_or_one_unit_twice_is_refused(folder):
    class Strange(First):
        def fold(self, units, prior, ctx):
            yield from super().fold(units, prior, ctx)
            yield "n99999", Dropped("later")

    class Twice(First):
        def fold(self, units, prior, ctx):
            for key, outcome in super().fold(units, prior, ctx):
                yield key, outcome
                yield key, Kept(outcome.value) if isinstance(outcome, Kept) else outcome

    with pytest.raises(StageError, match="of no unit"):
        fold(numbers(1), folder, Strange())
    with pytest.raises(StageError, match="two outcomes"):
        fold(numbers(1), folder, Twice())


# kill -9


N_BILLED, IN_FLIGHT = 2000, 4


def play(root):
    """Settle what is owed of 2,000 units. Runs in a process of its own."""
    folder = StageFolder(Path(root, "asks"))
    folder.claim(Asks(), None)
    units = numbers(*range(N_BILLED))
    where = {"source": "test", "in_flight": IN_FLIGHT}
    done = asyncio.run(run_stage(Asks(), units, folder, billed_context(Path(root)), **where))
    print(done.flow.sentence)


@pytest.mark.slow
def test_fifty_kills_lose_nothing_and_pay_nothing_twice_but_what_was_in_flight(tmp_path):
    chance = random.Random(50)
    kills, n_lost, n_seen = 50, 0, 0
    journal, bill = tmp_path / "asks" / "journal.jsonl", tmp_path / "bill"
    ledger = Ledger(tmp_path / "calls")
    with Zygote("tests.factory.test_runner:play", tmp_path, output=tmp_path / "o") as process:
        for _ in range(kills):
            begun = grown(journal)
            process.fork()
            process.kill_once(begun, after_s=chance.uniform(0, 0.012))
            assert process.wait()[0] == -signal.SIGKILL, "it ended before it could be killed"
            # What the provider was asked for, and no answer of it reached the ledger.
            asked_now = bill.read_text().split()[n_seen:]
            lost = sum(ledger.find(billed_key(int(text))) is None for text in asked_now)
            assert lost <= IN_FLIGHT
            n_lost, n_seen = n_lost + lost, n_seen + len(asked_now)
        assert n_seen > 2 * kills, "it was killed at work"
        process.fork()
        said = f"in {N_BILLED} = kept {N_BILLED} + dropped 0 + failed 0\n"
        assert process.wait() == (0, said)
    settled = [line["unit"] for line in lines(journal)]
    assert len(settled) == len(set(settled)) == N_BILLED
    paid = bill.read_text().split()
    assert len(set(paid)) == N_BILLED
    assert len(paid) == N_BILLED + n_lost


def test_the_bill_shows_what_is_paid_twice(tmp_path):
    """So that the test above can fail: without a ledger each retry is on the bill."""
    folder = StageFolder(tmp_path / "asks")
    for _ in range(2):
        opened = {"judge": Billed(tmp_path / "bill")}
        run(Asks(), numbers(1, 2), folder, context(tmp_path, open_model=opened.__getitem__))
        folder.set_aside()
    assert sorted((tmp_path / "bill").read_text().split()) == ["1", "1", "2", "2"]
    for _ in range(2):
        run(Asks(), numbers(3), folder, billed_context(tmp_path))
        folder.set_aside()
    assert (tmp_path / "bill").read_text().split().count("3") == 1


# Memory


def peak_bytes(folder, n):
    """The most that Python held while a stage settled n units."""

    class Even(Halve):
        async def settle(self, unit, ctx):
            return Kept(unit) if unit.n % 2 == 0 else Dropped("odd", {"n": unit.n})

    stage = Even()
    stage.gives = Number
    folder.claim(stage, None)
    units = (Number(n=place) for place in range(n))
    tracemalloc.start()
    try:
        done = asyncio.run(run_stage(stage, units, folder, context(folder.path), source="test"))
        assert done.flow.kept == n / 2
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_ten_times_the_units_do_not_take_twice_the_memory(tmp_path):
    peak_bytes(StageFolder(tmp_path / "warm"), 10)
    few = peak_bytes(StageFolder(tmp_path / "few"), 300)
    many = peak_bytes(StageFolder(tmp_path / "many"), 3000)
    assert many < 2 * few


# What is scarce


async def test_two_stages_share_what_is_scarce_and_hold_no_more_of_it_than_there_is(tmp_path):
    now, most = Counter(), Counter()

    class Browses(Halve):
        def needs(self, unit):
            return ("host", "browser") if unit.n % 2 else ("browser", "host", "endless")

        async def settle(self, unit, ctx):
            for name in ("browser", "host", "all"):
                now[name] += 1
                most[name] = max(most[name], now[name])
            await asyncio.sleep(0.001)
            now.subtract(("browser", "host", "all"))
            return await super().settle(unit, ctx)

    ctx = context(tmp_path, resources=Resources({"browser": 3, "host": 2}))
    stages = []
    for name in ("one", "two"):
        folder = StageFolder(tmp_path / name)
        stages.append(run_stage(Browses(), numbers(*range(20)), folder, ctx, source="test"))
    done = await asyncio.gather(*stages)
    assert [d.n_now for d in done] == [20, 20]
    assert most["all"] == 2, "as many as the scarcest has places for"


async def test_a_place_that_a_stage_holds_by_itself_is_one_of_the_same_places():
    resources = Resources({"browser": 1})
    async with resources.hold("browser"):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02), resources.hold("host", "browser"):
                pytest.fail("there is one place only")
    async with resources.hold("browser"):
        pass


# What it cost


def test_a_call_is_counted_once_whoever_asked_again_for_it_and_a_paid_failure_too(folder):
    class Fails(Asks):
        async def settle(self, unit, ctx):
            kept = await super().settle(unit, ctx)
            if unit.n in self.broken:
                raise ValueError("after it was paid")
            return kept

    ctx = billed_context(folder.path.parent)
    stage = Fails(broken=frozenset({2, 3}))
    first = run(stage, numbers(1, 2, 3), folder, ctx)
    assert sum(use.cost_usd for use in first.usage_now) == pytest.approx(0.03)
    second = run(Fails(broken=frozenset({3})), numbers(1, 2, 3), folder, ctx)
    assert second.usage_now == ()
    later = Fails()
    later.version = 2
    run(later, numbers(1, 2, 3, 4), folder, ctx)
    with folder.index(2) as index:
        (use,) = index.usage
    assert use.cost_usd == pytest.approx(0.04)
    assert len((folder.path.parent / "bill").read_text().split()) == 4
