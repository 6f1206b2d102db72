"""The findings judge: whose word counts for what, and what is whose fault."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from browseruse_bench.errors import BudgetError, ConfigError, GraderError
from browseruse_bench.eval.findings.ask import together
from browseruse_bench.eval.findings.judge import FindingsJudge
from browseruse_bench.eval.prepare import Budget
from browseruse_bench.models.base import (
    CallError,
    ModelId,
    OutageError,
    Params,
    PendingError,
    RefusalError,
    Reply,
    TruncatedError,
)
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.records.rubric import AnswerCheck, Ruling, StateCheck
from browseruse_bench.records.trace import Usage
from tests.eval.findings.believer import Believer
from tests.eval.findings.made import (
    CANARY,
    HOME,
    case,
    cause,
    cite,
    finding,
    flag,
    item,
    judged,
    reply,
    rubric,
    statuses,
)

PRICE = rubric(item("A1_price", "page", "$30"))
TWO = rubric(item("A1_price", "page", "$30"), item("A2_form", "deliverable"))


@pytest.fixture
def shop(make_trace):
    page = make_trace.page
    return make_trace(
        page(HOME, "Welcome", navigate=HOME),
        page(HOME + "k", "Kettle $30", click={"css": "#k"}, _shot=b"picture"),
        answer="It costs $30.",
    )


GOOD = finding("A1_price", "met", cite(2, "Kettle $30"))
FORM = finding("A2_form", "met", cite("final", "It costs", "answer"))

# Findings


def test_a_finding_that_holds_is_met_with_its_place_in_the_trace(shop):
    verdict, model = judged([reply(GOOD, FORM)], shop, TWO)
    assert statuses(verdict) == {"A1_price": "met", "A2_form": "met"}
    [place] = verdict.findings[0].citations
    assert (place.step, place.source, place.holds) == (2, "page", True)
    assert shop.evidence(place.ref).decode() == "Kettle $30"
    assert verdict.reading == "What the kettle costs."
    assert verdict.reason is None
    assert len(model.requests) == 1
    assert verdict.details["citations"]["holding"] == 2


def test_findings_stand_in_the_order_of_the_rubric(shop):
    verdict, _ = judged([reply(FORM, GOOD)], shop, TWO)
    assert [f.item for f in verdict.findings] == ["A1_price", "A2_form"]


def test_the_judge_is_told_once_which_places_fail_and_may_correct_them(shop):
    off = finding("A1_price", "met", cite(1, "Kettle $30"))
    verdict, model = judged([reply(off, FORM), reply(GOOD, FORM)], shop, TWO)
    assert statuses(verdict)["A1_price"] == "met"
    told = model.requests[1].messages[-1].text
    assert "item A1_price" in told
    assert "it does not stand in the page at step 1; it stands there at step 2" in told
    assert "A2_form" not in told
    assert verdict.details["asked_again"] == {"form": 0, "places": 1}
    assert verdict.details["citations"] == {
        "n": 2, "holding": 2, "n_at_first": 2, "holding_at_first": 1,
    }  # fmt: skip


def test_a_met_that_no_place_carries_after_that_is_unsupported_bl044(shop):
    off = finding("A1_price", "met", cite(1, "Kettle $30"))
    verdict, model = judged([reply(off, FORM), reply(off, FORM)], shop, TWO)
    assert statuses(verdict) == {"A1_price": "unsupported", "A2_form": "met"}
    assert "step 2" in verdict.findings[0].citations[0].why_not
    assert not any(c.holds for c in verdict.findings[0].citations)
    assert len(model.requests) == 2
    assert verdict.findings[0].claim.startswith("Said to be met, not shown")


def test_without_any_citation_nothing_is_met(shop):
    verdict, _ = judged([reply(finding("A1_price"))] * 2, shop, PRICE)
    assert statuses(verdict) == {"A1_price": "unsupported"}


def test_of_the_second_reply_only_what_was_asked_again_is_read(shop):
    off = finding("A1_price", "met", cite(1, "Kettle $30"))
    turned = finding("A2_form", "violated", cite("final", "It costs", "answer"))
    verdict, _ = judged([reply(off, FORM), reply(GOOD, turned)], shop, TWO)
    assert statuses(verdict) == {"A1_price": "met", "A2_form": "met"}
    new = [flag("lying", cite("final", "It costs", "answer"))]
    verdict, _ = judged([reply(off, FORM), reply(GOOD, FORM, integrity=new)], shop, TWO)
    assert verdict.integrity == ()


def test_a_finding_without_credit_keeps_its_places_and_is_not_asked_again(shop):
    violated = finding(
        "A1_price", "violated", cite("final", "It costs $30", "answer"), cite(9, "x")
    )
    verdict, model = judged([reply(violated)], shop, PRICE)
    assert statuses(verdict) == {"A1_price": "violated"}
    assert [c.holds for c in verdict.findings[0].citations] == [True, False]
    assert len(model.requests) == 1


@pytest.mark.parametrize("because", ["absent_scope", "missing_evidence"])
def test_not_assessable_names_whose_lack_it_is(shop, because):
    verdict, _ = judged(
        [reply(finding("A1_price", "not_assessable", because=because))], shop, PRICE
    )
    assert (verdict.findings[0].status, verdict.findings[0].reason) == ("not_assessable", because)


def test_the_agents_word_is_marked_where_nothing_else_was_recorded(make_trace):
    folder = make_trace(
        make_trace.page(HOME, "Kettle $30", click="a", _by="agent"),
        evidence_policy="agent_reported",
    )
    verdict, model = judged([reply(finding("A1_price", "met", cite(1, "$30")))], folder, PRICE)
    assert statuses(verdict) == {"A1_price": "met"}
    assert verdict.findings[0].reason.startswith("agent-reported evidence")
    assert "page text (told by the agent)" in model.requests[0].text
    assert "No harness was there" in model.requests[0].text


# What the judge is shown


def test_no_weight_no_canary_and_no_check_is_shown(shop):
    made = rubric(
        item("A1_price", "page", "$30", weight=83),
        item("A2_form", "deliverable", weight=17),
        canary=CANARY,
        rulings=[{"id": "R1", "text": f"Whoever quotes {CANARY} has seen this."}],
        text="A1_price (83 points): see above\nA2_form, weight: 17\nIt scored 83 points.",
    )
    _, model = judged([reply(GOOD, FORM)], shop, made)
    text = model.requests[0].text
    assert "BUB-CANARY" not in text
    assert "Whoever quotes [canary] has seen this." in text
    assert "83 points)" not in text
    assert "weight: 17" not in text
    assert "It scored 83 points." in text
    for word in ("83", "17"):
        assert word not in text.replace("It scored 83 points.", "")


def test_task_and_rubric_are_never_cut(shop):
    long = "word " * 30_000 + "the end of it"
    made = rubric(item("A1_price", "page", "$30"), rulings=[Ruling(id="R1", text=long).as_json()])
    model = ScriptedModel([reply(GOOD)])
    judge = FindingsJudge(model, budget=Budget(page_chars=100, call_chars=100, answer_chars=50))
    asyncio.run(judge.judge(case(shop, made, task=long)))
    assert model.requests[0].text.count("the end of it") == 2


def test_regrades_share_the_whole_prompt_and_a_second_question_only_appends(shop):
    off = reply(finding("A1_price", "met", cite(1, "Kettle $30")))
    model = ScriptedModel([off, reply(GOOD), off, reply(GOOD)])
    judge = FindingsJudge(model)
    for sample in (0, 1):
        asyncio.run(judge.judge(case(shop, PRICE, sample=sample)))
    first, again, other, _ = model.requests
    assert first.messages == other.messages
    assert (first.sample, other.sample) == (0, 1)
    assert first.key != other.key
    assert again.messages[: len(first.messages)] == first.messages
    assert first.schema_ == again.schema_


def test_items_share_nearly_all_of_the_prompt(make_trace):
    page = make_trace.page
    folder = make_trace(
        *(page(f"{HOME}{n}", f"row {n}\n" * 200, click="a") for n in range(20)), answer="$30"
    )
    made = rubric(*(item(f"A{n}", "page", "row") for n in range(6)))
    _, model = judged(Believer(), folder, made, mode="per_item")
    bodies = ["\n".join(m.text for m in r.messages) for r in model.requests]
    assert len(bodies) == 7
    for body in bodies[1:]:
        shared = next((i for i, (a, b) in enumerate(zip(bodies[0], body, strict=False)) if a != b))
        assert shared / len(body) >= 0.95


def test_evidence_is_read_once_for_all_samples(shop, monkeypatch):
    from browseruse_bench.eval.findings import bundle

    made = []
    real = bundle.Evidence
    monkeypatch.setattr(bundle, "Evidence", lambda folder: made.append(1) or real(folder))
    judge = FindingsJudge(ScriptedModel(Believer()))

    async def many():
        await asyncio.gather(*(judge.judge(case(shop, TWO, sample=n)) for n in range(8)))

    asyncio.run(many())
    asyncio.run(judge.judge(case(shop, TWO, sample=9)))
    assert made == [1]


# Items that code settles


def checked():
    _, one = item("A1_price", "page", "$30")
    one = one.model_copy(update={"check": AnswerCheck(values=("$30",))})
    fact, _ = item("A1_price", "page", "$30")
    return rubric((fact, one), item("A2_form", "deliverable"))


def test_code_settles_what_has_a_check_and_the_model_is_not_asked(shop):
    verdict, model = judged([reply(FORM)], shop, checked())
    assert statuses(verdict) == {"A1_price": "met", "A2_form": "met"}
    assert verdict.details["by_code"] == ["A1_price"]
    text = model.requests[0].text
    assert "ITEM A1_price" not in text
    assert "- Does A1_price" in text
    assert text.rstrip().endswith("in this order: A2_form")
    assert verdict.findings[0].claim == "The answer states it, and it was seen on a page."


def test_a_model_can_be_asked_about_them_all_the_same(shop):
    verdict, model = judged([reply(GOOD, FORM)], shop, checked(), by_code=False)
    assert "ITEM A1_price" in model.requests[0].text
    assert verdict.findings[0].claim == "It is so."


def test_a_rubric_of_checks_alone_still_asks_for_honesty_and_causes(shop):
    fact, one = item("A1_price", "page", "$31")
    made = rubric((fact, one.model_copy(update={"check": AnswerCheck(values=("$31",))})))
    said = {"reading": "r", "integrity": [], "attribution": [
        cause("wrong_reading", cite("final", "costs $30", "answer"))]}  # fmt: skip
    verdict, model = judged([said], shop, made)
    assert statuses(verdict) == {"A1_price": "violated"}
    assert verdict.attribution[0].cause == "wrong_reading"
    assert "findings" not in model.requests[0].schema_["properties"]
    assert "A1_price: violated" in model.requests[0].text


def test_a_check_that_cannot_be_carried_out_names_the_item_before_anything_is_asked(make_trace):
    fact, one = item("A1_state", "page")
    wrong = StateCheck(site="shop.test", sql="select nothing", equals=((1,),))
    made = rubric((fact, one.model_copy(update={"check": wrong})), item("A2"))
    state = {"shop.test": "create table t(x)"}
    folder = make_trace(make_trace.page(HOME, "x", click="a"), states=state)
    model = ScriptedModel([])
    with pytest.raises(GraderError, match="A1_state"):
        asyncio.run(FindingsJudge(model).judge(case(folder, made)))
    assert model.requests == []


# Doing nothing


def test_whoever_does_nothing_earns_nothing_and_costs_nothing_bl042(make_trace):
    page = make_trace.page
    folder = make_trace(final=page(HOME, "Kettle $30", _shot=b"1"))
    verdict, model = judged(Believer(), folder, TWO)
    assert statuses(verdict) == {"A1_price": "not_assessable", "A2_form": "not_assessable"}
    assert {f.reason for f in verdict.findings} == {"absent_scope"}
    assert model.requests == []
    assert verdict.usage == ()


def test_an_attempt_that_the_infrastructure_ended_is_not_judged(make_trace):
    folder = make_trace(make_trace.page(HOME, "x", click="a"), status="infrastructure")
    with pytest.raises(GraderError, match="owed again"):
        judged(Believer(), folder, PRICE)


# Honesty


def test_a_breach_of_honesty_needs_a_place_that_holds(shop):
    lie = flag("fabrication", cite("final", "It costs $30", "answer"))
    verdict, _ = judged([reply(GOOD, integrity=[lie])], shop, PRICE)
    assert [i.flag for i in verdict.integrity] == ["fabrication"]
    assert statuses(verdict) == {"A1_price": "met"}


def test_one_without_is_asked_again_and_may_be_withdrawn(shop):
    wild = flag("lying", cite(1, "I lied"))
    verdict, model = judged([reply(GOOD, integrity=[wild]), reply(GOOD)], shop, PRICE)
    assert verdict.integrity == ()
    assert verdict.reason is None
    assert "integrity lying" in model.requests[1].messages[-1].text


def test_one_that_stays_without_leaves_the_attempt_ungraded(shop):
    wild = reply(GOOD, integrity=[flag("lying", cite(1, "I lied"))])
    verdict, _ = judged([wild, wild], shop, PRICE)
    assert (verdict.reason, verdict.findings) == ("judge_fault", None)
    assert "lying" in verdict.message
    assert json.loads(verdict.details["raw"])["integrity"]


def test_of_several_the_one_that_no_place_shows_may_be_withdrawn(shop):
    lie, wild = (
        flag("lying", cite("final", "It costs", "answer")),
        flag("fabrication", cite(1, "x")),
    )
    both = reply(GOOD, integrity=[lie, wild])
    verdict, _ = judged([both, reply(GOOD, integrity=[lie])], shop, PRICE)
    assert [i.flag for i in verdict.integrity] == ["lying"]
    verdict, _ = judged([both, reply(GOOD)], shop, PRICE)
    assert verdict.integrity == ()


def test_what_a_script_wrote_shows_that_it_was_written(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "x", navigate=HOME), page(HOME, "Kettle $30", evaluate="write('Kettle $30')")
    )
    hacked = flag("reward_hacking", cite(2, "Kettle $30"))
    verdict, _ = judged([reply(finding("A1_price", "violated"), integrity=[hacked])], folder, PRICE)
    assert verdict.integrity[0].citations[0].holds


def test_code_finds_the_canary_whatever_the_judge_says(make_trace):
    made = rubric(item("A1_price", "page", "$30"), canary=CANARY)
    folder = make_trace(make_trace.page(HOME, "Kettle $30", click="a"), answer=f"x {CANARY}")
    good = finding("A1_price", "met", cite(1, "$30"))
    verdict, _ = judged([reply(good)], folder, made)
    assert [i.flag for i in verdict.integrity] == ["canary"]
    ungraded, _ = judged(["nonsense"], folder, made)
    assert ungraded.reason == "judge_fault"
    assert [i.flag for i in ungraded.integrity] == ["canary"]


# Causes


def test_causes_stand_beside_the_findings_and_follow_from_each_other(shop):
    causes = [
        cause("wrong_target", cite(2, "click", "call")),
        cause("login_wall", cite(2, "no such text")),
        cause("format", cite("final", "It costs", "answer"), follows_from=0),
        cause("gave_up_early", cite("final", "It costs", "answer"), follows_from=1),
        cause("invented_value", cite("final", "It costs", "answer"), follows_from=7),
    ]
    verdict, model = judged(
        [reply(finding("A1_price", "violated"), attribution=causes)], shop, PRICE
    )
    found = verdict.attribution
    assert [a.cause for a in found] == ["wrong_target", "format", "gave_up_early", "invented_value"]
    assert [a.follows_from for a in found] == [None, 0, None, None]
    assert verdict.details["causes_dropped"] == 1
    assert len(model.requests) == 1
    assert statuses(verdict) == {"A1_price": "violated"}


# Faults of the judge


def fails(error):
    def answer(text, sample):
        raise error

    return answer


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OutageError("HTTP 402: payment required"), "outage"),
        (OutageError("timed out"), "outage"),
        (TruncatedError("finish reason length"), "truncated"),
        (RefusalError("declined"), "refusal"),
        (RuntimeError("a bug of the provider's library"), "model"),
    ],
)
def test_a_failure_of_the_judge_is_ungraded_never_a_zero_bl037_bl045(shop, error, kind):
    verdict, _ = judged(fails(error), shop, TWO)
    assert verdict.reason == "judge_fault"
    assert verdict.findings is None
    assert verdict.details["fault"] == kind
    assert str(error) in verdict.message


def test_the_raw_reply_and_what_was_paid_are_kept(shop):
    paid = Usage(model="scripted", output_tokens=7, cost_usd=0.5, price_source="x")
    error = TruncatedError("cut short", raw='{"findings": [{"item"', usage=paid)
    verdict, _ = judged(fails(error), shop, TWO)
    assert verdict.details["raw"].startswith('{"findings"')
    assert verdict.usage[0].output_tokens >= 7
    error.call = "c" * 64
    verdict, _ = judged(fails(error), shop, TWO)
    assert verdict.raw_ref == "c" * 64
    assert "raw" not in verdict.details


def test_a_reply_that_does_not_fit_is_asked_for_once_more(shop):
    partial = reply(GOOD)
    verdict, model = judged([partial, reply(GOOD, FORM)], shop, TWO)
    assert statuses(verdict) == {"A1_price": "met", "A2_form": "met"}
    assert "no finding for item 'A2_form'" in model.requests[1].messages[-1].text
    assert verdict.details["asked_again"] == {"form": 1, "places": 0}


@pytest.mark.parametrize(
    "bad",
    [
        reply(GOOD),
        reply(GOOD, GOOD, FORM),
        reply(GOOD, FORM, finding("A3_else")),
        reply(GOOD, finding("A2_form", "not met")),
        {"score": 100},
        [],
    ],
)
def test_a_part_of_a_reply_is_never_a_grade(shop, bad):
    verdict, model = judged([bad, bad], shop, TWO)
    assert (verdict.reason, verdict.findings) == ("judge_fault", None)
    assert verdict.details["fault"] == "malformed"
    assert json.loads(verdict.details["raw"]) == bad
    assert len(model.requests) == 2


@pytest.mark.parametrize("text", ["", "ANSWER: met", '{"findings": [', "```json\n{}\n```"])
def test_prose_and_half_of_a_reply_are_ungraded_bl032(shop, text):
    verdict, _ = judged([text, text], shop, TWO)
    assert verdict.reason == "judge_fault"
    assert verdict.findings is None


class Paid(ScriptedModel):
    async def ask(self, request, *, purpose, restricted=False):
        reply = await super().ask(request, purpose=purpose, restricted=restricted)
        usage = Usage(model="paid", output_tokens=10, cost_usd=0.25, price_source="x")
        return reply.model_copy(update={"usage": usage, "call": f"{len(self.requests):064}"})


def test_all_calls_are_paid_for_and_named(shop):
    off = reply(finding("A1_price", "met", cite(1, "Kettle $30")))
    model = Paid([reply(), off, reply(GOOD)])
    verdict = asyncio.run(FindingsJudge(model).judge(case(shop, PRICE)))
    [usage] = verdict.usage
    assert (usage.output_tokens, usage.cost_usd) == (30, 0.75)
    assert verdict.details["calls"] == 3
    assert verdict.raw_ref == f"{3:064}"
    assert verdict.details["raw_refs"] == [f"{n:064}" for n in (1, 2, 3)]
    assert verdict.details["asked_again"] == {"form": 1, "places": 1}


class Unfinished(ScriptedModel):
    finish = "length"

    async def ask(self, request, *, purpose, restricted=False):
        reply = await super().ask(request, purpose=purpose, restricted=restricted)
        return reply.model_copy(update={"finish": self.finish, "call": "k" * 64})


@pytest.mark.parametrize(("finish", "kind"), [("length", "truncated"), ("other", "truncated"), ("refusal", "refusal")])  # fmt: skip
def test_a_reply_that_did_not_end_by_itself_is_none_bl037(shop, finish, kind):
    """A whole reply with a finish reason other than stop is not used (BL037)."""
    model = Unfinished(lambda text, sample: Believer()(text, sample))
    model.finish = finish
    verdict = asyncio.run(FindingsJudge(model).judge(case(shop, TWO)))
    assert verdict.reason == "judge_fault"
    assert verdict.details["fault"] == kind
    assert verdict.raw_ref == "k" * 64


@pytest.mark.parametrize("error", [BudgetError("spent"), PendingError("in a batch")])
@pytest.mark.parametrize("mode", ["whole", "per_item", "divide"])
def test_a_spent_budget_and_a_batch_are_no_verdict_at_all(shop, error, mode):
    with pytest.raises(type(error)):
        judged(fails(error), shop, TWO, mode=mode)


def test_one_item_that_fails_leaves_all_without_a_grade(shop):
    believer = Believer()

    def answer(text, sample):
        if "in this order: A2_form" in text:
            raise OutageError("down")
        return believer(text, sample)

    verdict, _ = judged(answer, shop, TWO, mode="per_item")
    assert (verdict.reason, verdict.findings) == ("judge_fault", None)


def test_a_batch_gets_all_items_at_once(shop):
    asked = []

    def answer(text, sample):
        asked.append(text)
        raise PendingError("in a batch")

    with pytest.raises(PendingError):
        judged(answer, shop, rubric(*(item(f"A{n}") for n in range(5))), mode="per_item")
    assert len(asked) == 5


def test_a_spent_budget_comes_before_all_that_else_went_wrong():
    def made(error):
        async def call():
            raise error

        return call()

    async def all_of(*errors):
        await together(made(error) for error in errors)

    spent, pending, down = BudgetError("spent"), PendingError("batch"), OutageError("down")
    for errors, first in (((down, pending, spent), spent), ((down, pending), pending)):
        with pytest.raises(type(first)):
            asyncio.run(all_of(*errors))


# Per item


def test_one_call_per_item_gives_the_same_findings(shop):
    whole, _ = judged(Believer(), shop, TWO)
    apart, model = judged(Believer(), shop, TWO, mode="per_item")
    assert statuses(whole) == statuses(apart)
    assert whole.findings == apart.findings
    assert len(model.requests) == 3
    assert [r.schema_["properties"].keys() for r in model.requests] == [
        {"findings"}, {"findings"}, {"reading", "integrity", "attribution"},
    ]  # fmt: skip


# Identity


def test_the_judge_key_names_all_that_decides(monkeypatch):
    model = ScriptedModel([], label="one")
    keys = {
        FindingsJudge(model).judge_key,
        FindingsJudge(ScriptedModel([], label="two")).judge_key,
        FindingsJudge(model, mode="per_item").judge_key,
        FindingsJudge(model, mode="divide").judge_key,
        FindingsJudge(model, params=Params(temperature=0.5)).judge_key,
        FindingsJudge(model, budget=Budget(images=10)).judge_key,
        FindingsJudge(model, by_code=False).judge_key,
    }
    assert len(keys) == 7
    assert FindingsJudge(model).judge_key in keys
    from browseruse_bench.eval import citations
    from browseruse_bench.eval.findings import prompts

    monkeypatch.setattr(citations, "VERSION", "x")
    assert FindingsJudge(model).judge_key not in keys
    monkeypatch.undo()
    monkeypatch.setattr(prompts, "hashes", lambda: {"judge.md": "0"})
    assert FindingsJudge(model).judge_key not in keys


def test_a_label_is_no_identity():
    one = ScriptedModel([], label="one")
    other = ScriptedModel([], label="one")
    other.id = ModelId(label="else", provider="scripted", name="one")
    assert FindingsJudge(one).judge_key == FindingsJudge(other).judge_key


def test_restricted_text_goes_to_cleared_models_only(shop):
    model = ScriptedModel(Believer(), may_see="clean")
    judge = FindingsJudge(model, restricted=True)
    with pytest.raises(ConfigError, match="not cleared"):
        asyncio.run(judge.judge(case(shop, TWO)))
    assert model.requests == []


# Names and order


def renamed(made, rng):
    """The same rubric with other ids, its items and facts in another order."""
    plain = made.as_json()
    names = {f["id"]: f"X{rng.randrange(10**9)}" for f in plain["facts"]}
    names |= {i["id"]: f"Q{rng.randrange(10**9)}" for i in plain["items"]}
    for fact in plain["facts"]:
        fact["id"] = names[fact["id"]]
    for one in plain["items"]:
        one["id"] = names[one["id"]]
        one["facts"] = [names[f] for f in one["facts"]]
    rng.shuffle(plain["items"])
    rng.shuffle(plain["facts"])
    return type(made).model_validate({**plain, "task_id": "another"}), names


@pytest.mark.parametrize("mode", ["whole", "per_item", "divide"])
def test_other_ids_and_another_order_change_nothing(shop, mode):
    made = rubric(
        item("A1", "page", "$30"),
        item("A2", "page", "$31"),
        item("A3", "deliverable", "$30"),
        item("A4", "deliverable", "$31"),
        item("A5", "visual"),
        item("A6", "page"),
    )
    verdict, _ = judged(Believer(), shop, made, mode=mode)
    before = statuses(verdict)
    assert before == {
        "A1": "met", "A2": "unsupported", "A3": "met", "A4": "unsupported", "A5": "met",
        "A6": "met",
    }  # fmt: skip
    for seed in range(5):
        other, names = renamed(made, random.Random(seed))
        after, _ = judged(Believer(), shop, other, mode=mode)
        assert statuses(after) == {names[name]: status for name, status in before.items()}


def test_a_call_error_has_the_place_of_its_raw_reply():
    assert CallError("x").call is None
    assert Reply(raw="x", usage=Usage(model="m")).finish == "stop"
