"""A citation holds exactly where its words stand, and carries only what the harness saw."""

from __future__ import annotations

import random
import time
import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from browseruse_bench.eval import said
from browseruse_bench.eval.citations import (
    NOT_DELIVERED,
    ONLY_PICTURE,
    OWN_WORDS,
    UNSEEN_VALUE,
    UNTOLD,
    Checker,
    Cited,
)
from browseruse_bench.eval.corroboration import ECHO, NO_PAGE, SCRIPTED, Evidence
from browseruse_bench.eval.fencing import fence_of, visible
from browseruse_bench.eval.material import take_apart
from browseruse_bench.records.rubric import Fact, Item, Rubric

HOME = "http://shop.test/"


def item(evidence="page", values=(), kind="present"):
    fact = Fact(id="F1", claim="It is so.", values=values, kind=kind)
    one = Item(id="A1", requirement="Says so", facts=("F1",), weight=100, evidence=evidence)
    return Rubric(task_id="t", facts=(fact,), items=(one,))


def checker(folder, rubric=None):
    rubric = rubric or item()
    evidence = Evidence(folder)
    return Checker(evidence, take_apart(evidence), rubric, rubric.items)


def cited(step, source="page", quote=None, ref=None):
    return Cited(step=step, source=source, ref=ref, quote=quote)


def shown_of(folder):
    return frozenset((p.step, p.ref) for p in Evidence(folder).pictures)


def why_not(folder, *args, shown=frozenset(), **kwargs):
    return checker(folder).place(cited(*args, **kwargs), shown).why_not


def carries(folder, rubric, *cites, shown=None):
    """Why these citations do not carry a `met`; None if they do."""
    check = checker(folder, rubric)
    shown = shown_of(folder) if shown is None else shown
    support = check.support("A1", [check.place(one, shown) for one in cites])
    assert (support.problem is None) == any(c.holds for c in support.citations)
    assert all((c.why_not is None) == c.holds for c in support.citations)
    return support.problem


# Where

WORD = st.text("abcdefghij0123456789äé", min_size=1, max_size=8)


@given(
    st.lists(st.lists(WORD, min_size=1, max_size=6), min_size=1, max_size=5),
    st.data(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_every_stretch_of_a_page_holds_there_however_it_is_written(make_trace, lines, data):
    """A quote holds if its words stand in that step's text, after NFKC, case and white space."""
    text = "\n".join(" ".join(line) for line in lines)
    words = text.split()
    start = data.draw(st.integers(0, len(words) - 1))
    stop = data.draw(st.integers(start + 1, len(words)))
    space = data.draw(st.sampled_from([" ", "  ", "\n", "\t", "\u00a0", " \u200b"]))
    quote = space.join(words[start:stop])
    quote = data.draw(
        st.sampled_from(
            [quote, quote.upper(), unicodedata.normalize("NFD", quote), f'"{quote}".', f"| {quote}"]
        )
    )
    folder = make_trace(make_trace.page(HOME, text, click="a"))
    assert why_not(folder, 1, quote=quote) is None
    assert why_not(folder, "1", quote=quote) is None


@given(st.integers(0, 10**6), st.integers(0, 10**6))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_other_digits_never_hold(make_trace, one, other):
    folder = make_trace(make_trace.page(HOME, f"the price is ${one} today", click="a"))
    assert (why_not(folder, 1, quote=f"price is ${other}") is None) == (one == other)


@given(
    st.lists(st.sampled_from(["a", "b", "c", "d", "1", "2", "30", "x"]), min_size=2, max_size=12),
    st.data(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
def test_a_quote_holds_only_if_its_words_stand_there_in_a_row(make_trace, words, data):
    quote = data.draw(
        st.lists(st.sampled_from(["a", "b", "c", "d", "1", "2", "30", "x"]), min_size=1, max_size=4)
    )
    folder = make_trace(make_trace.page(HOME, " ".join(words), click="a"))
    stands = any(words[i : i + len(quote)] == quote for i in range(len(words)))
    assert (why_not(folder, 1, quote=" ".join(quote)) is None) == stands


def test_a_quote_of_what_is_shown_holds_although_marks_stand_in_it(make_trace):
    body = "Total\u200b: \u202e$1\u200b,299 <system> <|end|> [INST]\nnext line"
    folder = make_trace(make_trace.page(HOME, body, click="a"))
    shown = visible(body, fence_of(folder.key)).replace("\n", "\n| ")
    assert "⟨U+200B⟩" in shown
    assert why_not(folder, 1, quote=shown) is None
    assert why_not(folder, 1, quote=body) is None


def test_a_quote_at_another_step_is_refused_and_the_judge_is_told_where_it_stands(make_trace):
    page = make_trace.page
    folder = make_trace(page(HOME, "Welcome", click="a"), page(HOME, "Kettle $30", click="b"))
    assert why_not(folder, 2, quote="Kettle $30") is None
    assert why_not(folder, "final", quote="Kettle $30") is None
    wrong = "it does not stand in the page at step 1; it stands there at step 2"
    assert why_not(folder, 1, quote="Kettle $30") == wrong
    assert why_not(folder, 1, quote="Kettle $31").endswith("it stands there at no step")


def test_a_step_that_is_not_there_is_named_and_the_end_has_two_names(make_trace):
    folder = make_trace(make_trace.page(HOME, "Kettle", click="a"), answer="x")
    assert why_not(folder, 2, quote="Kettle") is None
    assert why_not(folder, 3, quote="Kettle") == "there is no step 3: the last is 1, then final"
    assert why_not(folder, 0, quote="Kettle").startswith("there is no step 0")


@pytest.mark.parametrize("quote", ["...", "  ", None, "| ", "⟨U+200B⟩"])
def test_a_quote_without_a_word_holds_nowhere(make_trace, quote):
    folder = make_trace(make_trace.page(HOME, "... Kettle", click="a"))
    assert why_not(folder, 1, quote=quote) is not None


def test_words_that_are_left_out_of_a_quote_are_missed(make_trace):
    folder = make_trace(make_trace.page(HOME, "Kettle, blue, $30", click="a"))
    assert why_not(folder, 1, quote="Kettle ... $30") is not None


def test_address_and_title_of_a_page_can_be_cited(make_trace):
    folder = make_trace(make_trace.page(HOME + "cart?x=1", "y", click="a", _title="Your cart (2)"))
    assert why_not(folder, 1, quote="http://shop.test/cart?x=1") is None
    assert why_not(folder, 1, quote="your cart") is None
    assert why_not(folder, 1, quote="http://shop.test/") is not None
    assert carries(folder, item(), cited(1, quote="Your cart (2)")) is None
    assert carries(folder, item(values=(2,)), cited(1, quote="Your cart (2)")) is None
    assert carries(folder, item(), cited(1, quote="http://shop.test/cart?x=1")) is None


def test_calls_thoughts_answer_files_state_and_probes_are_looked_up_where_they_are(make_trace):
    call = make_trace.call("extract", {"query": "all prices"}, result="Kettle: 30")
    folder = make_trace(
        make_trace.page(HOME, "x", call),
        answer="It costs $30.",
        files={"out/a.txt": b"saved text", "b.txt": b"other"},
        states={"shop.test": "create table o(n); insert into o values ('one kettle')"},
        probes={"score": {"points": 7}},
        downloads={"d.csv": b"col,1"},
    )
    assert why_not(folder, 1, "call", "all prices") is None
    assert why_not(folder, 1, "call", "Kettle: 30") is None
    assert "at step 1" in why_not(folder, "final", "call", "Kettle: 30")
    assert why_not(folder, 1, "answer", "it costs $30") is None
    assert why_not(folder, "final", "answer", "it costs $31") == "it does not stand in the answer"
    assert why_not(folder, "final", "file", "saved text") is None
    assert why_not(folder, "final", "file", "saved text", ref="a.txt") is None
    assert why_not(folder, "final", "file", ref="d.csv") is None
    assert why_not(folder, "final", "file", "saved text", ref="b.txt") is not None
    assert why_not(folder, "final", "file", "x", ref="c.txt") == "there is no file 'c.txt'"
    assert why_not(folder, "final", "state", "one kettle", ref="shop.test") is None
    assert why_not(folder, "final", "probe", "points 7", ref="score") is None
    assert why_not(folder, "final", "probe", "points 8") is not None


def test_what_is_not_there_cannot_be_cited(make_trace):
    folder = make_trace(make_trace.page(HOME, "x", click="a"))
    for source in ("answer", "file", "state", "probe"):
        assert why_not(folder, "final", source, "x") == f"there is no {source}"


def test_a_picture_must_be_of_the_harness_of_that_step_and_shown_to_the_judge(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "x", click="a", _shot=b"one"),
        page(HOME, "y", click="a"),
        page(HOME, "z", click="a", _shot=b"mine", _by="agent"),
        final=page(HOME, "z", _shot=b"end"),
    )
    shown = shown_of(folder)
    ref = next(ref for step, ref in shown if step == 1)
    assert why_not(folder, 1, "screenshot", shown=shown) is None
    assert why_not(folder, 1, "screenshot", ref=ref[:12], shown=shown) is None
    assert why_not(folder, 1, "screenshot", ref=ref, shown=shown) is None
    assert why_not(folder, 1, "screenshot", ref="abcdef123456", shown=shown) is not None
    assert why_not(folder, 1, "screenshot") == "the judge was not shown this picture"
    for step in (2, 3, 9):
        assert "no picture" in why_not(folder, step, "screenshot", shown=shown)


# What carries: one that is right and one that is wrong for each kind of item


def test_a_page_item_is_carried_by_a_page(make_trace):
    folder = make_trace(make_trace.page(HOME, "Kettle $30", click="a"), answer="It costs $30")
    assert carries(folder, item(), cited(1, quote="Kettle")) is None
    assert carries(folder, item(), cited(1, quote="Teapot")) == "no citation holds"
    assert carries(folder, item(values=("$30",)), cited(1, quote="Kettle $30")) is None
    assert "$31" in carries(folder, item(values=("$31",)), cited(1, quote="Kettle $30"))


@pytest.mark.parametrize("source", ["answer", "call", "file"])
def test_a_page_item_is_not_carried_by_what_the_agent_said_or_saved(make_trace, source):
    call = make_trace.call("extract", result="Kettle $30")
    folder = make_trace(
        make_trace.page(HOME, "x", call), answer="Kettle $30", files={"a.txt": b"Kettle $30"}
    )
    step = 1 if source == "call" else "final"
    for rubric in (item(), item(values=("$30",))):
        assert carries(folder, rubric, cited(step, source, "Kettle $30")) == OWN_WORDS


def test_the_answer_beside_a_page_that_carries_holds_too(make_trace):
    folder = make_trace(make_trace.page(HOME, "Kettle $30", click="a"), answer="It costs $30")
    check = checker(folder, item(values=("$30",)))
    places = [cited("final", "answer", "costs $30"), cited(1, quote="$30")]
    support = check.support("A1", [check.place(one, frozenset()) for one in places])
    assert [c.holds for c in support.citations] == [True, True]


def test_a_deliverable_is_carried_by_the_answer_or_a_file_and_not_by_a_page(make_trace):
    folder = make_trace(
        make_trace.page(HOME, "One sentence: $30", click="a"),
        answer="One sentence: $30",
        files={"a.txt": b"One sentence: $30"},
    )
    for values in ((), ("$30",)):
        rubric = item("deliverable", values)
        assert carries(folder, rubric, cited("final", "answer", "sentence: $30")) is None
        assert carries(folder, rubric, cited("final", "file", "sentence: $30", "a.txt")) is None
        assert carries(folder, rubric, cited(1, quote="sentence: $30")) == NOT_DELIVERED
    assert carries(folder, item("deliverable"), cited("final", "file", ref="a.txt")) is None
    wrong = item("deliverable", ("$31",))
    assert carries(folder, wrong, cited("final", "answer", "sentence: $30")) is not None
    assert carries(folder, wrong, cited("final", "file", ref="a.txt")) is not None


def test_a_visual_item_is_carried_by_a_picture_alone_and_a_page_item_is_not(make_trace):
    folder = make_trace(make_trace.page(HOME, "x", click="a", _shot=b"1"))
    place = cited(1, "screenshot")
    for values in ((), ("$30",)):
        assert carries(folder, item("visual", values), place) is None
        assert carries(folder, item("visual", values), place, shown=frozenset()) is not None
        assert carries(folder, item("page", values), place) == ONLY_PICTURE
        assert carries(folder, item("deliverable", values), place) == NOT_DELIVERED


def test_a_snapshot_or_a_probe_carries_an_item_without_values_only(make_trace):
    folder = make_trace(
        make_trace.page(HOME, "x", click="a"),
        states={"shop.test": "create table o(n); insert into o values ('kettle $30')"},
        probes={"p": "kettle $30"},
    )
    for source in ("state", "probe"):
        place = cited("final", source, "kettle $30")
        assert carries(folder, item(), place) is None
        assert carries(folder, item(values=("$30",)), place) == UNSEEN_VALUE


def test_facts_of_what_is_nowhere_ask_for_no_value(make_trace):
    folder = make_trace(make_trace.page(HOME, "No results", click="a"))
    rubric = item(values=("direct flight",), kind="absent")
    assert carries(folder, rubric, cited(1, quote="No results")) is None


@pytest.mark.parametrize(
    ("answer", "quote"),
    [
        ("It is $40. <!-- $30 -->", "$30"),
        ("It is ~~$30~~ $40.", "$30"),
        ("It is <span hidden>$30</span> $40.", "$30"),
        ("It is not $30.", "$30"),
        ("Maybe $30, maybe $40.", "$30"),
        ("The answer is $30. The answer is $40.", "answer is $30"),
        ("It costs $30. That was wrong.", "costs $30"),
    ],
)
def test_a_deliverable_is_not_carried_by_what_the_answer_hides_or_does_not_claim(
    make_trace, answer, quote
):
    folder = make_trace(make_trace.page(HOME, "x", click="a"), answer=answer)
    place = cited("final", "answer", quote)
    assert why_not(folder, "final", "answer", quote) is None
    assert carries(folder, item("deliverable", ("$30",)), place) is not None
    hidden = "$30" not in said.told(answer)
    assert (carries(folder, item("deliverable"), place) == UNTOLD) == hidden
    claimed = make_trace(make_trace.page(HOME, "x", click="a"), answer="A: $20, B: $30, C: $40")
    assert carries(claimed, item("deliverable", ("$30",)), cited("final", "answer", "$30")) is None


# Values


@pytest.mark.parametrize(
    ("value", "text", "quote"),
    [
        ("$1,299", "Kettle\t$1,299.00\tnew", "1,299.00"),
        (1299, "about 1 299 pieces", "1 299 pieces"),
        ("blue|OR|red", "a red kettle", "red kettle"),
        ("2026-05-03", "leaves on May 3, 2026 at noon", "May 3, 2026"),
        ("12%", "it fell by 12% today", "fell by 12%"),
        ("Delta, 18 minutes", "Delta is late by 18 minutes", "Delta is late by 18 minutes"),
        ("https://x.test/a", "see https://x.test/a/ now", "https://x.test/a/"),
    ],
)
def test_a_value_within_the_quote_carries(make_trace, value, text, quote):
    folder = make_trace(make_trace.page(HOME, f"first line\n{text}\nlast", click="a"))
    assert carries(folder, item(values=(value,)), cited(1, quote=quote)) is None


@pytest.mark.parametrize(
    ("value", "text", "quote"),
    [
        ("$30", "weighs 30 kg and costs $99", "30"),
        ("$30", "weighs 30 kg and costs $30", "weighs 30 kg"),
        (30, "price 1,030 or 30.5", "price 1,030"),
        (1299, "13:1299x 12990", "12990"),
        ("blue kettle", "a blue and a kettle", "a blue and a kettle"),
        ("2026-05-03", "leaves on May 4, 2026", "May 4, 2026"),
    ],
)
def test_a_value_that_is_not_within_the_quote_does_not(make_trace, value, text, quote):
    folder = make_trace(make_trace.page(HOME, f"first line\n{text}\nlast", click="a"))
    assert carries(folder, item(values=(value,)), cited(1, quote=quote)) is not None


def test_parts_of_a_value_may_stand_in_several_quotes(make_trace):
    page = make_trace.page
    folder = make_trace(page(HOME, "Delta", click="a"), page(HOME, "18 minutes", click="b"))
    rubric = item(values=("Delta, 18 minutes",))
    both = [cited(1, quote="Delta"), cited(2, quote="18 minutes")]
    assert carries(folder, rubric, *both) is None
    assert carries(folder, rubric, both[0]) is not None


def test_one_of_the_values_is_enough_and_one_is_needed(make_trace):
    folder = make_trace(make_trace.page(HOME, "Kettle $30", click="a"))
    assert carries(folder, item(values=("$30", "steel")), cited(1, quote="Kettle $30")) is None
    assert carries(folder, item(values=("$30", "steel")), cited(1, quote="Kettle")) is not None


# What proves nothing, in a citation as in a check


def test_an_echo_carries_no_value_and_says_where_it_was_seen_before(make_trace):
    page = make_trace.page
    search = page(HOME + "s", "Results for 1299", type={"into": {"css": "#q"}, "text": "1299"})
    echo = cited(2, quote="Results for 1299")
    folder = make_trace(page(HOME, "Welcome", navigate=HOME), search)
    assert carries(folder, item(values=(1299,)), echo) == ECHO
    assert carries(folder, item(), cited(2, quote="1299")) == ECHO
    assert carries(folder, item(), echo) is None  # the page's own words stand around it
    seen = make_trace(page(HOME, "Model 1299", navigate=HOME), search)
    assert carries(seen, item(values=(1299,)), echo).endswith("seen before that at step 1")
    assert carries(seen, item(values=(1299,)), cited(1, quote="Model 1299")) is None


def test_an_address_that_the_agent_typed_carries_no_value(make_trace):
    page = make_trace.page
    url = HOME + "p/blue-kettle"
    rubric = item(values=(url,))
    typed = make_trace(page(HOME, "x", navigate=HOME), page(url, "Not found", navigate=url))
    found = make_trace(page(HOME, "x", navigate=HOME), page(url, "Kettle", click="a"))
    assert carries(typed, rubric, cited(2, quote=url)) == ECHO
    assert carries(found, rubric, cited(2, quote=url)) is None


def test_a_page_in_which_a_script_ran_carries_nothing(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "x", navigate=HOME),
        page(HOME, "Kettle $30", evaluate="document.body.append('Kettle $'+15*2)", _shot=b"1"),
        probes={"p": "Kettle $30"},
    )
    assert carries(folder, item(), cited(2, quote="Kettle $30")) == SCRIPTED
    assert carries(folder, item("visual"), cited(2, "screenshot")) == SCRIPTED
    assert carries(folder, item(), cited("final", "probe", "Kettle $30")) == SCRIPTED


def test_a_page_that_is_not_of_the_web_carries_nothing(make_trace):
    url = "data:text/html,Kettle"
    folder = make_trace(make_trace.page(url, "Kettle $30", click="a", _shot=b"1"))
    assert carries(folder, item(), cited(1, quote="Kettle $30")) == NO_PAGE
    assert carries(folder, item("visual"), cited(1, "screenshot")) == NO_PAGE
    assert carries(folder, item(), cited(1, quote=url)) is not None


def test_text_that_the_agent_captured_is_nowhere_unless_the_policy_takes_its_word(make_trace):
    seen = make_trace.page(HOME, "Kettle $30", click="a", _by="agent", _shot=b"1")
    folder = make_trace(seen)
    assert carries(folder, item(), cited(1, quote="Kettle $30")) == "no citation holds"
    assert carries(folder, item("visual"), cited(1, "screenshot")) == "no citation holds"
    told = make_trace(seen, evidence_policy="agent_reported")
    assert carries(told, item(), cited(1, quote="Kettle $30")) is None
    assert carries(told, item("visual"), cited(1, "screenshot")) is None


def test_no_order_and_no_addition_of_citations_takes_credit_away(make_trace):
    folder = make_trace(
        make_trace.page(HOME, "Kettle $30", click="a", _shot=b"1"), answer="It costs $30"
    )
    good = cited(1, quote="Kettle $30")
    others = [
        cited(9, quote="x"),
        cited("final", "answer", "costs $30"),
        cited(1, "screenshot"),
        cited(1, quote="nowhere"),
        cited(1, "call", "click"),
    ]
    rng = random.Random(1)
    for _ in range(20):
        cites = [good, *rng.sample(others, rng.randrange(len(others) + 1))]
        rng.shuffle(cites)
        assert carries(folder, item(values=("$30",)), *cites) is None


def test_a_page_without_line_ends_is_read_fast(make_trace):
    body = "x$30 " * 40_000 + "Kettle $30"
    folder = make_trace(make_trace.page(HOME, body[:200_000], click="a"))
    start = time.thread_time()
    assert carries(folder, item(values=("$31",)), cited(1, quote="x")) is not None
    assert time.thread_time() - start < 5
