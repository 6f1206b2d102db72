"""A batch asks what would be asked otherwise, believes no more, loses nothing, pays nothing twice."""

import asyncio
import json
import random
import signal
import stat
import tempfile
import time
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.errors import BenchError, BudgetError, ConfigError, DataError
from browseruse_bench.models.base import (
    CallError,
    MalformedError,
    Message,
    OutageError,
    Params,
    PendingError,
    RefusalError,
    TooLongError,
    TruncatedError,
)
from browseruse_bench.models.batch.collector import BatchCollector
from browseruse_bench.models.batch.export import Limits, export
from browseruse_bench.models.batch.folder import BatchFolder, BatchInfo, find_batches
from browseruse_bench.models.batch.form import Codec, form_of, settled
from browseruse_bench.models.batch.importing import Terms, import_answers, same_model
from browseruse_bench.models.batch.jobs import Batching, price_factor
from browseruse_bench.models.batch.service import service_of
from browseruse_bench.models.config import Asking, Price
from browseruse_bench.models.ledger import Ledger, LedgerModel
from browseruse_bench.models.spec import ModelSpec
from browseruse_bench.models.spending import Budget
from browseruse_bench.models.spending_log import FILE, Spending, What
from tests.models.batch_provider import BatchProvider, _result
from tests.models.fake_endpoint import Fail, FakeEndpoint, Say
from tests.models.made import KEY, MET, NAMES, model_of, picture, request, spec_of
from tests.zygote import Zygote

PRICE = Price(input=1_000_000, output=1_000_000)
"""One dollar a token, so that costs can be read off."""


def spec(provider="openai", *, base_url=None, price=PRICE, **asking):
    said = {"params": {"max_tokens": 50}, **asking}
    return ModelSpec(
        label="judge",
        provider=provider,
        name=NAMES[provider],
        base_url=base_url or ("http://h/v1" if provider == "openai-compatible" else None),
        key=KEY,
        key_name="MY_KEY",
        price=price,
        price_source="test",
        asking=Asking.model_validate(said),
    )


class Setting:
    """A batch of one model, and what works on it."""

    def __init__(self, path, of, *, restricted=False):
        self.path = path
        self.spec = of
        self.folder = BatchFolder.of(path / "batch", of.id)
        self.calls = Ledger(path / "calls")
        self.private = Ledger(path / "private", private=True) if restricted else None
        self.info = BatchInfo(
            model=of.id,
            text="judge",
            cwd=str(path),
            config="bubench.toml",
            calls=str(path / "calls"),
            restricted_calls=str(path / "private") if restricted else None,
        )
        self.spending = Spending(path / "calls" / FILE)

    def model(self, scope=""):
        may_see = self.spec.asking.may_see
        collector = BatchCollector(self.folder, self.info, may_see=may_see, scope=scope)
        return LedgerModel(
            collector, self.calls, restricted=self.private, spending=self.spending, scope=scope
        )

    async def collect(self, *requests, purpose="judge", scope="", restricted=False):
        """What each ask gives: a reply, or its error."""
        said = []
        for each in requests:
            try:
                said.append(
                    await self.model(scope).ask(each, purpose=purpose, restricted=restricted)
                )
            except BenchError as error:
                said.append(error)
        return said

    async def export(self, **options):
        return await export(self.folder, settled(self.spec, cache=self.path / "probes"), **options)

    def lines(self):
        return [
            json.loads(line)
            for part in self.folder.parts()
            for line in self.folder.lines_path(part).read_text().splitlines()
        ]

    def write(self, *answers, name="answers.jsonl"):
        path = self.path / name
        path.write_text("".join(a if isinstance(a, str) else json.dumps(a) + "\n" for a in answers))
        return path

    def answers(self, said, lines=None):
        """What a provider gives for the lines: Say or Fail by the text of each."""
        form = "anthropic" if self.spec.provider == "anthropic" else "openai"
        found = []
        for line in lines or self.lines():
            body = line.get("body") or line.get("params")
            found.append(_result(form, line["custom_id"], body, said(body)))
        return found

    async def take(self, *paths, **terms):
        terms.setdefault("price_factor", 1.0)
        return await import_answers(
            self.folder, self.spec, paths, spending=self.spending, terms=Terms(**terms)
        )

    def batching(self, provider, *, factor=0.5, **more):
        async def sleep(seconds):
            assert seconds <= 60

        return Batching(
            folder=self.folder,
            spec=self.spec,
            service=service_of(self.spec, sleep=sleep),
            spending=self.spending,
            terms=Terms(price_factor=factor),
            **more,
        )


@pytest.fixture
def setting(tmp_path):
    return Setting(tmp_path, spec())


def asked(text, **more):
    return request(text, **{"params": Params(max_tokens=50), **more})


def met(body):
    return Say(json.dumps(MET), model=body["model"])


def at_provider(path, provider, form):
    url = provider.anthropic_url if form == "anthropic" else provider.openai_url
    return Setting(path, spec(form, base_url=url))


# --- the same request ---------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["openai", "openai-compatible", "openrouter", "anthropic"])
@pytest.mark.parametrize("mode", ["native", "tool", "prompted"])
async def test_a_line_is_what_the_same_request_would_have_sent_alone(provider, mode, tmp_path):
    asks = request("Is it?", picture(), "Say.", system="Judge.", params=Params(max_tokens=77))
    if (provider, mode) == ("openrouter", "native"):
        mode = "tool"  # that model has none
    with FakeEndpoint([Say(json.dumps(MET), arguments=MET if mode == "tool" else None)]) as fake:
        live = spec_of(fake, provider, schema=mode, extra_body={"extra": 1})
        reply = await model_of(live, tmp_path).ask(asks, purpose="judge")
        sent = fake.asked[0]
    assert reply.value == MET
    line = await Codec(settled(live, cache=tmp_path)).line(asks)
    assert sent.body.pop("stream") is False
    assert line.body == sent.body
    assert sent.path.split("?")[0] == line.endpoint
    assert line.body["extra"] == 1
    assert "data:image/png;base64," in json.dumps(line.body) or provider == "anthropic"
    assert KEY not in json.dumps(line.as_json("k", "openai"))


@pytest.mark.parametrize("provider", ["openai", "openai-compatible", "anthropic"])
@pytest.mark.parametrize(
    "said",
    [
        Say(json.dumps(MET)),
        Say(f"<think>{json.dumps({**MET, 'status': 'violated'})}</think>\n{json.dumps(MET)}"),
        Say('{"status": "met", "why": "two\nlines"}'),
        Say("no verdict"),
        Say('{"status": "perhaps", "why": ""}'),
        Say(json.dumps(MET)[:-4], finish="length"),
        Say("I will not", finish="refusal"),
        Fail(400, "prompt is too long: 300000 tokens > 200000 maximum"),
    ],
    ids=lambda said: (said.finish + said.text[:9]) if isinstance(said, Say) else "too long",
)
async def test_an_answer_is_believed_as_a_live_one_or_as_little(provider, said, tmp_path):
    """The same bytes give the same value, usage, cost, or the same error."""
    asks = asked("Is it?")
    with FakeEndpoint([said] * 9) as fake:
        live = spec_of(fake, provider, price=PRICE)
        try:
            alone = await model_of(live, tmp_path / "probes", n_again=0).ask(asks, purpose="judge")
        except CallError as error:
            alone = error
    here = Setting(tmp_path, replace(live, asking=live.asking))
    await here.collect(asks)
    await here.export()
    if isinstance(said, Fail) and provider == "anthropic":
        body = {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": said.message},
        }
        said = Fail(400, body=body)
    done = await here.take(here.write(*here.answers(lambda body: said)))
    assert done.problems == []
    (later,) = await here.collect(asks)
    if isinstance(alone, Exception):
        assert type(later) in (type(alone), MalformedError)
        assert str(later) == str(alone)
        assert later.usage == alone.usage
        assert (later.raw == alone.raw) or isinstance(said, Fail)
        assert (done.n_answered, done.n_refused) == (0, 1)
    else:
        kept = {"from_ledger", "call", "seconds"}
        assert later.model_dump(exclude=kept) == alone.model_dump(exclude=kept)
        assert later.from_ledger
        assert done.cost_usd == alone.usage.cost_usd > 0


async def test_what_no_one_may_be_asked_is_refused_by_name_and_the_others_go_out(setting):
    bad = asked("x", schema={"type": "object", "unheard": 1})
    await setting.collect(bad, asked("y"))
    done = await setting.export()
    assert len(done.problems) == 1
    assert "unheard" in done.problems[0]
    assert done.parts[0].n == 1
    no_pictures = Setting(setting.path / "two", spec(images=False))
    await no_pictures.collect(request("a", picture()))
    assert "reads no pictures" in (await no_pictures.export()).problems[0]


def test_a_model_without_a_form_of_batches_is_refused(tmp_path):
    google = Setting(tmp_path, spec("google"))
    with pytest.raises(ConfigError, match="google has no form of batch files"):
        form_of(google.spec)


# --- collecting ---------------------------------------------------------------------------------


async def test_collected_exported_answered_imported_and_the_same_ask_goes_on(setting):
    asks = [asked(f"item {n}", sample=s) for n in range(3) for s in range(2)]
    assert all(isinstance(e, PendingError) for e in await setting.collect(*asks, scope="run-1"))
    assert all(isinstance(e, PendingError) for e in await setting.collect(*asks))
    done = await setting.export()
    assert (done.parts[0].n, done.n_waiting, done.n_out) == (6, 6, 0)
    lines = setting.lines()
    assert len({line["custom_id"] for line in lines}) == 6
    assert lines[0]["url"] == "/v1/chat/completions"
    random.Random(1).shuffle(lines)
    taken = await setting.take(setting.write(*setting.answers(met, lines)), price_factor=0.5)
    assert (taken.n_answered, taken.n_owed, taken.problems) == (6, 0, [])
    replies = await setting.collect(*asks)
    assert all(r.value == MET and r.from_ledger for r in replies)
    assert replies[0].usage.price_source == "test; batch, 0.5 of it"
    call = setting.calls.read(replies[0].call)
    assert (call.via, call.purpose, call.scope) == ("batch", "judge", "run-1")
    spent = setting.spending.ever[What("run-1", "judge", "judge")]
    assert spent.n_calls == 6
    assert spent.cost_usd == pytest.approx(sum(r.usage.cost_usd for r in replies))
    assert taken.cost_usd == pytest.approx(spent.cost_usd)
    # A sample that was not in it is asked anew.
    assert isinstance((await setting.collect(asked("item 0", sample=7)))[0], PendingError)


async def test_what_asks_again_having_read_an_answer_goes_on_round_by_round(setting):
    async def stage():
        first = await setting.model().ask(asked("first"), purpose="judge")
        second = await setting.model().ask(asked(f"then {first.value['why']}"), purpose="judge")
        return second.value

    for _ in range(2):
        with pytest.raises(PendingError, match="bubench models batch submit"):
            await stage()
        await setting.export()
        await setting.take(setting.write(*setting.answers(met)))
    assert await stage() == MET


async def test_pictures_are_kept_once_and_need_not_stay_where_they_were(setting, tmp_path):
    shot = picture("34")
    (tmp_path / "shot.png").write_bytes(shot.content())
    in_file = shot.model_copy(update={"path": tmp_path / "shot.png", "data": None})
    await setting.collect(asked("a").model_copy(update={"messages": (
        Message(role="user", parts=("a", in_file)),)}),
        request("b", shot))  # fmt: skip
    (tmp_path / "shot.png").unlink()
    assert len(list((setting.folder.path / "images").glob("??/*"))) == 1
    done = await setting.export()
    assert done.problems == []
    assert all("data:image/png;base64," in json.dumps(line) for line in setting.lines())


async def test_whole_requests_lie_where_nobody_else_can_open_them(setting):
    await setting.collect(asked("secret plan"))
    await setting.export()
    assert stat.S_IMODE(setting.folder.path.stat().st_mode) == 0o700
    files = [p for p in setting.folder.path.rglob("*") if p.is_file()]
    assert {stat.S_IMODE(p.stat().st_mode) for p in files} == {0o600}


async def test_restricted_requests_need_a_folder_and_their_answers_stay_in_it(tmp_path):
    plain = Setting(tmp_path / "plain", spec(may_see="restricted"))
    with pytest.raises(ConfigError, match="restricted calls"):
        raise (await plain.collect(asked("passport"), restricted=True))[0]
    cleared = Setting(tmp_path, spec(may_see="restricted"), restricted=True)
    await cleared.collect(asked("passport"), restricted=True)
    await cleared.export()
    await cleared.take(cleared.write(*cleared.answers(met)))
    assert list(cleared.calls.files()) == []
    assert len(list(cleared.private.files())) == 1
    (reply,) = await cleared.collect(asked("passport"), restricted=True)
    assert reply.value == MET
    not_cleared = Setting(tmp_path / "n", spec(), restricted=True)
    with pytest.raises(ConfigError, match="not cleared"):
        raise (await not_cleared.collect(asked("passport"), restricted=True))[0]


async def test_a_request_with_a_key_in_it_is_not_written_down(setting, monkeypatch):
    monkeypatch.setenv("OTHER_API_KEY", "k3y-0f-an0ther-service")
    (error,) = await setting.collect(asked("use k3y-0f-an0ther-service"))
    assert isinstance(error, ConfigError)
    assert "k3y" not in "".join(p.read_text() for p in setting.path.rglob("*") if p.is_file())


# --- files --------------------------------------------------------------------------------------


@settings(max_examples=10)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 4))
def test_parts_keep_both_limits_and_together_hold_each_request_once(n, n_lines, n_fit):
    async def play(path):
        here = Setting(path, spec())
        await here.collect(*(asked(f"item {number}") for number in range(n)))
        one = len(json.dumps((await sized(here)), separators=(",", ":"))) + 1
        limits = Limits(n_lines=n_lines, n_bytes=n_fit * one + 5)
        done = await here.export(limits=limits)
        sizes = [(p.n, here.folder.lines_path(p).stat().st_size, p.n_bytes) for p in done.parts]
        assert all(size == told for _, size, told in sizes)
        assert all(m <= n_lines and size <= limits.n_bytes for m, size, _ in sizes)
        fullest = min(n_lines, n_fit)
        assert [m for m, *_ in sizes] == [fullest] * (n // fullest) + [n % fullest] * (
            n % fullest > 0
        )
        assert len({line["custom_id"] for line in here.lines()}) == n
        again = await here.export(limits=limits)
        assert (again.parts, again.n_waiting, again.n_out) == ([], n, n)

    async def sized(here):
        queued = next(here.folder.waiting())
        codec = Codec(settled(here.spec, cache=here.path / "probes"))
        line = await codec.line(here.folder.request(queued))
        return line.as_json(queued.id, "openai")

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder)))


async def test_a_request_greater_than_a_file_is_named_and_the_others_go_out(setting):
    await setting.collect(asked("small"), asked("great " * 5000))
    done = await setting.export(limits=Limits(n_bytes=5000))
    assert "more than a file may have (5,000)" in done.problems[0]
    assert [p.n for p in done.parts] == [1]


async def test_again_withdraws_what_was_written_and_never_submitted(setting):
    await setting.collect(asked("a"), asked("b"))
    await setting.export()
    first = setting.answers(met)
    await setting.export(again=True)
    assert [p.status for p in setting.folder.parts()] == ["withdrawn", "exported"]
    # Answers to the file that was withdrawn are answers all the same.
    assert (await setting.take(setting.write(first[0]))).n_owed == 1
    done = await setting.export(again=True)
    assert [p.n for p in done.parts] == [1]


async def test_what_was_answered_meanwhile_does_not_go_out(setting):
    await setting.collect(asked("a"), asked("b"))
    await setting.export()
    await setting.take(setting.write(setting.answers(met)[0]))
    waiting = next(setting.folder.waiting())
    # The other one is answered live by another command.
    other = setting.calls.read(next(setting.calls.files()).stem)
    setting.calls.put(other.model_copy(update={"id": waiting.id, "via": "live"}))
    done = await setting.export(again=True)
    assert (done.parts, done.n_answered, done.n_waiting) == ([], 1, 0)


async def test_only_one_command_works_on_a_batch(setting):
    await setting.collect(asked("a"))
    another = pytest.raises(ConfigError, match="another command works on this batch")
    with setting.folder.alone(), another, setting.folder.alone():
        pass
    with setting.folder.alone():
        pass


# --- answers ------------------------------------------------------------------------------------


async def four(setting):
    await setting.collect(*(asked(f"item {n}") for n in range(4)))
    await setting.export()
    return setting.answers(met)


async def test_strangers_are_refused_by_name_and_cost_only_themselves(setting):
    answers = await four(setting)
    stranger = {**answers[0], "custom_id": "f" * 64}
    done = await setting.take(setting.write(answers[0], stranger, answers[1]))
    assert (done.n_lines, done.n_answered, done.n_owed) == (3, 2, 2)
    (problem,) = done.problems
    assert problem.startswith("answers.jsonl: line 2: custom_id 'fff")
    assert problem.endswith("was never asked in this batch: refused")


async def test_what_waits_and_never_went_out_is_answered_by_nobody(setting):
    answers = await four(setting)
    await setting.collect(asked("later"))
    late = next(q.id for q in setting.folder.waiting() if q.id not in
                {a["custom_id"] for a in answers})  # fmt: skip
    done = await setting.take(setting.write({**answers[0], "custom_id": late}))
    assert "never asked in this batch" in done.problems[0]
    assert done.n_owed == 5


async def test_two_answers_that_differ_are_none_and_equal_ones_are_one(setting):
    answers = await four(setting)
    other = json.loads(json.dumps(answers[0]))
    other["response"]["body"]["choices"][0]["message"]["content"] = json.dumps(
        {"status": "violated", "why": "no"}
    )
    done = await setting.take(setting.write(answers[0], answers[1], other, answers[1]))
    assert (done.n_answered, done.n_known, done.n_owed) == (1, 1, 3)
    assert [p.split(":")[1] for p in done.problems] == [" line 1", " line 3"]
    assert all("both refused" in p for p in done.problems)


async def test_answers_of_another_model_are_refused_unless_it_is_named(setting):
    answers = await four(setting)
    for number, served in enumerate(("gpt-4.1", "gpt-4.1-mini-2025-04-14", None)):
        if served is None:
            del answers[number]["response"]["body"]["model"]
        else:
            answers[number]["response"]["body"]["model"] = served
    path = setting.write(*answers)
    done = await setting.take(path)
    assert done.n_answered == 2
    assert "answered by 'gpt-4.1', not 'gpt-4.1-mini'" in done.problems[0]
    assert "does not say which model gave it" in done.problems[1]
    done = await setting.take(path, also_served=("gpt-4.1",))
    assert (done.n_answered, done.n_known, len(done.problems)) == (1, 2, 1)


@pytest.mark.parametrize(
    ("wanted", "served", "same"),
    [
        ("gpt-5", "gpt-5", True), ("gpt-5", "gpt-5-2026-01-01", True),
        ("claude-x", "claude-x-20260101", True), ("claude-x-latest", "claude-x-20260101", True),
        ("gpt-5", "gpt-5-mini", False), ("gpt-5", "gpt-5-mini-2026-01-01", False),
        ("gpt-5", "gpt-50", False), ("gpt-5-mini", "gpt-5", False), ("gpt-5", "", False),
    ],
)  # fmt: skip
def test_a_dated_version_is_the_model_and_another_size_is_not(wanted, served, same):
    assert same_model(wanted, served) == same


async def test_lines_that_are_no_answers_are_named_and_a_torn_one_costs_only_itself(setting):
    answers = await four(setting)
    key = answers[0]["custom_id"]
    whole = json.dumps(answers[3])
    path = setting.write(
        "nonsense\n", "\n", '{"custom_id": 3}\n', json.dumps({"custom_id": key}) + "\n",
        json.dumps({"custom_id": key, "response": {"status_code": "200"}}) + "\n",
        json.dumps(answers[2]) + "\n", whole[: len(whole) // 2],
    )  # fmt: skip
    done = await setting.take(path)
    assert done.n_answered == 1
    said = "\n".join(done.problems)
    for number in (1, 3, 7):
        assert f"line {number}: " in said
    assert "line 2:" not in said
    assert done.n_owed == 3


async def test_partial_answers_are_taken_and_the_rest_is_owed_and_taken_later(setting):
    answers = await four(setting)
    first = await setting.take(setting.write(*answers[:1]))
    assert (first.n_answered, first.n_owed) == (1, 3)
    rest = await setting.take(setting.write(*answers))
    assert (rest.n_answered, rest.n_known, rest.n_owed) == (3, 1, 0)
    # Nothing is paid twice, and the sum of the file is that of all four.
    assert setting.spending.ever[What("", "judge", "judge")].n_calls == 4
    total = setting.spending.ever[What("", "judge", "judge")].cost_usd
    assert rest.cost_usd == pytest.approx(total)


@settings(max_examples=4)
@given(st.data())
def test_any_order_in_any_files_gives_the_same_ledger(data):
    def said(body):
        text = body["messages"][-1]["content"]
        number = int((text if isinstance(text, str) else text[0]["text"]).split()[1])
        return [
            Say(json.dumps(MET)), Say("no"), Say("{", finish="length"), "expired", Fail(429),
        ][number % 5]  # fmt: skip

    async def play(path, order, cuts):
        here = Setting(path, spec())
        await here.collect(*(asked(f"item {n}") for n in range(10)))
        await here.export()
        answers = here.answers(said)
        lines = [answers[n] for n in order]
        edges = [0, *sorted(cuts), len(lines)]
        files = [
            here.write(*lines[a:b], name=f"{n}.jsonl")
            for n, (a, b) in enumerate(zip(edges, edges[1:], strict=False))
        ]
        for file in files:
            await here.take(file)
        done = await here.take(*files)
        assert (done.n_answered, done.n_refused, done.n_owed) == (0, 0, 4)
        found = {c.id: (c.status, c.raw) for c in here.calls.calls()}
        found |= {c.id: (c.status, c.raw) for c in here.calls.calls(failed=True)}
        n_calls = here.spending.ever[What("", "judge", "judge")].n_calls
        return found, n_calls

    order = data.draw(st.permutations(range(10)))
    cuts = data.draw(st.lists(st.integers(0, 10), max_size=2))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        assert asyncio.run(play(Path(one), order, cuts)) == asyncio.run(
            play(Path(two), range(10), [])
        )


async def test_what_was_not_asked_or_met_an_outage_is_owed_as_before(setting):
    await setting.collect(*(asked(f"item {n}") for n in range(4)))
    await setting.export()
    says = iter(["expired", "canceled", Fail(429), Fail(503)])
    done = await setting.take(setting.write(*setting.answers(lambda body: next(says))))
    assert (done.n_gone, done.n_owed, done.problems) == (4, 4, [])
    assert all(isinstance(e, PendingError) for e in await setting.collect(asked("item 0")))


FAILING = {
    "truncated": (Say("{", finish="length"), TruncatedError),
    "refusal": (Say("no", finish="refusal"), RefusalError),
    "malformed": (Say('{"status": 1}'), MalformedError),
    "too_long": (Fail(400, "maximum context length exceeded"), TooLongError),
    "outage": (Fail(400, "no such field"), OutageError),
}


@pytest.mark.parametrize("status", FAILING)
async def test_what_gave_nothing_to_use_is_the_error_of_the_next_ask_once(setting, status):
    said, kind = FAILING[status]
    await setting.collect(asked("item"))
    await setting.export()
    path = setting.write(*setting.answers(lambda body: said))
    assert (await setting.take(path)).n_refused == 1
    assert (await setting.take(path)).n_known == 1
    (error,) = await setting.collect(asked("item"))
    assert isinstance(error, kind)
    kept = setting.calls.read(error.call)
    assert (kept.status, kept.via) == (status, "batch")
    assert kept.raw == error.raw
    assert [type(e) for e in await setting.collect(asked("item"))] == [PendingError]
    # It waits again, and a good answer is taken.
    await setting.export(again=True)
    assert (await setting.take(setting.write(*setting.answers(met)[-1:]))).n_answered == 1
    assert (await setting.collect(asked("item")))[0].value == MET


async def test_an_answer_that_is_of_use_takes_the_place_of_one_that_was_not(setting):
    await setting.collect(asked("item"))
    await setting.export()
    await setting.take(setting.write(*setting.answers(lambda body: Say("no"))))
    assert (await setting.take(setting.write(*setting.answers(met)))).n_answered == 1
    assert (await setting.collect(asked("item")))[0].value == MET


async def test_a_cost_by_nobody_s_price_is_unknown_and_a_limit_counts_the_most(setting):
    await four(setting)
    done = await setting.take(setting.write(*setting.answers(met)), price_factor=None)
    assert done.cost_usd is None
    totals = setting.spending.ever[What("", "judge", "judge")]
    assert (totals.cost_usd, totals.n_unpriced, totals.n_unbounded) == (None, 4, 0)
    assert totals.charged_usd >= 4 * 50
    assert (await setting.collect(asked("item 0")))[0].usage.cost_usd is None


# --- a provider's batch API ---------------------------------------------------------------------

FORMS = ["openai", "anthropic"]


@pytest.mark.parametrize("form", FORMS)
async def test_submitted_looked_at_fetched_and_in_the_ledger(form, tmp_path):
    with BatchProvider(met) as provider:
        here = at_provider(tmp_path, provider, form)
        asks = [asked(f"item {n}") for n in range(5)]
        await here.collect(*asks)
        await here.export(limits=Limits(n_lines=2))
        work = here.batching(provider)
        done = await work.submit()
        assert [p.status for p in done.parts] == ["submitted"] * 3
        assert (await work.submit()).parts == []
        sent = [line for job in provider.jobs.values() for line in job["lines"]]
        assert sent == here.lines()
        if form == "openai":
            for job, part in zip(provider.jobs.values(), here.folder.parts(), strict=True):
                assert provider.files[part.input_file] == here.folder.lines_path(part).read_bytes()
                assert job["metadata"]["bubench_part"].split("-")[1] == part.name
        assert (await work.fetch()).n_answered == 0
        assert {p.job.state for p in await work.look()} == {"running"}
        held = here.spending.under_way()
        assert held[0] == 3
        assert held[1] >= 5 * 50 * 0.5
        provider.end("batch_0" if form == "openai" else "msgbatch_0")
        first = await work.fetch()
        assert (first.n_answered, first.n_owed) == (2, 3)
        provider.end_all()
        rest = await work.fetch()
        assert (rest.n_answered, rest.n_owed, rest.problems) == (3, 0, [])
        replies = await here.collect(*asks)
        assert all(r.value == MET for r in replies)
        cost = sum(r.usage.cost_usd for r in replies)
        assert here.spending.ever[What("", "judge", "judge")].cost_usd == pytest.approx(cost)
        assert here.spending.under_way() == (0, 0)
        assert sum(p.cost_usd for p in here.folder.parts()) == pytest.approx(cost)
        assert (await work.fetch()).n_lines == 0
        for file in tmp_path.rglob("*"):
            assert not file.is_file() or KEY.encode() not in file.read_bytes()


@pytest.mark.parametrize("form", FORMS)
async def test_what_a_provider_leaves_open_goes_out_again(form, tmp_path):
    says = {}

    def answer(body):
        text = json.dumps(body)
        number = next(n for n in range(5) if f"item {n}" in text)
        return says.get(number, met(body))

    with BatchProvider(answer) as provider:
        here = at_provider(tmp_path, provider, form)
        asks = [asked(f"item {n}") for n in range(5)]
        await here.collect(*asks)
        await here.export()
        work = here.batching(provider)
        await work.submit()
        says.update({0: "expired", 1: None, 2: Say("{", finish="length"), 3: "canceled"})
        provider.end_all()
        done = await work.fetch()
        assert (done.n_answered, done.n_refused, done.n_gone, done.n_owed) == (1, 1, 2, 3)
        says.clear()
        later = await here.collect(*asks)
        assert [type(e).__name__ for e in later] == [
            "PendingError", "PendingError", "TruncatedError", "PendingError", "Reply",
        ]  # fmt: skip
        assert (await here.export()).parts[0].n == 3
        await work.submit()
        provider.end_all()
        assert (await work.fetch()).n_answered == 3


@pytest.mark.parametrize("form", FORMS)
async def test_a_cancelled_job_gives_what_it_answered(form, tmp_path):
    with BatchProvider(lambda body: met(body) if "item 0" in json.dumps(body) else "canceled") as p:
        here = at_provider(tmp_path, p, form)
        await here.collect(asked("item 0"), asked("item 1"))
        await here.export()
        work = here.batching(p)
        await work.submit()
        (part,) = await work.cancel()
        assert part.job.word in ("cancelling", "canceling")
        p.end_all()
        done = await work.fetch()
        assert (done.n_answered, done.n_gone, done.n_owed) == (1, 1, 1)
        assert await work.cancel() == []


async def test_a_job_that_fails_as_a_whole_says_why_and_its_requests_are_owed(tmp_path):
    with BatchProvider(met) as provider:
        here = at_provider(tmp_path, provider, "openai")
        await here.collect(asked("item 0"))
        await here.export()
        work = here.batching(provider)
        await work.submit()
        provider.fail("batch_0", "enqueued token limit reached")
        done = await work.fetch()
        assert (done.n_answered, done.n_owed) == (0, 1)
        (part,) = here.folder.parts()
        assert (part.status, part.note) == ("failed", "line 1: enqueued token limit reached")
        assert here.spending.under_way() == (0, 0)
        assert (await here.export()).parts[0].n == 1


@pytest.mark.parametrize("form", FORMS)
async def test_reading_is_tried_again_and_making_a_job_is_not(form, tmp_path):
    path = "/v1/batches" if form == "openai" else "/v1/messages/batches"
    with BatchProvider(met) as provider:
        here = at_provider(tmp_path, provider, form)
        await here.collect(asked("item 0"))
        await here.export()
        waits = []

        async def sleep(seconds):
            waits.append(seconds)

        work = here.batching(provider)
        work.service = service_of(here.spec, sleep=sleep)
        provider.fail_next = [("POST", path, 429, {"retry-after": "7"})]
        done = await work.submit()
        assert "made to fail" in done.refused[0]
        assert [p.status for p in here.folder.parts()] == ["exported"]
        assert here.spending.under_way() == (0, 0)
        await work.submit()
        (id,) = provider.jobs
        where = f"{path}/{id}"
        provider.fail_next = [("GET", where, 503, {}), ("GET", where, 429, {"retry-after": "9"})]
        await work.look()
        assert waits == [1.0, 9.0]
        provider.fail_next = [("GET", where, 404, {})]
        with pytest.raises(OutageError, match="404: made to fail"):
            await work.look()
        assert len(provider.jobs) == 1


@pytest.mark.parametrize(
    ("form", "marks"), [("openai", True), ("openai", False), ("anthropic", False)]
)
async def test_a_job_whose_id_got_lost_is_found_and_not_made_twice(form, marks, tmp_path):
    path = "/v1/batches" if form == "openai" else "/v1/messages/batches"
    with BatchProvider(met, keeps_marks=marks) as provider:
        other = at_provider(tmp_path / "other", provider, form)
        await other.collect(*(asked(f"x {n}") for n in range(3)))
        await other.export(limits=Limits(n_lines=1))
        await other.batching(provider).submit()
        here = at_provider(tmp_path, provider, form)
        await here.collect(asked("item 0"), asked("item 1"))
        await here.export()
        provider.lose_reply_of = {("POST", path)}
        with pytest.raises(OutageError):
            await here.batching(provider).submit()
        assert [p.status for p in here.folder.parts()] == ["creating"]
        n_jobs = len(provider.jobs)
        done = await here.batching(provider).submit()
        assert done.adopted == ["0001"]
        assert len(provider.jobs) == n_jobs
        provider.end_all()
        assert (await here.batching(provider).fetch()).n_answered == 2


@pytest.mark.parametrize("form", FORMS)
async def test_a_job_that_was_never_made_is_made(form, tmp_path):
    with BatchProvider(met) as provider:
        here = at_provider(tmp_path, provider, form)
        await here.collect(asked("item 0"))
        await here.export()
        path = "/v1/batches" if form == "openai" else "/v1/messages/batches"
        provider.fail_next = [("POST", path, 500, {})]
        with pytest.raises(OutageError):
            await here.batching(provider).submit()
        assert [p.status for p in here.folder.parts()] == ["creating"]
        done = await here.batching(provider).submit()
        assert (done.adopted, len(done.parts), len(provider.jobs)) == ([], 1, 1)
        assert here.spending.under_way()[0] == 1


async def test_where_several_jobs_may_be_it_a_person_is_asked(tmp_path):
    with BatchProvider(met) as provider:
        other = at_provider(tmp_path / "other", provider, "anthropic")
        await other.collect(asked("x"))
        await other.export()
        await other.batching(provider).submit()
        here = at_provider(tmp_path, provider, "anthropic")
        await here.collect(asked("item 0"))
        await here.export()
        provider.lose_reply_of = {("POST", "/v1/messages/batches")}
        with pytest.raises(OutageError):
            await here.batching(provider).submit()
        work = here.batching(provider)
        with pytest.raises(ConfigError, match=r"msgbatch_1.*msgbatch_0.*--job 0001=ID.*--anew"):
            await work.submit()
        assert len(provider.jobs) == 2
        done = await work.submit(jobs={"0001": "msgbatch_1"})
        assert done.adopted == ["0001"]
        with pytest.raises(ConfigError, match="no part 0001 whose submission is in doubt"):
            work.anew("0001")


async def test_a_job_that_is_another_s_is_found_out_by_its_answers(tmp_path):
    with BatchProvider(met) as provider:
        other = at_provider(tmp_path / "other", provider, "anthropic")
        await other.collect(asked("x"))
        await other.export()
        await other.batching(provider).submit()
        here = at_provider(tmp_path, provider, "anthropic")
        await here.collect(asked("item 0"))
        await here.export()
        provider.fail_next = [("POST", "/v1/messages/batches", 500, {})]
        with pytest.raises(OutageError):
            await here.batching(provider).submit()
        assert (await here.batching(provider).submit()).adopted == ["0001"]
        provider.end_all()
        done = await here.batching(provider).fetch()
        assert (done.n_answered, done.n_owed) == (0, 1)
        assert "was never asked in this batch" in done.problems[0]
        assert [p.n for p in (await here.export()).parts] == [1]


async def test_a_wrong_key_is_said_without_it_and_nothing_is_submitted(tmp_path):
    with BatchProvider(met) as provider:
        here = at_provider(tmp_path, provider, "openai")
        await here.collect(asked("item 0"))
        await here.export()
        here.spec = replace(here.spec, key="another-wr0ng-key-123")
        done = await here.batching(provider).submit()
        assert "401: no such key: Bearer [redacted]" in done.refused[0]
        assert provider.jobs == {}


async def test_a_file_that_was_changed_is_not_submitted(tmp_path):
    with BatchProvider(met) as provider:
        here = at_provider(tmp_path, provider, "openai")
        await here.collect(asked("item 0"))
        await here.export()
        (part,) = here.folder.parts()
        path = here.folder.lines_path(part)
        path.write_text(path.read_text().replace("item 0", "item 1"))
        with pytest.raises(DataError, match="was changed since it was written"):
            await here.batching(provider).submit()
        path.unlink()
        with pytest.raises(DataError, match="is gone"):
            await here.batching(provider).submit()
        assert provider.jobs == {}


async def test_nothing_is_submitted_that_can_pass_the_limit(tmp_path):
    with BatchProvider(met) as provider:
        here = at_provider(tmp_path, provider, "openai")
        await here.collect(*(asked(f"item {n}") for n in range(4)), scope="run-1")
        await here.export(limits=Limits(n_lines=2))
        work = here.batching(provider)
        one, two = (p.most_usd * 0.5 for p in here.folder.parts())
        with pytest.raises(BudgetError, match="part 0002 can cost"):
            await work.submit(limit_usd=one + two - 1)
        assert [p.status for p in here.folder.parts()] == ["submitted", "exported"]
        # What is under way counts for whoever asks the same model live within the same scope.
        budget = Budget(one + 1, here.spending, scope="run-1")
        with pytest.raises(BudgetError):
            budget.hold(2.0, purpose="judge", model="judge", id="x")
        provider.end_all()
        await work.fetch()
        assert budget.spent.charged_usd < one / 2
        # What it really cost makes room.
        await work.submit(limit_usd=one + two - 1)
        assert [p.status for p in here.folder.parts()] == ["fetched", "submitted"]


async def test_a_limit_without_a_price_is_refused(tmp_path):
    with BatchProvider(met) as provider:
        here = Setting(
            tmp_path, spec("openai-compatible", base_url=provider.openai_url, price=None)
        )
        await here.collect(asked("item 0"))
        await here.export()
        with pytest.raises(ConfigError, match="--budget-usd 5 cannot be kept"):
            await here.batching(provider).submit(limit_usd=5)
        assert provider.jobs == {}
        await here.batching(provider).submit()


def test_a_batch_costs_half_where_the_provider_says_so_only():
    assert price_factor(spec("openai")) == price_factor(spec("anthropic")) == 0.5
    assert price_factor(spec("openai", base_url="http://h/v1")) == 1
    assert price_factor(spec("openai-compatible")) == 1


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (spec("google"), "no batch API of google is known"),
        (spec("openrouter"), "no batch API of openrouter is known"),
        (replace(spec(), key=None), "MY_KEY is not set; set it, or exchange the files"),
    ],
)
def test_a_provider_without_batches_or_key_is_said_with_the_other_way(of, said):
    with pytest.raises(ConfigError, match=said):
        service_of(of)


def test_a_folder_without_a_batch_says_how_one_comes_to_be(tmp_path):
    with pytest.raises(ConfigError, match="collect one first, with --batch"):
        find_batches(tmp_path)


# --- deaths -------------------------------------------------------------------------------------


def exchange(path, form, url):
    """Collect, submit and fetch; say what is owed. Runs in a process of its own."""

    async def main():
        here = Setting(Path(path), spec(form, base_url=url))
        await here.collect(*(asked(f"item {n}") for n in range(12)))
        with here.folder.alone():
            await here.export(limits=Limits(n_lines=4))
            work = here.batching(None)
            await work.submit()
            done = await work.fetch()
        print("owed", done.n_owed, flush=True)

    asyncio.run(main())


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_killed_at_any_moment_no_job_is_made_twice_and_no_answer_is_lost(form, tmp_path):
    chance = random.Random(form)
    work = "tests.models.test_batch:exchange"
    with BatchProvider(met) as provider, ExitStack() as stack:
        url = provider.anthropic_url if form == "anthropic" else provider.openai_url
        place, output = tmp_path / "here", tmp_path / "output"
        process = stack.enter_context(Zygote(work, place, form, url, output=output))
        n_kills, text = 0, ""
        for _ in range(80):
            process.fork()
            if n_kills < 25:
                time.sleep(chance.uniform(0, 0.6))
                process.kill()
            code, text = process.wait()
            n_kills += code == -signal.SIGKILL
            if chance.random() < 0.4:
                provider.end_all()
            if text == "owed 0\n":
                break
    assert text == "owed 0\n"
    assert n_kills > 3
    sent = [line["custom_id"] for job in provider.jobs.values() for line in job["lines"]]
    assert len(sent) == len(set(sent)) == 12
    here = Setting(place, spec(form, base_url=url))
    assert len(list(here.calls.calls())) == 12
    totals = here.spending.ever[What("", "judge", "judge")]
    assert totals.n_calls >= 12
    assert totals.known_usd == pytest.approx(
        sum(call.usage.cost_usd for call in here.calls.calls()), rel=0.5
    )
    assert here.spending.under_way()[0] == 0
