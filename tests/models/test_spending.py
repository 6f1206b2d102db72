"""A budget is never passed, by any number of callers and processes, whatever dies when."""

import asyncio
import json
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browseruse_bench.errors import BudgetError, ConfigError, DataError
from browseruse_bench.models.base import (
    Image,
    Message,
    ModelId,
    OutageError,
    Params,
    Reply,
    Request,
    TruncatedError,
)
from browseruse_bench.models.limits import Limiter
from browseruse_bench.models.spending import (
    IMAGE_TOKENS,
    Budget,
    BudgetModel,
    HoldingLimiter,
    most_tokens,
    most_usd,
)
from browseruse_bench.models.spending_log import FILE, Spending, What
from browseruse_bench.records.trace import Usage
from tests.models.pretended_time import PretendedTime

JUDGE = What("", "judge", "m")


def use(usd, **tokens):
    return Usage(model="m", cost_usd=usd, price_source="test", **tokens)


def asked(text="hello", max_tokens=1000, **more):
    return Request(
        messages=(Message(role="user", parts=(text,)),),
        params=Params(max_tokens=max_tokens),
        **more,
    )


class Priced:
    """A model whose calls take the time and cost that its test says; cost None: unknown."""

    id = ModelId(label="m", provider="scripted", name="m")
    may_see = "clean"

    def __init__(self, answer):
        self.answer = answer
        self.n_asked = 0

    async def ask(self, request, *, purpose, restricted=False):
        self.n_asked += 1
        given_back = self.answer(request)
        if asyncio.iscoroutine(given_back):
            given_back = await given_back
        if isinstance(given_back, BaseException):
            raise given_back
        return Reply(raw="yes", usage=use(given_back))


def flat(usd):
    return lambda prompt, reply: usd


# --- what is spent ------------------------------------------------------------------------------


def test_totals_keep_tokens_by_kind_apart_and_failures_apart_with_their_cost(tmp_path):
    spending = Spending(tmp_path / FILE)
    tokens = {"uncached_tokens": 1, "cached_tokens": 2, "reasoning_tokens": 3, "output_tokens": 4}
    for outcome, usd in (("answered", 0.5), ("failed", 0.25), ("released", None)):
        id = spending.begin(JUDGE, 1.0)
        spending.end(id, outcome, None if usd is None else use(usd, **tokens))
    spending.record(What("", "writer", "m"), use(2.0))
    judge = Spending(tmp_path / FILE).ever[JUDGE]
    assert (judge.n_calls, judge.n_failed, judge.cost_usd) == (2, 1, 0.75)
    assert (judge.uncached_tokens, judge.cached_tokens) == (2, 4)
    assert (judge.reasoning_tokens, judge.output_tokens) == (6, 8)
    assert set(spending.ever) == {JUDGE, What("", "writer", "m")}


def test_an_unknown_cost_is_null_never_0_and_a_limit_counts_what_was_held(tmp_path):
    spending = Spending(tmp_path / FILE)
    spending.record(JUDGE, use(0.5))
    spending.end(spending.begin(JUDGE, 0.25), "answered", use(None))
    totals = spending.ever[JUDGE]
    assert (totals.cost_usd, totals.known_usd, totals.n_unpriced) == (None, 0.5, 1)
    assert totals.as_json()["cost_usd"] is None
    assert Budget(0.74, spending).reached
    assert not Budget(0.76, spending).reached


def test_spent_now_is_apart_from_what_it_cost_and_from_what_the_ledger_answered(tmp_path):
    Spending(tmp_path / FILE).record(JUDGE, use(1.0))
    spending = Spending(tmp_path / FILE)
    spending.record(JUDGE, use(0.25))
    spending.reuse(JUDGE, use(1.0))
    assert spending.ever[JUDGE].cost_usd == 1.25
    assert spending.now[JUDGE].cost_usd == 0.25
    assert spending.reused[JUDGE].cost_usd == 1.0


LINES = st.lists(
    st.tuples(
        st.sampled_from(["answered", "failed", "released", "lost", None]),
        st.none() | st.floats(0, 5),
        st.none() | st.floats(0, 5),
    ),
    max_size=8,
)


@settings(max_examples=40)
@given(LINES, st.data())
def test_a_file_cut_at_any_byte_is_the_sum_of_its_whole_lines_and_goes_on(calls, data):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        spending = Spending(path)
        for number, (outcome, held, usd) in enumerate(calls):
            id = spending.begin(JUDGE, held, id=f"part-{number}")
            if outcome is not None:
                spending.end(id, outcome, use(usd))
        spending.close()
        whole = path.read_bytes()
        path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
        n_lines = path.read_bytes().count(b"\n")
        again = Spending(path)
        again.record(JUDGE, use(1.0))
        assert path.read_bytes().startswith(b"".join(whole.splitlines(keepends=True)[:n_lines]))
        assert len(path.read_text().splitlines()) == n_lines + 1
        assert Spending(path).ever[JUDGE] == again.ever[JUDGE]


def test_a_damaged_line_is_named_and_never_counted_as_nothing(tmp_path):
    spending = Spending(tmp_path / FILE)
    for _ in range(3):
        spending.record(JUDGE, use(1.0))
    lines = (tmp_path / FILE).read_text().splitlines(keepends=True)
    (tmp_path / FILE).write_text(lines[0] + "{nonsense\n" + lines[2])
    with pytest.raises(DataError, match="line 2 is damaged"):
        Spending(tmp_path / FILE)


def test_a_key_is_not_written(tmp_path, monkeypatch):
    monkeypatch.setenv("PROVIDER_API_KEY", "k3y-0f-the-pr0vider-2024")
    spending = Spending(tmp_path / FILE)
    spending.record(What("", "k3y-0f-the-pr0vider-2024", "m"), use(1.0))
    assert "k3y-0f" not in (tmp_path / FILE).read_text()


# --- a limit ------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.floats(0.01, 1),  # the most that it can cost
            st.floats(0, 1),  # which share of that it costs
            st.floats(0, 3),  # how long it takes
            st.sampled_from(["answer", "fail", "free failure", "cancel", "unknown"]),
        ),
        min_size=1,
        max_size=12,
    ),
    st.floats(0.05, 4),
    st.booleans(),
)
def test_calls_at_the_same_time_never_pass_the_limit_together(calls, limit, two_objects):
    time = PretendedTime()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / FILE
        budgets = [Budget(limit, Spending(path), sleep=time.sleep) for _ in range(1 + two_objects)]
        paid = 0.0
        refused = []

        async def one(number, most, share, takes, end):
            async def answer():
                nonlocal paid
                await time.sleep(takes)
                if end in ("answer", "unknown"):
                    paid += most * share
                    return most * share if end == "answer" else None
                if end == "fail":
                    paid += most * share
                    return TruncatedError("cut", usage=use(most * share))
                if end == "cancel":
                    paid += most * share
                    return asyncio.CancelledError()
                return OutageError("503")

            budget = budgets[number % len(budgets)]
            model = BudgetModel(Priced(lambda _: answer()), budget, cost=flat(most))
            try:
                await model.ask(asked(), purpose="judge")
            except BudgetError:
                refused.append((most, budget.spent.charged_usd))
            except (TruncatedError, OutageError, asyncio.CancelledError):
                pass

        asyncio.run(time.run(*(one(n, *call) for n, call in enumerate(calls))))
        spent = Spending(path).ever.get(JUDGE)
        assert paid <= limit + 1e-9
        assert spent is None or paid - 1e-9 <= spent.charged_usd <= limit + 1e-9
        # Nobody was refused for what was only under way.
        for most, charged in refused:
            assert most + charged > limit - 1e-9
        assert budgets[0].spending.under_way() == (0, 0)


def test_who_does_not_fit_beside_what_is_under_way_waits_and_who_never_fits_is_refused():
    time = PretendedTime()
    budget = Budget(1.0, sleep=time.sleep)

    async def takes_ten_seconds():
        await time.sleep(10)
        return 0.1

    async def ask(most):
        model = BudgetModel(Priced(lambda _: takes_ten_seconds()), budget, cost=flat(most))
        await model.ask(asked(), purpose="judge")
        return time.now

    first, second = asyncio.run(time.run(ask(0.6), ask(0.6)))
    assert first == 10
    assert 20 <= second < 21
    with pytest.raises(BudgetError, match=r"would be passed: 0\.2000 USD spent.*cost 0\.8100"):
        asyncio.run(time.run(ask(0.81)))


async def test_a_call_that_costs_more_than_was_held_counts_in_full_and_nothing_further_begins():
    budget = Budget(1.0)
    model = BudgetModel(Priced(lambda _: 1.5), budget, cost=flat(0.9))
    reply = await model.ask(asked(), purpose="judge")
    assert reply.usage.cost_usd == 1.5
    assert budget.spent.charged_usd == 1.5
    inner = Priced(lambda _: 0.0)
    with pytest.raises(BudgetError, match=r"--budget-usd 1 is reached: 1\.5000 USD spent"):
        await BudgetModel(inner, budget, cost=flat(0.0001)).ask(asked(), purpose="judge")
    assert inner.n_asked == 0


async def test_an_unknown_price_is_refused_with_a_limit_before_anything_is_asked():
    inner = Priced(lambda _: None)
    model = BudgetModel(inner, Budget(1.0, name="--judge-budget-usd"), cost=flat(None))
    with pytest.raises(ConfigError, match="no price is known for m; give it in bubench.toml"):
        await model.ask(asked(), purpose="judge")
    assert inner.n_asked == 0
    free = BudgetModel(inner, Budget(None), cost=flat(None))
    assert (await free.ask(asked(), purpose="judge")).usage.cost_usd is None


async def test_a_reply_without_a_longest_is_refused_with_a_limit_unless_it_is_free():
    inner = Priced(lambda _: 0.0)
    with pytest.raises(ConfigError, match="sets no max_tokens"):
        await BudgetModel(inner, Budget(1.0), cost=flat(0.1)).ask(
            asked(max_tokens=None), purpose="judge"
        )
    assert inner.n_asked == 0
    free = BudgetModel(inner, Budget(1.0), cost=flat(0.0))
    assert (await free.ask(asked(max_tokens=None), purpose="judge")).raw == "yes"


def test_a_limit_counts_what_earlier_commands_spent_in_its_scope_only(tmp_path):
    first = Spending(tmp_path / FILE)
    first.record(What("run-a", "judge", "m"), use(0.7))
    first.record(What("run-b", "judge", "m"), use(9.0))
    later = Spending(tmp_path / FILE)
    assert not Budget(1.0, later, scope="run-a").reached
    assert Budget(0.7, later, scope="run-a").reached
    assert Budget(9.0, later).reached
    assert not Budget(1.0, later, scope="run-c").reached


def test_an_earlier_call_of_unknown_cost_makes_a_limit_impossible_to_keep(tmp_path):
    Spending(tmp_path / FILE).record(JUDGE, use(None))
    assert "what 1 earlier calls cost is not known" in (
        Budget(9.0, Spending(tmp_path / FILE)).reached or ""
    )


def test_what_is_held_beyond_a_process_counts_until_it_is_ended(tmp_path):
    budget = Budget(1.0, Spending(tmp_path / FILE))
    budget.hold(0.8, purpose="judge", model="m", id="batch-part-1")
    budget.spending.close()
    later = Budget(1.0, Spending(tmp_path / FILE))
    with pytest.raises(BudgetError, match="would be passed"):
        later.hold(0.3, purpose="judge", model="m", id="batch-part-2")
    # A call does not wait for a batch, which may take a day.
    with pytest.raises(BudgetError, match=r"0\.8000 held for batches under way, the next can cost"):
        asyncio.run(later.begin(0.3, purpose="judge", model="m"))
    asyncio.run(later.begin(0.1, purpose="judge", model="m"))
    later.spending.end(later.spending.begin(JUDGE, None, id="batch-unknown"), "released")
    unknown = later.spending.begin(JUDGE, None, id="batch-unknown")
    with pytest.raises(ConfigError, match="what a batch that is under way can cost is not known"):
        asyncio.run(later.begin(0.01, purpose="judge", model="m"))
    later.spending.end(unknown, "released")
    later.spending.end("batch-part-1", "answered", use(0.2))
    later.hold(0.3, purpose="judge", model="m", id="batch-part-2")
    assert later.spending.under_way() == (2, 0.4)


def test_one_budget_is_kept_for_one_folder(tmp_path):
    budget = Budget(1.0)
    one, two = Spending(tmp_path / "a" / FILE), Spending(tmp_path / "b" / FILE)
    budget.bind(one)
    budget.bind(one)
    with pytest.raises(ConfigError, match="one budget is kept for the calls of one folder"):
        budget.bind(two)


# --- several processes, and their deaths --------------------------------------------------------

SPENDER = """
import asyncio, sys, random
from browseruse_bench.errors import BudgetError
from browseruse_bench.models.spending import Budget
from browseruse_bench.models.spending_log import Spending
from browseruse_bench.records.trace import Usage
from pathlib import Path

async def main(path, seed, limit, hangs_at):
    n = 0
    chance = random.Random(seed)
    budget = Budget(limit, Spending(Path(path)))
    print("ready", flush=True)
    while True:
        most = chance.uniform(0.01, 0.2)
        try:
            id = await budget.begin(most, purpose="judge", model="m")
        except BudgetError:
            return
        n += 1
        print(f"begun {most}", flush=True)
        if n == hangs_at:
            await asyncio.sleep(600)
        await asyncio.sleep(chance.uniform(0, 0.004))
        cost = most * chance.random()
        budget.spending.end(id, "answered", Usage(model="m", cost_usd=cost))
        print(f"ended {most} {cost}", flush=True)

asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])))
"""


def spender(path, seed, limit, hangs_at=0):
    return subprocess.Popen(
        [sys.executable, "-c", SPENDER, str(path), str(seed), str(limit), str(hangs_at)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_processes_together_keep_one_limit_although_some_are_killed(tmp_path):
    path = tmp_path / FILE
    limit = 4.0
    processes = [spender(path, 0, limit, hangs_at=3)]
    for _ in range(6):  # ready, begun, ended, begun, ended, begun
        processes[0].stdout.readline()
    processes += [spender(path, seed, limit) for seed in (1, 2)]
    for process in processes[1:]:
        assert process.stdout.readline() == "ready\n"
    processes[0].kill()
    told = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [-signal.SIGKILL, 0, 0]
    lines = [line.split() for text in told for line in text.splitlines()]
    paid = sum(float(line[2]) for line in lines if line[0] == "ended")
    spending = Spending(path)
    totals = spending.ever[JUDGE]
    assert paid <= totals.charged_usd + 1e-9 <= limit + 2e-9
    # All was put to use but what the next call might not have fitted in: 0.2 is the greatest.
    assert totals.charged_usd > limit - 0.2
    assert totals.n_lost == 1
    assert spending.under_way() == (0, 0)
    assert not [p for p in (tmp_path / ".locks").iterdir() if "spending" in p.name]


def test_what_a_killed_process_had_asked_for_counts_as_spent_in_full(tmp_path):
    path = tmp_path / FILE
    killed = subprocess.Popen(
        [sys.executable, "-c", f"""
import os, signal
from pathlib import Path
from browseruse_bench.models.spending_log import Spending, What
spending = Spending(Path({str(path)!r}))
spending.begin(What("", "judge", "m"), 0.75)
os.kill(os.getpid(), signal.SIGKILL)
"""],
    )  # fmt: skip
    assert killed.wait() == -signal.SIGKILL
    budget = Budget(1.0, Spending(path))
    spent = budget.spent
    assert (spent.n_lost, spent.cost_usd, spent.charged_usd) == (1, None, 0.75)
    with pytest.raises(BudgetError, match=r"up to 0\.7500 of it on 1 calls of unknown end"):
        asyncio.run(budget.begin(0.3, purpose="judge", model="m"))
    # It is said once: the next process finds it settled.
    assert Spending(path).ever[JUDGE].n_lost == 1


def test_a_living_process_is_not_taken_for_dead(tmp_path):
    one = Spending(tmp_path / FILE)
    id = one.begin(JUDGE, 0.5)
    two = Spending(tmp_path / FILE)
    assert two.under_way() == (1, 0.5)
    one.end(id, "answered", use(0.1))
    assert two.under_way() == (0, 0)
    assert two.ever[JUDGE].cost_usd == 0.1


def test_threads_share_one_object(tmp_path):
    budget = Budget(None, Spending(tmp_path / FILE))

    async def several():
        for _ in range(25):
            id = await budget.begin(0.1, purpose="judge", model="m")
            budget.spending.end(id, "answered", use(0.01))

    threads = [threading.Thread(target=asyncio.run, args=(several(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Spending(tmp_path / FILE).ever[JUDGE].n_calls == 100
    ids = [json.loads(line)["id"] for line in (tmp_path / FILE).read_text().splitlines()]
    assert len(ids) == 200
    assert len(set(ids)) == 100


def test_a_line_that_does_not_fit_on_the_disk_leaves_nothing_of_itself(tmp_path):
    code = f"""
import resource
from pathlib import Path
from browseruse_bench.models.spending_log import Spending, What
from browseruse_bench.records.trace import Usage
import signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
spending = Spending(Path({str(tmp_path / FILE)!r}))
spending.record(What("", "judge", "m"), Usage(model="m", cost_usd=1))
size = Path({str(tmp_path / FILE)!r}).stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, resource.RLIM_INFINITY))
try:
    spending.record(What("", "judge", "m"), Usage(model="m", cost_usd=1))
except OSError:
    print(Path({str(tmp_path / FILE)!r}).stat().st_size == size)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"


# --- what a call can cost -----------------------------------------------------------------------


@given(st.text(max_size=300), st.integers(0, 3))
def test_the_estimate_is_between_half_of_the_bytes_and_all_of_them(text, n_images):
    images = tuple(Image.of_bytes(b"x", "image/png") for _ in range(n_images))
    request = Request(messages=(Message(role="user", parts=(text, *images)),))
    n_bytes = len(text.encode(errors="replace"))
    marks = n_images * IMAGE_TOKENS + 32
    assert n_bytes / 2 - 1 <= most_tokens(request) - marks <= n_bytes


@pytest.mark.parametrize(
    ("text", "tokens"),
    # Of a vocabulary that takes digits in threes, and a hash or an address byte by byte.
    [("hello world", 2), ("0123456789", 4), ("/a1b2c3d4e5f6a7b8c9d0e1f2?q=1", 29), ("\u20ac", 3)],
)
def test_the_estimate_is_not_below_what_a_tokenizer_makes_of_it(text, tokens):
    assert most_tokens(asked(text)) - 32 >= tokens


def test_what_is_asked_again_has_what_came_before_in_its_prompt():
    def cost(prompt, reply):
        return prompt + 1000 * reply

    first = most_usd(asked("x", max_tokens=100), cost)
    third = most_usd(asked("x", max_tokens=100), cost, n_before=2)
    assert first == 33 + 100_000
    assert third == first + 2 * (100 + 512)


class AsksAgain:
    """A model that sends several requests for one reply, each through its limiter."""

    id = ModelId(label="m", provider="scripted", name="m")
    may_see = "clean"

    def __init__(self, n_requests, limiter, usd):
        self.n_requests = n_requests
        self.limiter = limiter
        self.usd = usd
        self.n_sent = 0

    async def ask(self, request, *, purpose, restricted=False):
        for _ in range(self.n_requests):
            async with self.limiter.slot(10) as slot:
                self.n_sent += 1
                slot.used(10)
        return Reply(raw="yes", usage=use(self.n_requests * self.usd), n_asked=self.n_requests)


def priced(inner, budget, usd):
    return BudgetModel(inner, budget, cost=flat(usd))


async def test_each_further_request_of_an_ask_is_held_before_it_is_sent():
    budget = Budget(1.0)
    inner = AsksAgain(3, HoldingLimiter(Limiter()), usd=0.3)
    await priced(inner, budget, 0.33).ask(asked(), purpose="judge")
    assert budget.spent.known_usd == pytest.approx(0.9)
    assert budget.spent.n_calls == 1
    assert budget.spending.under_way() == (0, 0)


async def test_a_further_request_that_does_not_fit_is_not_sent_and_what_was_paid_counts():
    budget = Budget(1.0)
    inner = AsksAgain(9, HoldingLimiter(Limiter()), usd=0.3)
    with pytest.raises(BudgetError, match="would be passed"):
        await priced(inner, budget, 0.33).ask(asked(), purpose="judge")
    assert inner.n_sent == 3
    spent = budget.spent
    assert spent.n_lost == 3
    assert 0.9 <= spent.charged_usd <= 1.0
    assert budget.spending.under_way() == (0, 0)


async def test_requests_after_an_outage_are_not_held_again():
    budget = Budget(1.0)
    limiter = HoldingLimiter(Limiter())

    class Retries(AsksAgain):
        async def ask(self, request, *, purpose, restricted=False):
            for _ in range(5):
                async with self.limiter.slot(10):
                    self.n_sent += 1
            raise OutageError("503, five times")

    inner = Retries(1, limiter, usd=0)
    with pytest.raises(OutageError):
        await priced(inner, budget, 0.9).ask(asked(), purpose="judge")
    assert (inner.n_sent, budget.spent.charged_usd) == (5, 0)
    # Outside of any ask it is the limiter of the key.
    async with limiter.slot(5) as slot:
        slot.used(5)
    limiter.pause(0.01)


def test_the_schema_counts_as_a_part_of_the_prompt():
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    more = most_tokens(asked(schema=schema)) - most_tokens(asked())
    assert more > 30


def test_what_nobody_holds_any_more_is_closed(tmp_path):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(5):
        spending = Spending(tmp_path / str(number) / FILE)
        spending.end(spending.begin(JUDGE, 1.0), "answered", use(0.5))
    del spending
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_the_budget_of_a_process_that_ends_in_order_leaves_no_lock(tmp_path):
    spending = Spending(tmp_path / FILE)
    spending.end(spending.begin(JUDGE, 1.0), "answered", use(0.5))
    spending.close()
    assert list((tmp_path / ".locks").iterdir()) == []
