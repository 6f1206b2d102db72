import json
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from browseruse_bench.measure.scoring import score
from browseruse_bench.records.judgement import Finding, Judgement
from browseruse_bench.records.rubric import Fact, Item, Rubric, release_problems, shortcomings
from tests.records.made_rubrics import PAGE, released, rubrics, weights


def judged(met):
    return Judgement(
        basis="findings", protocol="test", task_id="t", attempt=1, task_key="k", trace_key="t",
        judge_key="j", at="2026-08-20T00:00:00Z", status="graded",
        findings=tuple(
            Finding(item=item, claim="", status="met" if is_met else "violated")
            for item, is_met in met.items()
        ),
    )  # fmt: skip


def points(rubric, met):
    return score(judged(met), rubric, success_at=100)


@settings(max_examples=40)
@given(rubrics())
def test_a_round_trip_through_json_is_exact(rubric):
    again = Rubric.model_validate(json.loads(json.dumps(rubric.as_json())))
    assert again == rubric
    assert [item.weight for item in again.items] == [item.weight for item in rubric.items]
    assert again.key == rubric.key


@given(weights(), st.data())
def test_points_are_exact_monotone_and_the_same_in_any_order(shares, data):
    items = [
        Item(id=f"A{n}", requirement="So.", weight=share) for n, share in enumerate(shares)
    ]  # fmt: skip
    rubric = Rubric(task_id="t", items=tuple(items))
    met = {item.id: data.draw(st.booleans()) for item in items}
    got = points(rubric, met)
    assert got.points == float(sum((i.weight for i in items if met[i.id]), Fraction(0)))
    for item in items:
        assert points(rubric, {**met, item.id: True}).points >= got.points
    shuffled = rubric.model_copy(update={"items": tuple(data.draw(st.permutations(items)))})
    assert points(shuffled, met).points == got.points
    assert points(rubric, dict.fromkeys(met, True)).points == 100


def test_thirds_make_a_hundred():
    items = [{"id": f"A{n}", "requirement": "So.", "weight": "100/3"} for n in range(3)]
    rubric = Rubric.model_validate({"task_id": "t", "items": items})
    assert points(rubric, {"A0": True, "A1": True, "A2": True}).success


@pytest.mark.parametrize("weight", [True, False, "40", 0, -5, float("nan"), float("inf"), None])
def test_what_is_no_weight_is_refused(weight):
    with pytest.raises(ValidationError):
        Item(id="A1", requirement="So.", weight=weight)


def test_a_weight_that_only_looks_like_a_hundred_is_refused_with_its_exact_sum():
    items = [
        {"id": "A1", "requirement": "So.", "weight": 50},
        {"id": "A2", "requirement": "So.", "weight": "49999999999/1000000000"},
    ]
    with pytest.raises(ValidationError, match="sum to 99999999999/1000000000, not to exactly 100"):
        Rubric.model_validate({"task_id": "t", "items": items})


def test_a_rubric_names_the_points_from_which_its_task_is_done():
    items = [{"id": "A1", "requirement": "So.", "weight": 65},
             {"id": "A2", "requirement": "So.", "weight": 35}]  # fmt: skip
    for bar, success in ((65, True), (66, False), (None, False)):
        rubric = Rubric.model_validate({"task_id": "t", "items": items, "success_at": bar})
        assert points(rubric, {"A1": True, "A2": False}).success is success


def test_a_waiver_changes_no_key_and_everything_else_does():
    plain = Rubric.model_validate(released())
    waiver = {"rule": "compound", "items": ["A1_price"], "reason": "A price has a currency."}
    assert Rubric.model_validate(released(waivers=[waiver])).key == plain.key
    for change in ({"revision": 2}, {"canary": "BUB-CANARY-0123456789abcde0"}, {"success_at": 50}):
        assert Rubric.model_validate(released(**change)).key != plain.key


def test_a_rubric_that_may_be_released_has_no_shortcoming():
    assert release_problems(Rubric.model_validate(released())) == []


def fact(kind="present", **changes):
    made = next(f for f in released()["facts"] if f["kind"] == kind)
    given = {**made, **changes}
    other = [f for f in released()["facts"] if f["kind"] != kind]
    return {"facts": [{k: v for k, v in given.items() if v is not None}, *other]}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"canary": None}, "canary: missing"),
        ({"canary": "another-token"}, "canary: is not BUB-CANARY-"),
        ({"task_key": None}, "task_key: missing"),
        ({"task_key": "short"}, "task_key: is not a SHA-256"),
        ({"text": "All of it."}, "text: free text is neither dated nor located"),
        (fact(checked_on=None), "facts.F1.checked_on: missing"),
        (fact(checked_on="2026-02-30"), "facts.F1.checked_on: 2026-02-30 is no day"),
        (fact(how=None), "facts.F1.how: missing"),
        (fact(quote=None), "facts.F1.quote: missing"),
        (fact(quote="  "), "facts.F1.quote: missing"),
        (fact(url=None), "facts.F1.url: missing"),
        (fact(archived=None), "facts.F1.archived: missing"),
        (fact("absent", pages_searched=[]), "facts.F2.pages_searched: missing"),
        (fact("absent", archived=None), "facts.F2.archived: missing"),
        (fact("absent", pages_searched=["http://a", "http://b"]),
         "facts.F2.archived: 1 pages are archived, but 2 were searched"),
        (fact("absent", claim="It is proven that no kettle lasts."),
         "facts.F2.claim: says 'proven', but that something is absent is only unfalsified as of"),
    ],
)  # fmt: skip
def test_each_shortcoming_is_named_with_its_place(changes, line):
    rubric = Rubric.model_validate(released(**changes))
    found = release_problems(rubric)
    assert len(found) == 1, found
    assert found[0].startswith(line)


def test_a_fraction_is_no_weight_of_a_release():
    first, second = released()["items"]
    halves = [{**first, "weight": "121/2"}, {**second, "weight": "79/2"}]
    assert release_problems(Rubric.model_validate(released(items=halves))) == [
        "items.A1_price.weight: 121/2 is not an integer",
        "items.A2_warranty.weight: 79/2 is not an integer",
    ]


def test_all_shortcomings_are_named_at_once():
    bare = {"task_id": "t", "facts": [{"id": "F1", "claim": "So."}],
            "items": [{"id": "A1", "requirement": "So.", "weight": 100, "facts": ["F1"]}]}  # fmt: skip
    places = [s.line.partition(":")[0] for s in shortcomings(Rubric.model_validate(bare))]
    assert places == [
        "canary", "task_key", "facts.F1.checked_on", "facts.F1.how", "facts.F1.quote",
        "facts.F1.url", "facts.F1.archived",
    ]  # fmt: skip


def test_a_fact_of_a_site_that_comes_along_needs_no_archive():
    assert (
        release_problems(Rubric.model_validate(released(**fact(how="site", archived=None)))) == []
    )


def test_an_absent_fact_is_unfalsified_and_never_seen():
    absent = Fact(id="F", claim="None.", kind="absent", checked_on="2026-08-20")
    assert absent.standing == "unfalsified as of 2026-08-20"
    assert Fact(id="F", claim="One.", checked_on="2026-08-20").standing == "seen on 2026-08-20"
    assert Fact(id="F", claim="None.", kind="absent").standing == "unfalsified, undated"


@pytest.mark.parametrize(
    ("canary", "sound"), [("token-of-a-publisher", True), ("short", False), ("two words 1", False)]
)
def test_a_publishers_canary_loads_if_it_is_one_long_token(canary, sound):
    if sound:
        assert Rubric.model_validate(released(canary=canary)).canary == canary
    else:
        with pytest.raises(ValidationError):
            Rubric.model_validate(released(canary=canary))


def test_a_new_optional_field_leaves_the_key_of_an_older_rubric_as_it_was():
    # Computed before `verification`, `archived`, `success_at` and `waivers` were there.
    made = released(
        facts=[{"id": "F1", "claim": "So.", "quote": "So."}],
        items=[{"id": "A1", "requirement": "So.", "weight": 100, "facts": ["F1"]}],
    )
    assert Rubric.model_validate(made).key == (
        "cf81b8b6ceb0233dcf2b986e30cf9b647f4830c971d686f2afd61fb91808b7e8"
    )
    assert "archived" not in made["facts"][0]
    assert PAGE not in Rubric.model_validate(made).as_line()
