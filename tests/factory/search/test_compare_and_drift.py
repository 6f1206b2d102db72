"""Models with one prompt, and labellers against their earlier selves."""

import asyncio

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.search.compare import compare, sentences
from browseruse_bench.factory.search.drift import drift
from browseruse_bench.factory.search.labelled import examples_of, people
from browseruse_bench.factory.search.labeller import Prompt
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.records.trace import Usage
from tests.factory.search.scripted import labelled, nobody, parsed, said, save
from tests.factory.search.simulated import examples

PROMPT = Prompt(text="Say what it is.")
GIVEN = examples(60, 20, 10)
BY_TEXT = {example.text: example for example in GIVEN.all}
NOT = {"suitable": "unsuitable", "unsuitable": "suitable"}


class Priced(ScriptedModel):
    """A scripted model whose calls cost something."""

    def __init__(self, answers, *, label, usd, may_see="restricted"):
        super().__init__(answers, label=label, may_see=may_see)
        self.usd = usd

    async def ask(self, request, *, purpose, restricted=False):
        reply = await super().ask(request, purpose=purpose, restricted=restricted)
        usage = Usage(model=self.id.label, cost_usd=self.usd, price_source="test")
        return reply.model_copy(update={"usage": usage})


def right(text, sample):
    return said(BY_TEXT[parsed(text)[1]].truth)


def timid(text, sample):
    """Finds one of three suitable tasks."""
    example = BY_TEXT[parsed(text)[1]]
    is_found = example.truth == "suitable" and int(example.key) % 3 == 0
    return said("suitable" if is_found else "unsuitable")


def compared(tmp_path, *models, part="selection", **more):
    given = GIVEN.part(part)
    return asyncio.run(compare(tmp_path, models, PROMPT, given, nobody(), **more))


def test_a_timid_dear_model_is_told_from_a_good_cheap_one(tmp_path):
    good = Priced(right, label="good", usd=0.001)
    dear = Priced(timid, label="dear", usd=0.005)
    found = compared(tmp_path, dear, good)
    assert [m.model for m in found.models] == ["good", "dear"]
    figures = {m.model: m.figures for m in found.models}
    n_suitable = sum(e.truth == "suitable" for e in GIVEN.part("selection"))
    assert figures["good"].usd_per_thousand_suitable == pytest.approx(1000 * 0.06 / n_suitable)
    assert figures["dear"].usd_per_thousand == pytest.approx(5)
    assert figures["dear"].leaning == "over-conservative"
    assert figures["dear"].recall["unsuitable"].rate == 1
    assert found.pairs[0].told_apart
    assert any("dear is over-conservative: it rejects" in s for s in sentences(found))


def test_a_model_that_calls_nothing_suitable_has_no_cost_per_suitable_task(tmp_path):
    found = compared(tmp_path, Priced(lambda t, s: said("unsuitable"), label="no", usd=1))
    assert found.models[0].figures.usd_per_thousand_suitable is None


def test_an_unknown_price_is_unknown_and_not_nothing(tmp_path):
    found = compared(tmp_path, Priced(right, label="good", usd=None))
    assert found.models[0].figures.cost_usd is None
    assert found.models[0].figures.usd_per_thousand_suitable is None


def test_models_that_agree_alike_are_not_told_apart_and_cost_decides(tmp_path):
    def nearly(text, sample):
        example = BY_TEXT[parsed(text)[1]]
        return said(NOT[example.truth] if example is GIVEN.part("selection")[3] else example.truth)

    found = compared(tmp_path, Priced(right, label="a", usd=1), Priced(nearly, label="b", usd=2))
    assert not found.pairs[0].told_apart
    assert "the labels cannot tell it from b: there, cost may decide." in sentences(found)[0]


def test_a_prompt_that_was_searched_for_one_model_is_said_to_be(tmp_path):
    found = compared(tmp_path, Priced(right, label="a", usd=1), tuned_for="a")
    assert any("was searched for a" in s for s in sentences(found))


def test_comparing_again_asks_nobody(tmp_path):
    models = [Priced(right, label="a", usd=1), Priced(timid, label="b", usd=1)]
    first = compared(tmp_path, *models)
    n = [len(m.requests) for m in models]
    assert compared(tmp_path, *models) == first
    assert [len(m.requests) for m in models] == n == [60, 60]


def test_one_model_twice_none_or_no_labels_are_refused(tmp_path):
    a = Priced(right, label="a", usd=1)
    for models, part in (((a, a), "selection"), ((), "selection"), ((a,), "no part")):
        with pytest.raises(ConfigError):
            compared(tmp_path, *models, part=part)
    with pytest.raises(ConfigError, match="may_see"):
        compared(tmp_path, Priced(right, label="a", usd=1, may_see="clean"))


ROWS = [
    (f"task number {i} of many", {"ann": "suitable" if i % 3 == 0 else "unsuitable"})
    for i in range(90)
]


def open_rows(store):
    """Rows whose labels are not sealed."""
    from browseruse_bench.factory.labels.lines import new_task

    return [row for row in ROWS if store.part_of(new_task(row[0]).key) != "sealed"]


def test_a_labeller_who_says_the_same_again_has_not_drifted(tmp_path):
    store = labelled(tmp_path, ROWS)
    save(store, ROWS[:30], recheck=True, at="2026-06-10T00:00:00+00:00")
    found = drift(store)
    n = len(open_rows(store)[:27])
    (ann,) = found.labellers
    assert ann.agreement.rate == 1
    assert n >= 20 <= ann.agreement.of < 30
    assert ann.days == 40
    assert "no shift is shown" in found.sentences[0]


def test_a_standard_that_moved_is_shown(tmp_path):
    store = labelled(tmp_path, ROWS)
    again = [(text, {"ann": "unsuitable"}) for text, _ in ROWS]
    save(store, again, recheck=True)
    (ann,) = drift(store).labellers
    n = sum(by["ann"] == "suitable" for _, by in open_rows(store))
    assert (ann.n_no_longer, ann.n_now_suitable) == (n, 0)
    assert f"the standard moved: {n} tasks are no longer suitable" in ann.sentence


def test_what_was_not_blind_or_not_twice_says_nothing(tmp_path):
    store = labelled(tmp_path, ROWS)
    assert drift(store).labellers == ()
    save(store, ROWS[:20], recheck=True, blind=False)
    (ann,) = drift(store).labellers
    assert ann.agreement.of == 0
    assert ann.n_not_blind > 10
    assert "nothing was labelled again blindly" in ann.sentence
    save(store, [(text, {"bea": "suitable"}) for text, _ in ROWS[:20]], recheck=True)
    assert len(drift(store).labellers) == 1


def test_examples_are_the_open_labels_by_majority(tmp_path):
    rows = [
        (text, {"ann": by["ann"], "bea": "uncertain", "cal": by["ann"]} if i % 2 else by)
        for i, (text, by) in enumerate(ROWS)
    ]
    rows[0] = (rows[0][0], {"ann": "suitable", "bea": "unsuitable"})
    store = labelled(tmp_path, rows)
    found = examples_of(store)
    texts = {text for text, _ in open_rows(store)}
    assert {e.text for e in found.all} == texts - {rows[0][0]}
    assert found.n_split == (rows[0][0] in texts)
    truth = {text: by["ann"] for text, by in rows}
    assert all(e.truth == truth[e.text] for e in found.all)
    assert {e.part for e in found.all} == {"search", "selection", "validation"}
    assert found.all[0].reasons[0] == "ann says so"


def test_a_recheck_is_no_second_opinion(tmp_path):
    store = labelled(tmp_path, ROWS)
    before = examples_of(store)
    save(store, [(text, {"ann": "uncertain"}) for text, _ in ROWS], recheck=True)
    assert examples_of(store) == before
    assert people(store).n_pairs == 0


def test_how_far_people_agree_is_known_where_two_labelled(tmp_path):
    rows = [(text, {**by, "bea": by["ann"] if i % 10 else "uncertain"}) for i, (text, by) in enumerate(ROWS)]  # fmt: skip
    found = people(labelled(tmp_path, rows))
    assert found.n_pairs == found.n_tasks == found.agreement.of
    assert 0.8 < found.agreement.rate < 1
    assert 0.6 < found.alpha.value < 1
