"""Rubrics for tests: one that may be released, and any that hypothesis thinks of."""

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from browseruse_bench.records.rubric import (
    AnswerCheck,
    Fact,
    Failure,
    FileCheck,
    Item,
    ProbeCheck,
    Rubric,
    Ruling,
    StateCheck,
    Statement,
    UrlCheck,
    Waiver,
)

PAGE = "a" * 64


def released(**changes: Any) -> dict[str, Any]:
    """A rubric without any shortcoming, as JSON."""
    present = {
        "id": "F1", "claim": "The kettle costs 31.90.", "values": [31.9], "kind": "present",
        "url": "http://shop.test/kettle", "quote": "Kettle, 31.90", "how": "live",
        "checked_on": "2026-08-20", "archived": [PAGE],
    }  # fmt: skip
    absent = {
        "id": "F2", "claim": "No kettle has a warranty of five years.", "kind": "absent",
        "how": "live", "checked_on": "2026-08-20",
        "pages_searched": ["http://shop.test/kettles"], "archived": [PAGE],
    }  # fmt: skip
    return {
        "task_id": "kettle", "task_key": "b" * 64, "canary": "BUB-CANARY-0123456789abcdef",
        "facts": [present, absent],
        "items": [
            {"id": "A1_price", "requirement": "States the price of the kettle.",
             "weight": 60, "facts": ["F1"], "evidence": "page"},
            {"id": "A2_warranty", "requirement": "Says that no kettle has that warranty.",
             "weight": 40, "facts": ["F2"], "evidence": "page"},
        ],
        **changes,
    }  # fmt: skip


text = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
markup = st.sampled_from(
    ["# h", "- a\n\n# b", "1. x", "> q", "```\n# x\n```", "a\n===", "<script>x</script>", "&amp;",
     "[a]: http://b", "![a](b)", "***", "\\", "a_b _c_", "  \n   code", "x\r\n# y\u2028# z", "`", "#"]
)  # fmt: skip
words = text | markup


def _checks(
    words: st.SearchStrategy[str], values: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(AnswerCheck, values=values, match=st.sampled_from(["number", "text", "list"]),
                  seen=st.none() | values),
        st.builds(UrlCheck, host=words, path=st.none() | words,
                  query=st.dictionaries(words, words, max_size=1)),
        st.builds(StateCheck, site=words, sql=words,
                  equals=st.lists(values, max_size=2).map(tuple)),
        st.builds(FileCheck, name=words, contains=words),
        st.builds(ProbeCheck, name=words, equals=st.none() | words),
    )  # fmt: skip


@st.composite
def weights(draw: st.DrawFn) -> list[Fraction]:
    parts = draw(st.lists(st.integers(1, 1000), min_size=1, max_size=4))
    return [Fraction(100 * part, sum(parts)) for part in parts]


@st.composite
def rubrics(draw: st.DrawFn) -> Rubric:
    """Any rubric that loads; its texts come from a small pool, which is fast and collides."""
    pool = st.sampled_from(draw(st.lists(words, min_size=3, max_size=5, unique=True)))
    values = st.lists(pool | st.sampled_from([0, -7, 31.9, 1e300]), min_size=1, max_size=2).map(
        tuple
    )
    names = draw(st.lists(pool, max_size=2, unique=True))
    facts = [
        Fact(
            id=name, claim=draw(pool), values=draw(st.just(()) | values),
            url=draw(st.none() | pool), quote=draw(st.none() | pool),
            kind=draw(st.sampled_from(["present", "absent"])),
            checked_on=draw(st.sampled_from([None, "2026-08-20"])),
            how=draw(st.sampled_from([None, "live", "archive", "traces", "site"])),
            pages_searched=tuple(draw(st.lists(pool, max_size=2))),
            archived=draw(st.sampled_from([None, (PAGE,)])),
        )
        for name in names
    ]  # fmt: skip
    cited = st.sampled_from([(), *((name,) for name in names)])
    shares = draw(weights())
    items = tuple(
        Item(
            id=f"A{n}_{draw(st.sampled_from('xyz'))}", requirement=draw(pool),
            verification=draw(st.none() | pool), weight=share, facts=draw(cited),
            evidence=draw(st.sampled_from(["page", "visual", "deliverable"])),
            check=draw(st.none() | _checks(pool, values)),
        )
        for n, share in enumerate(shares)
    )  # fmt: skip
    statements = st.lists(st.builds(Statement, text=pool, facts=cited), max_size=1).map(tuple)
    rulings = draw(st.lists(pool, max_size=2, unique=True))
    waiver = Waiver(rule="compound", items=("A0_x",), reason="One figure.")
    return Rubric(
        task_id=draw(pool), task_key=draw(st.none() | pool), revision=draw(st.integers(1, 9)),
        canary=draw(st.sampled_from([None, "BUB-CANARY-0123456789abcdef", "other_*_token"])),
        answers=draw(statements), paths=draw(statements), false_claims=draw(statements),
        failures=tuple(
            Failure(text=draw(pool), looks_like=draw(pool)) for _ in range(draw(st.integers(0, 1)))
        ),
        facts=tuple(facts), items=items,
        rulings=tuple(Ruling(id=name, text=draw(pool)) for name in rulings),
        text=draw(st.none() | pool | st.just('{"a": [1]}')),
        success_at=draw(st.sampled_from([None, 65.0])),
        waivers=draw(st.sampled_from([None, (waiver,)])),
    )  # fmt: skip
