"""Evidence for a judge is a pure function of trace, rubric and budget; nothing goes in silence."""

from __future__ import annotations

import random
import re
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.eval.corroboration import Evidence
from browseruse_bench.eval.fencing import fence_of
from browseruse_bench.eval.matcher import Read
from browseruse_bench.eval.material import take_apart
from browseruse_bench.eval.prepare import (
    Budget,
    Needs,
    assemble,
    clipped,
    cut,
    fair_cap,
    select,
    spread,
    stretches,
)
from browseruse_bench.models.base import Image
from browseruse_bench.records.rubric import Fact, Item, Rubric
from browseruse_bench.store.trace_folder import TraceFolder

HOME = "http://shop.test/"
BUDGET = Budget()


def rubric(*values, evidence="page", url=None):
    fact = Fact(id="F1", claim="It is so.", values=values, url=url)
    item = Item(id="A1", requirement="Says so", facts=("F1",), weight=100, evidence=evidence)
    return Rubric(task_id="t", facts=(fact,), items=(item,))


def prepared(folder, made=None, budget=BUDGET, **changes):
    made = made or rubric("42")
    budget = replace(budget, **changes)
    evidence = Evidence(folder)
    material = take_apart(evidence)
    choice = select(evidence, material, made, budget)
    shown = assemble(material, choice, fence_of(folder.key))
    return shown, clipped(material, choice, made.items)


def text_of(shown):
    return "\n".join(part for part in shown.parts if isinstance(part, str))


def shots_of(shown):
    return [part for part in shown.parts if isinstance(part, Image)]


def noise(n, seed=0):
    rng = random.Random(seed)
    return "\n".join(f"row {rng.randrange(10**6)} of noise" for _ in range(n))


# Purity


def test_equal_input_gives_equal_bytes(make_trace):
    page = make_trace.page
    folder = make_trace(
        *(page(f"{HOME}{n}", noise(300, n), click="a", _shot=b"%d" % n) for n in range(30)),
        answer="x" * 5000,
    )
    small = {"page_chars": 20_000, "images": 7, "call_chars": 500}
    one, _ = prepared(folder, **small)
    other, _ = prepared(TraceFolder.open(folder.path, folder.key), **small)
    assert one == other
    assert one.left_out


def test_without_pressure_everything_is_shown_once_in_order(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "Welcome", navigate=HOME, _shot=b"1", _title="Shop"),
        page(HOME + "a", "Kettle $30", click={"css": "#k"}, _shot=b"2"),
        answer="It is $30",
        files={"notes.txt": b"saved"},
        states={"shop.test": "create table t(x); insert into t values ('row')"},
        probes={"score": 1},
        downloads={"a.csv": b"down,load"},
    )
    shown, why = prepared(folder)
    text = text_of(shown)
    order = ["## Step 1", "title: | Shop", "| Welcome", "## Step 2", 'click {"css": "#k"}',
             "| Kettle $30", "## The state at the end", '| ["row"]', "probe", "| It is $30",
             "| saved", "| down,load"]  # fmt: skip
    places = [text.index(one) for one in order]
    assert places == sorted(places)
    assert all(text.count(one) == 1 for one in order)
    assert len(shots_of(shown)) == 2
    assert shown.left_out == ()
    assert why == ""


def test_two_rubrics_share_what_is_shown_as_long_as_nothing_must_go(make_trace):
    folder = make_trace(make_trace.page(HOME, "Kettle $30", _shot=b"1"), answer="x")
    assert prepared(folder, rubric("30"))[0] == prepared(folder, rubric("blue"))[0]


# Pictures


def test_only_pictures_that_follow_each_other_are_merged(make_trace):
    page = make_trace.page
    shots = [b"A", b"A", b"B", b"A"]
    folder = make_trace(
        *(page(f"{HOME}{n}", f"page {n}", click="a", _shot=s) for n, s in enumerate(shots)),
        final=page(HOME, "end", _shot=b"C"),
    )
    shown, _ = prepared(folder)
    assert len(shots_of(shown)) == 4
    assert {step for step, _ in shown.shown} == {1, 2, 3, 4, "final"}
    assert "of step 1; nothing changed in it at step 2" in text_of(shown)


def test_first_and_last_are_kept_then_needed_ones_then_evenly_spread(make_trace):
    page = make_trace.page
    folder = make_trace(
        *(
            page(f"{HOME}{n}", f"the price is {42 if n == 7 else n + 100}", click="a",
                 _shot=b"%d" % n)
            for n in range(41)
        ),
        final=page(HOME, "end", _shot=b"end"),
    )  # fmt: skip
    shown, why = prepared(folder, images=6)
    steps = sorted(n for n, _ in shown.shown if n != "final")
    assert steps[0] == 1
    assert "final" in {n for n, _ in shown.shown}
    assert len(shots_of(shown)) == 6
    assert 8 in steps
    gaps = [b - a for a, b in zip([*steps, 42][:-1], [*steps, 42][1:], strict=True)]
    assert max(gaps) <= 20
    assert "pictures of steps" in " ".join(shown.left_out)
    assert why == ""  # no item of this rubric stands on pictures alone
    assert prepared(folder, rubric("42", evidence="visual"), images=6)[1] != ""


def test_bytes_of_pictures_are_a_budget_of_their_own(make_trace):
    page = make_trace.page
    folder = make_trace(
        *(page(f"{HOME}{n}", "x", click="a", _shot=b"%d" % n + b"." * 1000) for n in range(9)),
        final=page(HOME, "end", _shot=b"end"),
    )
    shown, _ = prepared(folder, image_bytes=3500)
    assert len(shots_of(shown)) == 4
    assert {1, "final"} <= {step for step, _ in shown.shown}


def test_pictures_that_the_agent_took_are_not_evidence(make_trace):
    folder = make_trace(
        make_trace.page(HOME, "x", _shot=b"1", _by="agent"), final=make_trace.page(HOME, "y")
    )
    assert shots_of(prepared(folder)[0]) == []


@given(st.integers(1, 60), st.data())
def test_kept_places_are_first_last_needed_and_then_spread(n, data):
    needed = data.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=5))
    most = data.draw(st.integers(1, n))
    order = spread(n, needed, most=most)
    assert len(order) == len(set(order)) == most
    assert order[0] == n - 1
    assert most < 2 or 0 in order
    free = most - len({0, n - 1})
    wanted = set(needed) - {0, n - 1}
    assert len(wanted & set(order)) == min(len(wanted), max(free, 0))


@given(st.integers(1, 80), st.data())
def test_each_further_place_is_the_farthest_from_what_is_kept_and_the_earliest_of_those(n, data):
    needed = data.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=5))
    order = spread(n, needed, most=n)
    assert sorted(order) == list(range(n))
    kept = list(dict.fromkeys([n - 1, 0, *order[: len({0, n - 1, *needed})]]))
    for place in order[len(kept) :]:
        away = {i: min(abs(i - k) for k in kept) for i in range(n) if i not in kept}
        assert place == max(away, key=lambda i: (away[i], -i))
        kept.append(place)


def test_a_hundred_thousand_places_are_put_in_order_at_once():
    began = time.process_time()
    assert len(spread(100_000, (), most=100_000)) == 100_000
    assert time.process_time() - began < 5


# Text


@given(st.lists(st.integers(0, 1000), max_size=20), st.integers(0, 5000))
def test_the_longest_texts_are_cut_first_and_all_of_them_fit(lengths, budget):
    cap = fair_cap(lengths, budget)
    assert sum(min(length, cap) for length in lengths) <= budget
    if sum(lengths) > budget and lengths:
        assert sum(min(length, cap + 1) for length in lengths) > budget


@given(st.text("ab 9.\n", max_size=400), st.integers(1, 80))
def test_stretches_put_together_are_the_text(text, size):
    ranges = stretches(text, size)
    assert "".join(text[a:b] for a, b in ranges) == text
    assert all(0 < b - a <= size for a, b in ranges)


def test_a_long_text_is_cut_in_the_middle_and_marked(make_trace):
    body = "\n".join(["the very beginning", noise(4000), "the very end"])
    page = make_trace.page
    folder = make_trace(page(HOME, body), final=page(HOME, "over"))
    shown, why = prepared(folder, page_chars=10_000)
    text = text_of(shown)
    assert "| the very beginning" in text
    assert "| the very end" in text
    [mark] = re.findall(r"^\[([\d,]+) characters are left out here\]$", text, re.MULTILINE)
    gone = int(mark.replace(",", ""))
    assert len(body) - gone <= 10_000
    assert f"1.page (page): {mark} of {len(body):,} characters" in shown.left_out
    assert why == "more text than is shown at a time (page)"


def test_no_number_is_cut_in_two(make_trace):
    body = " ".join(str(10**9 + 7919 * n) for n in range(3000))
    page = make_trace.page
    shown, _ = prepared(make_trace(page(HOME, body), final=page(HOME, "x")), page_chars=5000)
    numbers = re.findall(r"\d+", "".join(re.findall(r"^\| (1\d.*)$", text_of(shown), re.MULTILINE)))
    assert len(numbers) > 300
    assert {len(number) for number in numbers} == {10}


def test_what_surrounds_a_value_of_the_rubric_stays(make_trace):
    rows = noise(6000).split("\n")
    rows[3456] = "Kettle XL: $1,299.00 in stock"
    page = make_trace.page
    folder = make_trace(page(HOME, "\n".join(rows), click="a"), final=page(HOME, "end"))
    shown, _ = prepared(folder, rubric(1299), page_chars=4000)
    assert "| Kettle XL: $1,299.00 in stock" in text_of(shown)
    assert "Kettle XL" not in text_of(prepared(folder, rubric("teapot"), page_chars=4000)[0])


def test_the_last_page_comes_before_all_others(make_trace):
    page = make_trace.page
    folder = make_trace(
        *(page(f"{HOME}{n}", noise(800, n), click="a") for n in range(12)),
        final=page(HOME, noise(100, 99)),
    )
    shown, _ = prepared(folder, page_chars=20_000)
    last = noise(100, 99).replace("\n", "\n| ")
    assert last in text_of(shown)
    assert not any(line.startswith("final") for line in shown.left_out)


def test_the_same_text_is_shown_once_as_long_as_it_stays(make_trace):
    page = make_trace.page
    texts = ["one page", "one page", "another", "one page"]
    folder = make_trace(
        *(page(HOME, t, click="a") for t in texts), final=page(HOME, "end"), answer="a"
    )
    text = text_of(prepared(folder)[0])
    assert text.count("| one page") == 2
    assert text.count("the same as at step 1") == 1


def test_what_the_agent_said_is_cut_and_needs_no_division(make_trace):
    page, call = make_trace.page, make_trace.call
    long = call("extract", {"query": "q"}, result="start " + "blah " * 5000 + " stop")
    folder = make_trace(page(HOME, "x", long), answer="a")
    shown, why = prepared(folder, call_chars=2000)
    text = text_of(shown)
    assert "start" in text
    assert "stop" in text
    assert len(text) < 4000
    assert "the middle of 1 calls, results or thoughts" in shown.left_out
    assert why == ""


def test_a_long_answer_is_evidence_that_must_not_be_cut_in_silence(make_trace):
    folder = make_trace(make_trace.page(HOME, "x"), answer="word " * 20_000)
    shown, why = prepared(folder)
    assert why == "more text than is shown at a time (answer)"
    assert any(line.startswith("answer (answer)") for line in shown.left_out)


def test_a_flood_of_steps_is_bounded_and_listed(make_trace):
    page = make_trace.page
    folder = make_trace(
        *(page(f"{HOME}{n}", "42" if n == 333 else "x", click=f"a{n}") for n in range(400)),
        final=page(HOME, "end"),
    )
    shown, why = prepared(folder, steps=50)
    text = text_of(shown)
    assert text.count("## Step") == 49
    assert "## Step 1\n" in text
    assert "## Step 334\n" in text
    assert "## The state at the end" in text
    assert any(line.startswith("calls of steps") for line in shown.left_out)
    assert why == "more steps than are shown at a time"


def test_a_page_that_proves_nothing_says_so(make_trace):
    page = make_trace.page
    folder = make_trace(
        page(HOME, "x", navigate=HOME),
        page(HOME, "written by a script", evaluate="document.write(1)"),
        page("data:text/html,y", "of no web page", navigate="data:text/html,y"),
    )
    text = text_of(prepared(folder)[0])
    assert "it proves nothing: a script of the agent had run in the page:\n| written by" in text
    assert "it proves nothing: the text is not of a web page" in text


def test_a_recorded_page_that_was_longer_says_so(make_trace):
    page = make_trace.page
    folder = make_trace(page(HOME, "x"), final=page(HOME, "y"))
    step = folder.steps[0]
    longer = step.observations[0].model_copy(update={"n_chars": 412_000})
    changed = replace(folder, steps=(step.model_copy(update={"observations": (longer,)}),))
    assert "recorded 1 of 412,000 characters" in text_of(prepared(changed)[0])


def test_binary_files_are_named_and_not_shown(make_trace):
    folder = make_trace(
        make_trace.page(HOME, "x"), files={"a.bin": b"\x00\x01PNG", "b.txt": "ü".encode()}
    )
    text = text_of(prepared(folder)[0])
    assert "4 bytes, not a text" in text.replace("5 bytes", "4 bytes")
    assert "name: | a.bin" in text
    assert "| ü" in text


def test_a_damaged_snapshot_is_listed_and_the_rest_is_shown(make_trace):
    folder = make_trace(make_trace.page(HOME, "here"), states={"shop.test": b"no database"})
    shown, _ = prepared(folder)
    assert "| here" in text_of(shown)
    assert any("snapshot" in line for line in shown.left_out)


@pytest.mark.parametrize("limit", [50, 500, 5000, 50_000])
def test_a_cut_text_has_at_most_its_share(make_trace, limit):
    body = noise(2000)
    folder = make_trace(make_trace.page(HOME, body))
    evidence = Evidence(folder)
    [section, *_] = take_apart(evidence).of("page")
    ranges = cut(section, limit, Needs(evidence, rubric(*Read(body).text.split()[1:60:4])))
    assert sum(end - start for start, end in ranges) <= max(limit, 0)
    assert ranges == tuple(sorted(ranges))
    assert all(a[1] < b[0] for a, b in zip(ranges, ranges[1:], strict=False))
