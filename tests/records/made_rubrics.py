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


text = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=40)
markup = st.sampled_from(
    ["# h", "- a\n\n# b", "1. x", "> q", "```\n# x\n```", "a\n===", "<script>x</script>", "&amp;",
     "[a]: http://b", "![a](b)", "***", "\\", "a_b _c_", "  \n   code", "x\r\n# y\u2028# z", "`", "#"]
)  # fmt: skip
words = text | markup
ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,8}", fullmatch=True)
values = st.lists(words | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
                  min_size=1, max_size=3).map(tuple)  # fmt: skip


def _checks() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(AnswerCheck, values=values, match=st.sampled_from(["number", "text", "list"]),
                  seen=st.none() | values),
        st.builds(UrlCheck, host=words, path=st.none() | words, query=st.dictionaries(words, words)),
        st.builds(StateCheck, site=words, sql=words,
                  equals=st.lists(values, max_size=2).map(tuple)),
        st.builds(FileCheck, name=words, contains=words),
        st.builds(ProbeCheck, name=words, equals=st.none() | words | st.lists(words, max_size=2)),
    )  # fmt: skip


@st.composite
def weights(draw: st.DrawFn) -> list[Fraction]:
    parts = draw(st.lists(st.integers(1, 1000), min_size=1, max_size=6))
    return [Fraction(100 * part, sum(parts)) for part in parts]


@st.composite
def rubrics(draw: st.DrawFn) -> Rubric:
    """Any rubric that loads."""
    facts = draw(
        st.lists(
            st.builds(
                Fact, id=words, claim=words, values=st.just(()) | values, url=st.none() | words,
                quote=st.none() | words, kind=st.sampled_from(["present", "absent"]),
                checked_on=st.none() | st.just("2026-08-20"),
                how=st.sampled_from([None, "live", "archive", "traces", "site"]),
                pages_searched=st.lists(words, max_size=2).map(tuple),
                archived=st.sampled_from([None, (PAGE,)]),
            ), max_size=3, unique_by=lambda fact: fact.id,
        )
    )  # fmt: skip
    cited = st.lists(st.sampled_from([f.id for f in facts]), max_size=2).map(tuple) if facts else (
        st.just(())
    )  # fmt: skip
    shares = draw(weights())
    names = draw(st.lists(ids, min_size=len(shares), max_size=len(shares), unique=True))
    items = tuple(
        Item(
            id=name, requirement=draw(words), verification=draw(st.none() | words), weight=share,
            facts=draw(cited), evidence=draw(st.sampled_from(["page", "visual", "deliverable"])),
            check=draw(st.none() | _checks()),
        )
        for name, share in zip(names, shares, strict=True)
    )  # fmt: skip
    statements = st.lists(st.builds(Statement, text=words, facts=cited), max_size=2).map(tuple)
    return Rubric(
        task_id=draw(words), task_key=draw(st.none() | words), revision=draw(st.integers(1, 9)),
        canary=draw(st.sampled_from([None, "BUB-CANARY-0123456789abcdef", "other_*_token"])),
        answers=draw(statements), paths=draw(statements), false_claims=draw(statements),
        failures=draw(
            st.lists(st.builds(Failure, text=words, looks_like=words), max_size=2).map(tuple)
        ),
        facts=tuple(facts), items=items,
        rulings=tuple(
            draw(st.lists(st.builds(Ruling, id=words, text=words), max_size=2,
                          unique_by=lambda ruling: ruling.id))
        ),
        text=draw(st.none() | words | st.just('{"a": [1]}')),
        success_at=draw(st.none() | st.just(65.0)),
        waivers=draw(
            st.none() | st.just((Waiver(rule="compound", items=("A1",), reason="One figure."),))
        ),
    )  # fmt: skip
