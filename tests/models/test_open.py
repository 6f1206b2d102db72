"""What a judge or a stage names is a model behind its ledger, its budget and its limits."""

import json

import pytest

from browseruse_bench.errors import BudgetError, ConfigError
from browseruse_bench.models.base import MalformedError, Message, Params, PendingError, Request
from browseruse_bench.models.ledger import Ledger
from browseruse_bench.models.limits import limiter_for
from browseruse_bench.models.open import limiter_of, open_model
from browseruse_bench.models.replay import NotRecordedError
from browseruse_bench.models.spec import model_spec
from browseruse_bench.models.spending import Budget, cost_of, most_usd
from browseruse_bench.models.spending_log import FILE, What, spending_at
from tests.models.fake_endpoint import Fail, FakeEndpoint, Say
from tests.models.made import KEY, MET, SCHEMA

CONFIG = """
[models.judge]
id = "fake"
base_url = "{url}"
api_key_env = "MY_KEY"
schema = "native"
images = true
system = true
concurrency = 3
requests_per_minute = 600
params = {{max_tokens = 100}}
{more}
"""
PRICE = "usd_per_million = {input = 1000000, output = 1000000}"


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)

    def configured(fake, more=PRICE):
        (tmp_path / "bubench.toml").write_text(CONFIG.format(url=fake.openai_url, more=more))
        return tmp_path

    return configured


def asked(text="Is it met?", **more):
    return Request.model_validate(
        {"messages": (Message(role="user", parts=(text,)),), "schema": SCHEMA, **more}
    )


def usage(prompt, reply):
    return {"prompt_tokens": prompt, "completion_tokens": reply, "total_tokens": prompt + reply}


async def ask(model, request=None):
    return await model.ask(request or asked(), purpose="judge")


async def test_the_second_run_of_the_same_work_asks_nobody_and_nothing_holds_the_key(project):
    with FakeEndpoint(lambda _: MET) as fake:
        folder = project(fake)
        spending = spending_at(folder / "calls")
        first = await ask(open_model("judge", calls=folder / "calls", cwd=folder))
        second = await ask(open_model("judge", calls=folder / "calls", cwd=folder))
        assert (first.value, first.from_ledger) == (MET, False)
        assert (second.value, second.from_ledger, second.usage) == (MET, True, first.usage)
        assert len(fake.asked) == 1
        await ask(open_model("judge", calls=folder / "calls", cwd=folder), asked(sample=1))
        assert len(fake.asked) == 2
    judge = What("", "judge", "judge")
    assert spending.now[judge].n_calls == 2
    assert spending.now[judge].cost_usd == pytest.approx(2 * first.usage.cost_usd)
    assert spending.reused[judge].cost_usd == first.usage.cost_usd > 0
    for file in (folder / "calls").rglob("*"):
        assert not file.is_file() or KEY not in file.read_text()


async def test_without_a_folder_nothing_is_kept_and_equal_requests_are_paid_again(project):
    with FakeEndpoint(lambda _: MET) as fake:
        folder = project(fake)
        budget = Budget(None)
        model = open_model("judge", calls=None, budget=budget, cwd=folder)
        assert not (await ask(model)).from_ledger
        assert not (await ask(model)).from_ledger
        assert budget.spent.n_calls == 2
    assert [p.name for p in folder.iterdir()] == ["bubench.toml"]


async def test_several_models_share_a_budget_and_a_later_command_goes_on_from_it(project):
    with FakeEndpoint(lambda _: Say(json.dumps(MET), usage=usage(10, 10))) as fake:
        folder = project(fake)
        budget = Budget(1000, scope="run-1", name="--judge-budget-usd")
        models = [
            open_model("judge", calls=folder / "calls", budget=budget, cwd=folder) for _ in range(2)
        ]
        await ask(models[0])
        await ask(models[1], asked("another"))
        assert budget.spent.known_usd == 40
        tight = Budget(41, scope="run-1", name="--judge-budget-usd")
        later = open_model("judge", calls=folder / "calls", budget=tight, cwd=folder)
        assert (await ask(later)).from_ledger
        with pytest.raises(BudgetError, match=r"--judge-budget-usd 41 would be passed: 40\.0"):
            await ask(later, asked("a third"))
        assert len(fake.asked) == 2
        # Another run has a budget of its own.
        other = Budget(1000, scope="run-2")
        await ask(
            open_model("judge", calls=folder / "calls", budget=other, cwd=folder), asked("a third")
        )
        assert other.spent.known_usd == 20


async def test_a_budget_goes_on_from_the_calls_where_its_file_is_gone(project):
    answers = iter([Say(json.dumps(MET), usage=usage(10, 10)), *[Say("no", usage=usage(1, 9))] * 3])
    with FakeEndpoint(lambda _: next(answers)) as fake:
        folder = project(fake)
        model = open_model("judge", calls=folder / "calls", budget=Budget(None, scope="run-1"),
                           cwd=folder)  # fmt: skip
        await ask(model)
        with pytest.raises(MalformedError):
            await ask(model, asked(sample=1))
        del model
        before = (folder / "calls" / FILE).read_text()
        (folder / "calls" / FILE).unlink()
        budget = Budget(50, scope="run-1")
        open_model("judge", calls=folder / "calls", budget=budget, cwd=folder)
        assert (budget.spent.known_usd, budget.spent.n_calls, budget.spent.n_failed) == (50, 2, 1)
        assert budget.reached
        assert (folder / "calls" / FILE).read_text() != before
    assert [p.name for p in (folder / "calls").iterdir() if p.suffix == ".tmp"] == []


async def test_what_is_asked_again_is_held_before_it_is_sent(project):
    """A reply that fits no schema is asked again twice: each time within the budget."""
    with FakeEndpoint(lambda _: Say("no verdict", usage=usage(50, 100))) as fake:
        folder = project(fake)
        spent_by_one = 150
        price = cost_of(model_spec("judge", cwd=folder))
        first, second = (
            most_usd(asked(), price, max_tokens=100, n_before=number) for number in range(2)
        )
        for limit, n in ((int(first + second) - 1, 1), (int(first + second) + 1, 2)):
            fake.asked.clear()
            budget = Budget(limit, scope=str(limit))
            model = open_model("judge", calls=folder / "calls", budget=budget, cwd=folder)
            with pytest.raises(BudgetError):
                await ask(model, asked(sample=limit))
            assert len(fake.asked) == n
            assert n * spent_by_one <= budget.spent.charged_usd <= limit
            assert budget.spending.under_way() == (0, 0)


async def test_an_outage_that_is_tried_again_costs_once(project):
    script = [Fail(503, headers={"retry-after": "0"}), Say(json.dumps(MET), usage=usage(10, 10))]
    with FakeEndpoint(script) as fake:
        folder = project(fake)
        budget = Budget(1000)
        await ask(open_model("judge", calls=folder / "calls", budget=budget, cwd=folder))
        assert len(fake.asked) == 2
        assert (budget.spent.known_usd, budget.spent.n_calls) == (20, 1)


async def test_a_budget_without_a_price_or_a_longest_reply_is_refused_before_it_asks(project):
    with FakeEndpoint(lambda _: MET) as fake:
        folder = project(fake, more="")
        model = open_model("judge", calls=folder / "calls", budget=Budget(5), cwd=folder)
        with pytest.raises(ConfigError, match="no price is known for judge; give it in"):
            await ask(model)
        text = (folder / "bubench.toml").read_text()
        text = text.replace("params = {max_tokens = 100}", PRICE)
        (folder / "bubench.toml").write_text(text)
        model = open_model("judge", calls=folder / "calls", budget=Budget(5), cwd=folder)
        with pytest.raises(ConfigError, match="sets no max_tokens"):
            await ask(model)
        with pytest.raises(BudgetError, match="would be passed"):
            await ask(model, asked(params=Params(max_tokens=10)))
        assert fake.asked == []


def test_limits_of_bubench_toml_are_those_of_the_key(project):
    with FakeEndpoint() as fake:
        folder = project(fake)
        limiter = limiter_of(model_spec("judge", cwd=folder))
        assert (limiter.limits.concurrency, limiter.limits.requests_per_minute) == (3, 600)
        assert limiter is limiter_for(fake.openai_url, KEY)


async def test_a_double_is_opened_like_any_model_and_its_file_is_its_identity(tmp_path):
    (tmp_path / "d.json").write_text(json.dumps([{"when": "", "answer": MET}]))
    first = await ask(open_model("scripted:d.json", calls=tmp_path / "calls", cwd=tmp_path))
    assert (first.value, first.from_ledger) == (MET, False)
    budget = Budget(0.01)
    again = open_model("scripted:d.json", calls=tmp_path / "calls", budget=budget, cwd=tmp_path)
    assert (await ask(again)).from_ledger
    await ask(again, asked("free, so no budget is in the way"))
    (tmp_path / "d.json").write_text(json.dumps([{"when": "x", "answer": MET}]))
    other = open_model("scripted:d.json", calls=tmp_path / "calls", cwd=tmp_path)
    assert other.id.key != again.id.key


async def test_a_replay_needs_neither_key_nor_configuration(project, monkeypatch, tmp_path):
    with FakeEndpoint(lambda _: MET) as fake:
        folder = project(fake)
        live = open_model("judge", calls=folder / "calls", cwd=folder)
        await ask(live)
    monkeypatch.delenv("MY_KEY")
    (folder / "bubench.toml").unlink()
    replay = open_model("replay:judge", calls=folder / "calls", cwd=folder)
    assert replay.id == live.id
    assert (await ask(replay)).value == MET
    with pytest.raises(NotRecordedError):
        await ask(replay, asked("unheard"))
    with pytest.raises(ConfigError, match="a replay needs a folder of calls"):
        open_model("replay:judge", calls=None)


async def test_with_a_batch_nobody_is_asked_and_no_key_is_needed(project, monkeypatch):
    with FakeEndpoint(lambda _: MET) as fake:
        folder = project(fake)
        await ask(open_model("judge", calls=folder / "calls", cwd=folder))
        monkeypatch.delenv("MY_KEY")
        model = open_model(
            "judge", calls=folder / "calls", batch=folder / "batch", cwd=folder,
            budget=Budget(0.01, scope="run-1"),
        )  # fmt: skip
        assert (await ask(model)).from_ledger
        with pytest.raises(PendingError, match="waits in .*batch"):
            await ask(model, asked("another"))
        assert len(fake.asked) == 1
    assert list(Ledger(folder / "calls").calls(failed=True)) == []
    with pytest.raises(ConfigError, match="a batch needs a folder of calls"):
        open_model("judge", calls=None, batch=folder / "batch", cwd=folder)


async def test_restricted_requests_go_to_their_own_folder_if_the_model_is_cleared(project):
    with FakeEndpoint(lambda _: MET) as fake:
        folder = project(fake, more=f'{PRICE}\nmay_see = "restricted"')
        model = open_model(
            "judge", calls=folder / "clean", restricted_calls=folder / "private", cwd=folder
        )
        await model.ask(asked("passport"), purpose="labeller", restricted=True)
        assert list(Ledger(folder / "clean").files()) == []
        assert len(list(Ledger(folder / "private").files())) == 1
        project(fake)
        clean = open_model(
            "judge", calls=folder / "clean", restricted_calls=folder / "private", cwd=folder
        )
        with pytest.raises(ConfigError, match="not cleared for restricted text"):
            await clean.ask(asked("passport"), purpose="labeller", restricted=True)
        assert len(fake.asked) == 1


async def test_the_flag_that_named_a_wrong_model_is_in_the_message(tmp_path):
    with pytest.raises(ConfigError, match="--judge opnai:x: .*did you mean 'openai'"):
        open_model("opnai:x", calls=tmp_path, cwd=tmp_path, what="--judge")
