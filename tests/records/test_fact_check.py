from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.records.fact_check import CONCLUSIVE, FactCheck, fact_key, standing
from browseruse_bench.records.rubric import Fact

FACT = Fact(
    id="F1", claim="It costs 31.90.", quote="31.90", url="http://a.test/", checked_on="2026-08-20"
)


def check(day, outcome, fact=FACT):
    return FactCheck(
        task_id="t",
        fact=fact.id,
        fact_key=fact_key(fact),
        at=f"2026-09-{day:02}T10:00:00Z",
        outcome=outcome,
    )


def test_a_fact_rots_on_the_first_day_that_it_no_longer_holds_and_may_come_back():
    checks = [check(1, "confirmed"), check(2, "changed"), check(3, "gone")]
    rotted = standing(FACT, checks)
    assert (rotted.state, rotted.since, rotted.confirmed) == ("rotted", "2026-09-02", "2026-09-01")
    back = standing(FACT, [*checks, check(4, "confirmed")])
    assert (back.state, back.since) == ("holds", "2026-09-04")
    again = standing(FACT, [*checks, check(4, "confirmed"), check(5, "changed")])
    assert (again.state, again.since) == ("rotted", "2026-09-05")


def test_a_fact_without_checks_stands_as_it_was_written():
    known = standing(FACT, [])
    assert (known.state, known.since, known.check) == ("as written", "2026-08-20", None)


def test_a_fact_that_is_written_anew_begins_anew():
    new = FACT.model_copy(update={"quote": "32.90"})
    assert standing(new, [check(1, "changed")]).state == "as written"
    other_words = FACT.model_copy(update={"claim": "Its price is 31.90."})
    assert standing(other_words, [check(1, "changed")]).state == "rotted"


outcomes = st.sampled_from(
    [
        "confirmed",
        "changed",
        "gone",
        "login",
        "blocked",
        "unreachable",
        "unfinished",
        "unseen",
        "unquoted",
    ]
)


@given(st.lists(outcomes, max_size=12))
def test_what_settles_nothing_changes_nothing(found):
    checks = [check(day, outcome) for day, outcome in enumerate(found, 1)]
    known = standing(FACT, checks)
    telling = standing(FACT, [c for c in checks if c.outcome in CONCLUSIVE])
    assert (known.state, known.since, known.confirmed) == (
        telling.state,
        telling.since,
        telling.confirmed,
    )
    assert (known.unsettled is not None) == bool(found and found[-1] not in CONCLUSIVE)
