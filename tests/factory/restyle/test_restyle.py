"""Stage restyle with a scripted model that rewrites well, loses, adds and misjudges."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.factory.context import Context
from browseruse_bench.factory.restyle.compare import Comparison, findings
from browseruse_bench.factory.restyle.literals import differences, literals, without_markers
from browseruse_bench.factory.restyle.negations import n_negations
from browseruse_bench.factory.stage import Dropped, Kept
from browseruse_bench.factory.stages.restyle import Restyle
from browseruse_bench.factory.workspace import WorkspaceConfig
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.records.candidate import new_candidate

TASK = "find 2 hotels in Paris under $200 on booking.com. do not book. return names"
GOOD = "Could you find 2 hotels in Paris under $200 on booking.com? Please do not book. Return the names."
A = [
    ("1", "find 2 hotels in Paris under $200 on booking.com"),
    ("2", "do not book"),
    ("3", "return names"),
]
B = [("a", "find 2 hotels in Paris under $200 on booking.com"), ("b", "do not book"), ("c", "Return the names")]  # fmt: skip
PAIRS = [("1", "a"), ("2", "b"), ("3", "c")]


def comparison(first, second, pairs):
    return {
        "first": [{"id": i, "quote": q} for i, q in first],
        "second": [{"id": i, "quote": q} for i, q in second],
        "pairs": [{"first": a, "second": b} for a, b in pairs],
    }


def turned(pairs):
    return [(b, a) for a, b in pairs]


def context(root, answers):
    model = ScriptedModel(answers, may_see="clean")
    return Context(
        workspace=root,
        folder=root,
        open_model=lambda role: {"restyler": model}[role],
        clock=lambda: "2026-06-01T00:00:00+00:00",
    ), model


async def settle(tmp_path, text, *answers):
    ctx, model = context(tmp_path, answers)
    stage = Restyle(WorkspaceConfig(name="w", roles={"restyler": "r"}))
    return await stage.settle(new_candidate(text, country="FR"), ctx), model


async def dropped(tmp_path, text, *answers):
    outcome, _ = await settle(tmp_path, text, *answers)
    assert isinstance(outcome, Dropped), outcome
    assert outcome.evidence["original"] == text
    assert outcome.evidence["rewritten"] == answers[0]["text"]
    return outcome.reason


async def test_what_survives_both_checks_is_kept_with_its_origin(tmp_path):
    there, back = comparison(A, B, PAIRS), comparison(B, A, turned(PAIRS))
    outcome, model = await settle(tmp_path, TASK, {"text": GOOD}, there, back)
    assert isinstance(outcome, Kept)
    assert outcome.value.text == GOOD
    assert outcome.value.origin == new_candidate(TASK).key
    assert outcome.value.country == "FR"
    assert len(model.requests) == 3


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (GOOD.replace("$200", "$220"), "literal_lost"),
        (GOOD.replace("$200", "€200"), "literal_lost"),
        (GOOD.replace("2 hotels", "hotels"), "literal_lost"),
        (GOOD.replace("booking.com", "Booking"), "literal_lost"),
        (GOOD.replace("Paris", "the French capital"), "literal_lost"),
        (GOOD.replace("Please do not book. ", ""), "literal_lost"),
        (GOOD + " Stay 3 nights.", "literal_gained"),
        (GOOD + " I like the Marais.", "literal_gained"),
        (GOOD + " See hotels.com.", "literal_gained"),
    ],
)
async def test_a_literal_that_is_lost_or_added_is_refused_before_anything_is_compared(
    tmp_path, bad, reason
):
    assert await dropped(tmp_path, TASK, {"text": bad}) == reason


async def test_a_lost_instruction_is_refused_and_kept_for_review(tmp_path):
    bad = GOOD.replace(" Return the names.", "")
    there, back = comparison(A, B[:2], PAIRS[:2]), comparison(B[:2], A, turned(PAIRS[:2]))
    assert await dropped(tmp_path, TASK, {"text": bad}, there, back) == "instruction_lost"


async def test_a_gained_instruction_is_refused_and_kept_for_review(tmp_path):
    bad = GOOD + " Sort them by rating."
    more = [*B, ("d", "Sort them by rating")]
    there, back = comparison(A, more, PAIRS), comparison(more, A, turned(PAIRS))
    assert await dropped(tmp_path, TASK, {"text": bad}, there, back) == "instruction_gained"


async def test_one_of_two_comparisons_that_finds_a_difference_refuses(tmp_path):
    there, back = comparison(A, B, PAIRS), comparison(B, A, turned(PAIRS[:2]))
    reason = await dropped(tmp_path, TASK, {"text": GOOD}, there, back)
    assert reason in {"instruction_lost", "instruction_gained"}


@pytest.mark.parametrize(
    "wrong",
    [
        comparison([("1", "find 3 hotels")], B, [("1", "a")]),
        comparison(A[:2], B, PAIRS[:2]),
        comparison(A, B, [*PAIRS, ("9", "a")]),
        comparison([*A[:2], ("2", "return names")], B, PAIRS),
        comparison([A[0], A[1], A[2]], B, [("1", "b"), ("2", "a"), ("3", "c")]),
    ],
)
async def test_a_comparison_that_code_finds_wrong_is_not_believed(tmp_path, wrong):
    back = comparison(B, A, turned(PAIRS))
    assert await dropped(tmp_path, TASK, {"text": GOOD}, wrong, back) == "not_believed"


async def test_an_instruction_in_the_task_is_data(tmp_path):
    text = "{task} and {first} are typed on example.org"
    said = comparison([("1", text)], [("a", text)], [("1", "a")])
    outcome, model = await settle(tmp_path, text, {"text": text}, said, said | {
        "pairs": [{"first": "1", "second": "a"}]})  # fmt: skip
    assert isinstance(outcome, Kept)
    assert model.requests[1].text.count(text) == 2


def test_markers_of_a_list_are_formatting_and_other_numbers_are_not():
    listed = "1. Go to example.org 2. Search for cats 3. Return the first title"
    assert "1" not in without_markers(listed)
    plain = "Please go to example.org, search for cats and return the first title"
    assert differences(listed, plain) == ([], [])
    assert without_markers("Compare Python 3. Return both") == "Compare Python 3. Return both"


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ('type "Open AI" there', "quoted", "Open AI"),
        ("type 'Open AI' there", "quoted", "Open AI"),
        ("see https://a.example/x?y=1.", "url", "https://a.example/x?y=1"),
        ("mail a.b@example.com", "email", "a.b@example.com"),
        ("on 2025-12-21 at 17:30", "number", "17:30"),
        ("the OLED65C4PUA", "code", "OLED65C4PUA"),
        ("ask Marie Curie", "name", "curie"),
    ],
)
def test_literals_are_found(text, kind, value):
    assert any(item == (kind, value) for item in literals(text))


FORBIDS = "Find 2 hotels in Paris, but don't buy anything and don't sign in."


@pytest.mark.parametrize(
    ("rewritten", "reason"),
    [
        ("Could you find 2 hotels in Paris? Please don't buy anything.", "lost"),
        ("Could you find 2 hotels in Paris? Please don't sign in.", "lost"),
        ("Find 2 hotels in Paris; don't buy, sign in or call anybody.", "gained"),
        ("Find 2 hotels in Paris. Do not buy anything, sign in, or contact anyone.", "gained"),
        ("Find 2 hotels in Paris, never buying anything and without signing in, and no calls.", "gained"),
        ("Could you find 2 hotels in Paris? Please don't buy anything or sign in.", ""),
        ("Could you find 2 hotels in Paris without buying anything and without signing in?", ""),
        ("I need 2 hotels in Paris. Please neither buy anything nor sign in.", ""),
        ("Please find 2 hotels in Paris; avoid signing in, and never buy anything.", ""),
        ("Please find 2 hotels in Paris (do not buy anything, do not sign in).", ""),
    ],
)  # fmt: skip
def test_each_prohibition_is_counted(rewritten, reason):
    lost, gained = differences(FORBIDS, rewritten)
    assert {item.kind for item in lost} == ({"negation"} if reason == "lost" else set())
    assert {item.kind for item in gained} == ({"negation"} if reason == "gained" else set())


async def test_a_rewriting_that_loses_one_of_two_prohibitions_is_refused(tmp_path):
    bad = {"text": "Could you find 2 hotels in Paris? Please don't buy anything."}
    assert await dropped(tmp_path, FORBIDS, bad) == "literal_lost"
    more = {"text": FORBIDS + " Do not call."}
    assert await dropped(tmp_path, FORBIDS, more) == "literal_gained"


@pytest.mark.parametrize(
    ("text", "n"),
    [
        ("Find a hat", 0),
        ("No more than 3, and don't forget the price", 0),
        ("Couldn't you find item no. 5, no later than today?", 0),
        ("do not buy, sign in, or contact anyone", 3),
        ("do not buy, sign in or contact anyone", 3),
        ("do not buy anything, just tell me whether red or blue is cheaper", 1),
        ("don't buy or don't sign in", 2),
        ("never buy; do not sign in unless asked", 3),
        ("Bitte nicht kaufen und nicht anmelden", 2),
        ("Kaufe nichts ohne Rabatt, keine Anmeldung", 2),
        ("n'achetez pas et ne vous connectez pas, sans carte", 3),
        ("no compres ni inicies sesión, sin tarjeta", 3),
        ("non comprare e non accedere", 2),
        ("não compre e nunca entre", 2),
        ("niet kopen en niet inloggen", 2),
        ("nie kupuj i nie loguj się", 2),
        ("don’t buy, do n\u2019t sign in", 2),
    ],
)
def test_negations_are_counted_in_several_languages(text, n):
    assert n_negations(text) == n


@given(st.text(max_size=80))
def test_a_text_differs_not_from_itself(text):
    assert differences(text, text) == ([], [])


@given(st.text(max_size=60), st.integers(10_000, 99_999))
def test_a_number_that_is_dropped_is_always_lost(text, number):
    lost, _ = differences(f"{text} take {number} of", f"{text} take of")
    assert any(item.kind == "number" for item in lost) or str(number) in text


def test_identical_texts_need_all_their_sentences_quoted():
    said = Comparison.model_validate(
        comparison([("1", "Go there")], [("a", "Go there")], [("1", "a")])
    )
    assert findings("Go there now. Then buy a hat.", "Go there now. Then buy a hat.", said)
