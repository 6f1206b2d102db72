"""What was asked once is kept whole, answers what is equal and nothing else, and is never paid
for twice."""

import asyncio
import json
import random
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.errors import ConfigError, DataError, StoreError
from browseruse_bench.models.base import (
    Image,
    MalformedError,
    Message,
    ModelId,
    OutageError,
    Params,
    PendingError,
    RefusalError,
    Reply,
    Request,
    TooLongError,
    TruncatedError,
)
from browseruse_bench.models.ledger import Ledger, LedgerModel, call_key
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.models.spending_log import Spending, What
from browseruse_bench.records.trace import Usage

SCHEMA = {"type": "object"}


def asked(text="hello", *, schema=None, **more):
    return Request(messages=(Message(role="user", parts=(text,)),), schema=schema, **more)


def echo(text, sample):
    return {"said": text, "sample": sample}


def kept(model, path, **more):
    return LedgerModel(model, Ledger(path, **more))


async def ask(model, request, **more):
    return await model.ask(request, purpose="judge", **more)


class Slow:
    """A priced model that takes a moment, and fails when its test says so."""

    id = ModelId(label="slow", provider="scripted", name="slow")
    may_see = "restricted"

    def __init__(self, *, fails=None, seconds=0.01):
        self.fails = fails
        self.seconds = seconds
        self.n_asked = 0
        self.n_cut = 0

    async def ask(self, request, *, purpose, restricted=False):
        self.n_asked += 1
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.n_cut += 1
            raise
        if self.fails:
            raise self.fails
        usage = Usage(model="slow", output_tokens=3, cost_usd=0.5, price_source="test")
        return Reply(raw=f"reply {self.n_asked}", usage=usage)


async def test_the_second_run_of_the_same_work_costs_nothing_and_says_what_it_cost(tmp_path):
    inner = Slow()
    first = await ask(kept(inner, tmp_path), asked())
    assert (first.from_ledger, first.raw) == (False, "reply 1")
    spending = Spending()
    model = LedgerModel(inner, Ledger(tmp_path), spending=spending)
    second = await ask(model, asked())
    assert (second.from_ledger, second.raw, second.call) == (True, "reply 1", first.call)
    assert second.usage == first.usage
    assert second.usage.cost_usd == 0.5
    assert inner.n_asked == 1
    assert spending.reused[What("", "judge", "slow")].cost_usd == 0.5
    assert spending.now == {}


async def test_a_reply_from_the_ledger_is_the_reply_but_for_from_ledger(tmp_path):
    value = {"items": [None, {"a": None, "b": 1.5, "ü": "\u2028 \U0001f600"}], "x": 1e-7}
    request = asked(schema=SCHEMA)
    model = kept(ScriptedModel(lambda *_: json.dumps(value)), tmp_path)
    first = await ask(model, request)
    second = await ask(model, request)
    assert first.value == value
    assert second == first.model_copy(update={"from_ledger": True})
    # Also where the value is null.
    nothing = kept(ScriptedModel(lambda *_: "null", label="n"), tmp_path)
    assert [(await ask(nothing, request)).value for _ in range(2)] == [None, None]


async def test_another_sample_number_always_asks(tmp_path):
    inner = Slow()
    model = kept(inner, tmp_path)
    replies = [await ask(model, asked(sample=n)) for n in (0, 1, 2, 1, 0)]
    assert inner.n_asked == 3
    assert [r.raw for r in replies] == ["reply 1", "reply 2", "reply 3", "reply 2", "reply 1"]


IMAGE = Image.of_bytes(b"one", "image/png")
OTHERS = {
    "text": asked("hello!"),
    "role": Request(messages=(Message(role="system", parts=("hello",)),)),
    "turns": Request(messages=(Message(role="user", parts=("hel", "lo")),)),
    "image": Request(messages=(Message(role="user", parts=("hello", IMAGE)),)),
    "other image": Request(
        messages=(Message(role="user", parts=("hello", Image.of_bytes(b"two", "image/png"))),)
    ),
    "schema": asked(schema=SCHEMA),
    "other schema": asked(schema={"type": "array"}),
    "schema name": asked(schema=SCHEMA, schema_name="other"),
    "temperature": asked(params=Params(temperature=0.5)),
    "max tokens": asked(params=Params(max_tokens=7)),
    "reasoning": asked(params=Params(reasoning="low")),
    "seed": asked(params=Params(seed=1)),
}


async def test_whatever_matters_makes_another_call(tmp_path):
    inner = Slow(seconds=0)
    model = kept(inner, tmp_path)
    for request in (asked(), *OTHERS.values()):
        await ask(model, request)
    assert inner.n_asked == 1 + len(OTHERS)
    for request in (asked(), *OTHERS.values()):
        assert (await ask(model, request)).from_ledger
    assert len({call_key("m", request) for request in (asked(), *OTHERS.values())}) == 13


async def test_another_model_is_asked_anew_and_another_label_of_the_same_is_not(tmp_path):
    ids = [
        ModelId(label="a", provider="openai", name="m"),
        ModelId(label="b", provider="openai", name="m"),
        ModelId(label="a", provider="openai", name="m", base_url="http://h/v1"),
        ModelId(label="a", provider="openai", name="m", detail={"params": {"seed": 1}}),
    ]
    asks = []
    for id in ids:
        inner = Slow(seconds=0)
        inner.id = id
        await ask(kept(inner, tmp_path), asked())
        asks.append(inner.n_asked)
    assert asks == [1, 0, 1, 1]
    assert {model.key for model in Ledger(tmp_path).models().values()} == {i.key for i in ids}


async def test_where_an_image_is_does_not_matter(tmp_path):
    (tmp_path / "a.png").write_bytes(b"one")
    in_file = Image(sha256=IMAGE.sha256, media_type="image/png", path=tmp_path / "a.png")
    inner = Slow(seconds=0)
    model = kept(inner, tmp_path / "calls")
    for image in (IMAGE, in_file):
        await ask(model, Request(messages=(Message(role="user", parts=(image,)),)))
    assert inner.n_asked == 1


# --- at the same time ---------------------------------------------------------------------------


async def test_many_that_ask_the_same_at_once_ask_once_and_one_of_them_pays(tmp_path):
    inner = Slow()
    model = kept(inner, tmp_path)
    replies = await asyncio.gather(*(ask(model, asked()) for _ in range(50)))
    assert inner.n_asked == 1
    assert {reply.raw for reply in replies} == {"reply 1"}
    assert sum(not reply.from_ledger for reply in replies) == 1
    assert list((tmp_path / ".locks").iterdir()) == []


async def test_many_that_wait_for_a_failing_call_share_its_failure(tmp_path):
    inner = Slow(fails=TruncatedError("cut", raw="half a"))
    model = kept(inner, tmp_path)
    failed = await asyncio.gather(*(ask(model, asked()) for _ in range(20)), return_exceptions=True)
    assert inner.n_asked == 1
    assert all(isinstance(error, TruncatedError) for error in failed)
    with pytest.raises(TruncatedError):
        await ask(model, asked())
    assert inner.n_asked == 2


@settings(max_examples=40)
@given(st.lists(st.booleans(), min_size=1, max_size=6))
def test_a_call_goes_on_while_anybody_waits_for_it_and_ends_with_the_last(cancelled):
    async def play(path):
        inner = Slow(seconds=0.005)
        model = kept(inner, path)
        tasks = [asyncio.create_task(ask(model, asked())) for _ in cancelled]
        await asyncio.sleep(0.001)
        for task, goes in zip(tasks, cancelled, strict=True):
            if goes:
                task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        for result, goes in zip(results, cancelled, strict=True):
            assert isinstance(result, asyncio.CancelledError) == goes
        assert inner.n_asked == 1
        assert inner.n_cut == int(all(cancelled))
        assert (Ledger(path).find(call_key(inner.id.key, asked())) is None) == all(cancelled)
        # And nothing is in the way of the next one.
        async with asyncio.timeout(10):
            await ask(model, asked())

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder)))


async def test_two_ledgers_of_one_folder_ask_once(tmp_path):
    inner = Slow(seconds=0.05)
    models = [kept(inner, tmp_path) for _ in range(3)]
    replies = await asyncio.gather(*(ask(model, asked()) for model in models))
    assert inner.n_asked == 1
    assert sum(reply.from_ledger for reply in replies) == 2


def test_several_event_loops_and_threads_ask_once(tmp_path):
    inner = Slow(seconds=0.05)
    model = kept(inner, tmp_path)
    replies = []

    def run():
        replies.append(asyncio.run(ask(model, asked())))

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    run()
    assert inner.n_asked == 1
    assert [reply.from_ledger for reply in replies].count(False) == 1
    assert len(replies) == 4


ASKER = """
import asyncio, sys
from pathlib import Path
from browseruse_bench.models.base import Message, ModelId, Params, Reply, Request
from browseruse_bench.models.ledger import Ledger, LedgerModel
from browseruse_bench.models.spending import Budget, BudgetModel
from browseruse_bench.models.spending_log import FILE, Spending
from browseruse_bench.records.trace import Usage

folder, seconds, n = Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])

class Provider:
    id = ModelId(label="m", provider="scripted", name="m")
    may_see = "clean"
    async def ask(self, request, *, purpose, restricted=False):
        with (folder / "asked.log").open("a") as log:
            log.write(request.text + chr(10))
        await asyncio.sleep(seconds)
        return Reply(raw="to " + request.text, usage=Usage(model="m", cost_usd=0.01))

async def main():
    budget = Budget(None, Spending(folder / FILE))
    model = LedgerModel(BudgetModel(Provider(), budget, cost=lambda p, r: 0.02), Ledger(folder))
    print("ready", flush=True)
    async def one(number):
        request = Request(
            messages=(Message(role="user", parts=(str(number),)),), params=Params(max_tokens=9)
        )
        reply = await model.ask(request, purpose="judge")
        assert reply.raw == "to " + str(number)
        print("done", number, int(reply.from_ledger), flush=True)
    slots = asyncio.Semaphore(4)
    async def slot(number):
        async with slots:
            await one(number)
    await asyncio.gather(*(slot(number) for number in range(n)))

asyncio.run(main())
"""


def asker(folder, seconds, n):
    return subprocess.Popen(
        [sys.executable, "-c", ASKER, str(folder), str(seconds), str(n)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_several_processes_ask_each_thing_once(tmp_path):
    processes = [asker(tmp_path, 0.02, 12) for _ in range(3)]
    told = [process.communicate(timeout=120)[0] for process in processes]
    assert all(process.returncode == 0 for process in processes)
    asked_for = (tmp_path / "asked.log").read_text().split()
    assert sorted(asked_for, key=int) == [str(n) for n in range(12)]
    assert sum(line.endswith(" 0") for text in told for line in text.splitlines()) == 12


def test_killed_at_any_moment_nothing_that_was_told_is_lost_and_the_rest_is_asked(tmp_path):
    chance = random.Random(4)
    told = set()
    n_kills = 0
    for _ in range(4):
        process = asker(tmp_path, 0.01, 40)
        assert process.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 0.06))
        process.kill()
        text = process.communicate()[0]
        n_kills += process.returncode == -signal.SIGKILL
        for line in text.splitlines():
            if line.startswith("done") and len(line.split()) == 3:
                told.add(line.split()[1])
        for call in Ledger(tmp_path).calls():
            assert call.raw == f"to {call.raw.removeprefix('to ')}"
    assert n_kills > 0
    asked_before = (tmp_path / "asked.log").read_text().split()
    answered = {call.raw.removeprefix("to ") for call in Ledger(tmp_path).calls()}
    assert told <= answered
    last = asker(tmp_path, 0.01, 40)
    text = last.communicate(timeout=120)[0]
    assert last.returncode == 0
    assert len(text.splitlines()) == 41
    new = (tmp_path / "asked.log").read_text().split()[len(asked_before) :]
    assert sorted(new, key=int) == sorted({str(n) for n in range(40)} - answered, key=int)
    assert list((tmp_path / ".locks").iterdir()) == []
    # What was under way at a kill may have been paid for: no limit forgets it.
    totals = Spending(tmp_path / "spending.jsonl").ever[What("", "judge", "m")]
    asked_in_all = len(asked_before) + len(new)
    assert totals.n_calls >= asked_in_all
    assert totals.charged_usd >= 0.01 * asked_in_all - 1e-9


# --- what is on disk ----------------------------------------------------------------------------


def only_file(path):
    (file,) = path.glob("??/*.json")
    return file


@settings(max_examples=40)
@given(st.data())
def test_a_damaged_file_is_noticed_said_and_asked_again(data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        said = []
        inner = ScriptedModel(echo)
        asyncio.run(ask(kept(inner, path), asked(schema=SCHEMA)))
        file = only_file(path)
        whole = file.read_bytes()
        damaged = bytearray(whole)
        if data.draw(st.booleans()):
            damaged = damaged[: data.draw(st.integers(0, len(whole) - 1))]
        else:
            at = data.draw(st.integers(0, len(whole) - 1))
            damaged[at] ^= 1 << data.draw(st.integers(0, 7))
        file.write_bytes(damaged)
        again = asyncio.run(ask(kept(inner, path, say=said.append), asked(schema=SCHEMA)))
        # The bytes around the call and its checksum decide nothing.
        if not again.from_ledger:
            assert len(inner.requests) == 2
            assert str(file) in said[0]
            assert "damaged" in said[0]
            assert file.with_suffix(".damaged").read_bytes() == damaged
        assert again.value == {"said": "hello", "sample": 0}
        assert len(damaged) == len(whole) or not again.from_ledger
        assert asyncio.run(ask(kept(inner, path), asked(schema=SCHEMA))).from_ledger


def test_a_call_under_another_name_is_no_answer(tmp_path):
    inner = ScriptedModel(echo)
    asyncio.run(ask(kept(inner, tmp_path), asked(schema=SCHEMA)))
    key = call_key(inner.id.key, asked("other", schema=SCHEMA))
    place = tmp_path / key[:2] / f"{key}.json"
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(only_file(tmp_path).read_bytes())
    said = []
    assert Ledger(tmp_path, say=said.append).find(key) is None
    assert "it is the call" in said[0]


FAILURES = {
    "outage": lambda: OutageError("503"),
    "truncated": lambda: TruncatedError("cut", raw='{"a":', usage=paid(0.1)),
    "refusal": lambda: RefusalError("no", raw="I cannot"),
    "too_long": lambda: TooLongError("400 too long"),
    "malformed": lambda: MalformedError("no JSON", raw="not json", usage=paid(0.2)),
}


def paid(usd):
    return Usage(model="slow", cost_usd=usd)


@pytest.mark.parametrize("status", FAILURES)
async def test_a_failure_is_kept_under_its_own_name_and_never_answers(tmp_path, status):
    inner = Slow()
    model = kept(inner, tmp_path)
    for number in (1, 2):
        inner.fails = failure = FAILURES[status]()
        with pytest.raises(type(failure)) as caught:
            await ask(model, asked())
        assert caught.value.call.endswith(f"-{status}-{number}")
        call = Ledger(tmp_path).read(caught.value.call)
        assert (call.status, call.raw) == (status, failure.raw)
        assert call.usage == failure.usage
        assert call.error == str(failure)
    inner.fails = None
    assert not (await ask(model, asked())).from_ledger
    assert inner.n_asked == 3
    ledger = Ledger(tmp_path)
    assert [call.status for call in ledger.calls()] == ["answered"]
    assert [call.status for call in ledger.calls(failed=True)] == [status] * 2


async def test_what_only_waits_in_a_batch_is_no_failure(tmp_path):
    model = kept(Slow(fails=PendingError("queued")), tmp_path)
    with pytest.raises(PendingError):
        await ask(model, asked())
    assert list(Ledger(tmp_path).files()) == []


async def test_the_request_is_kept_as_its_digest_or_whole_if_asked_for(tmp_path):
    request = Request(messages=(Message(role="user", parts=("a secret plan", IMAGE)),), sample=3)
    for folder, keep in (("digest", False), ("whole", True)):
        await ask(kept(Slow(), tmp_path / folder, keep_requests=keep), request)
        (call,) = Ledger(tmp_path / folder).calls()
        assert (call.request.id, call.request.sample) == (request.key, 3)
        assert (call.request.n_chars, call.request.images) == (13, (IMAGE.sha256,))
        assert ("secret plan" in only_file(tmp_path / folder).read_text()) == keep
    assert call.kept["messages"][0]["parts"][0] == "a secret plan"


async def test_a_kept_call_says_when_for_what_and_by_whose_price(tmp_path):
    times = iter(["2026-01-01T00:00:00+00:00", "2026-01-01T00:00:09+00:00"])
    model = LedgerModel(Slow(), Ledger(tmp_path), scope="run-1", now=lambda: next(times))
    reply = await ask(model, asked())
    call = Ledger(tmp_path).read(reply.call)
    assert (call.purpose, call.scope, call.model, call.via) == ("judge", "run-1", "slow", "live")
    assert (call.asked_at[-8:], call.at[-8:]) == ("00+00:00", "09+00:00")
    assert call.usage.price_source == "test"
    with pytest.raises(DataError, match="no call ../../x"):
        Ledger(tmp_path).read("../../x")


async def test_keys_are_redacted_by_value_and_the_first_reply_is_as_the_later_ones(
    tmp_path, monkeypatch
):
    secret = 'k3y"0f/the pr0vider-2024'
    monkeypatch.setenv("PROVIDER_API_KEY", secret)
    request = asked(f"the key is {secret}", schema=SCHEMA)
    model = kept(ScriptedModel(echo), tmp_path, keep_requests=True)
    first = await ask(model, request)
    assert first.value["said"] == "the key is [redacted]"
    assert (await ask(model, request)).value == first.value
    with pytest.raises(OutageError):
        await ask(kept(Slow(fails=OutageError(f"401: {secret}", raw=secret)), tmp_path), asked())
    for file in tmp_path.rglob("*"):
        if file.is_file():
            assert "k3y" not in file.read_text()


async def test_restricted_calls_go_to_a_folder_that_nobody_else_can_open(tmp_path):
    clean, private = tmp_path / "clean", tmp_path / "private"
    private.mkdir(mode=0o755)
    model = LedgerModel(Slow(), Ledger(clean), restricted=Ledger(private, private=True))
    reply = await ask(model, asked("my passport"), restricted=True)
    assert list(Ledger(clean).files()) == []
    file = only_file(private)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert (await ask(model, asked("my passport"), restricted=True)).call == reply.call
    # What was asked as restricted answers nothing that is not.
    assert not (await ask(model, asked("my passport"))).from_ledger


async def test_a_restricted_request_without_a_folder_or_clearance_is_refused(tmp_path):
    inner = Slow()
    with pytest.raises(ConfigError, match="give a folder for restricted calls"):
        await ask(kept(inner, tmp_path), asked(), restricted=True)
    inner.may_see = "clean"
    model = LedgerModel(inner, Ledger(tmp_path), restricted=Ledger(tmp_path / "p", private=True))
    with pytest.raises(ConfigError, match="not cleared for restricted text"):
        await ask(model, asked(), restricted=True)
    assert inner.n_asked == 0


async def test_a_reply_that_cannot_be_kept_is_an_error_that_says_so(tmp_path, monkeypatch):
    def full(*args, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("browseruse_bench.models.ledger.write_atomic", full)
    with pytest.raises(StoreError, match=r"could not be kept.*No space left"):
        await ask(kept(Slow(), tmp_path), asked())


async def test_memory_and_order_do_not_depend_on_how_many_calls_there_are(tmp_path):
    model = kept(ScriptedModel(echo), tmp_path)
    for number in range(30):
        await ask(model, asked(str(number), schema=SCHEMA))
    calls = Ledger(tmp_path).calls()
    assert iter(calls) is calls
    ids = [call.id for call in calls]
    assert ids == sorted(ids)
    assert len(ids) == 30
