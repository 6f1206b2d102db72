"""The texts are our own; the form is the published one: ids at line starts, rulings in capitals."""

import base64
import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.benchmarks.publishers.bu_bench import parts, rubric
from browseruse_bench.benchmarks.publishers.sealed import read_sealed, unseal
from browseruse_bench.errors import ConfigError, DataError
from browseruse_bench.eval.findings.prompts import rubric_text
from tests.benchmarks.publishers import oracle

TEXT = """Checked on the live site on 2026-08-20 unless a line says traces only.

FACTS:
- The kettle costs 31.90 (live).
- Two of nine runs saw 29.90 (traces only).

SALE PRICE: the price with the voucher does not count.
It is shown after signing in only.

Items

A1_price: The answer states the price of the kettle.
  A currency is not needed.

A2_stock — The answer says that it is in stock.
- "available" is enough
A10_conduct The run opened the page itself.

NOT A FAILURE: an opened banner.
"""
WEIGHTS = {"A1_price": 50, "A2_stock": 30, "A10_conduct": 20}


def row(text=TEXT, weights=WEIGHTS, **changes):
    return {"id": "bu2-001", "title": "Kettle", "task": "T.", "canary": "canary-0123456789",
            "rubric": text, "weights": weights, **changes}  # fmt: skip


def test_items_rulings_and_prose_are_told_apart():
    made = rubric(row())
    assert [(i.id, i.weight) for i in made.items] == list(WEIGHTS.items())
    assert [i.requirement for i in made.items] == [
        "The answer states the price of the kettle.\n  A currency is not needed.",
        'The answer says that it is in stock.\n- "available" is enough',
        "The run opened the page itself.",
    ]
    assert [(r.id, r.text.partition("\n")[0]) for r in made.rulings] == [
        ("FACTS", "- The kettle costs 31.90 (live)."),
        ("SALE PRICE", "the price with the voucher does not count."),
        ("NOT A FAILURE", "an opened banner."),
    ]
    assert made.text == TEXT
    assert (made.task_id, made.canary) == ("bu2-001", "canary-0123456789")


def judged(made):
    return rubric_text(made, made.items, ())


def test_the_judge_gets_the_whole_text_and_no_weight():
    seen = judged(rubric(row()))
    assert TEXT in seen
    assert "canary-0123456789" not in judged(rubric(row(text=f"{TEXT}\ncanary-0123456789\n")))
    assert "canary-0123456789" not in seen
    assert "(50" not in seen


lines = st.lists(
    st.sampled_from(
        ["A1_price: so", "**A2_stock** so", "A10_conduct", "A1_prices are up", "RULE ONE: so",
         "RULE:", "# Head", "text", "  indented", "- point", "", "a1_price: so", "---", "\u2028",
         "XA1_price: so", "NOTE A1_price: so"]
    ) | st.text(max_size=8), max_size=12,
).map("\n".join)  # fmt: skip


@given(lines)
def test_the_parts_of_a_text_are_the_text(text):
    assert "".join(part.raw for part in parts(text, frozenset(WEIGHTS))) == text


@pytest.mark.parametrize(
    "line",
    ["A1_price: So.", "A1_price So.", "A1_price. So.", "A1_price - So.", "A1_price — So.",
     "- A1_price: So.", "**A1_price**: So.", "**A1_price:** So.", "### A1_price\nSo.",
     "A1_price\n\n  So.", "2. A1_price: So.", "`A1_price` So.", "A1_price (the price): So."],
)  # fmt: skip
def test_an_item_line_begins_with_its_id_in_any_dress(line):
    made = rubric(row(text=line, weights={"A1_price": 100}))
    assert made.items[0].requirement.strip("*").strip().endswith("So.")


@pytest.mark.parametrize(
    "line", ["A1_prices: So.", "See A1_price: So.", "a1_price: So.", "A1_price_now: So."]
)
def test_a_line_that_only_looks_like_it_is_no_item_line(line):
    with pytest.raises(DataError, match="no line begins with 'A1_price'"):
        rubric(row(text=line, weights={"A1_price": 100}))


def test_what_stands_under_two_lines_of_one_id_is_put_together():
    made = rubric(row(text="A1_price: So.\n\nA1_price: And so.", weights={"A1_price": 100}))
    assert made.items[0].requirement == "So.\nAnd so."


def test_rulings_of_one_name_get_ids_of_their_own():
    text = "A1: So.\nNOTE: One.\nNOTE: Two."
    assert [r.id for r in rubric(row(text=text, weights={"A1": 100})).rulings] == ["NOTE", "NOTE 2"]


def test_weights_and_item_lines_must_name_the_same_items():
    weights = {"A1_price": 50, "A3_gone": 50}
    with pytest.raises(DataError) as caught:
        rubric(row(weights=weights))
    assert caught.value.problems == (
        "rubric: no line begins with 'A3_gone', which has a weight",
        "weights: 'A2_stock' begins a line of the rubric and has no weight",
        "weights: 'A10_conduct' begins a line of the rubric and has no weight",
    )


@pytest.mark.parametrize(
    "weights",
    [{"A1_price": 50, "A2_stock": 30, "A10_conduct": 19},
     {"A1_price": True, "A2_stock": 79, "A10_conduct": 20},
     {"A1_price": 120, "A2_stock": -40, "A10_conduct": 20},
     {"A1_price": 50.0, "A2_stock": 30, "A10_conduct": 20}, {}],
)  # fmt: skip
def test_weights_that_are_no_weights_are_refused(weights):
    with pytest.raises(DataError):
        rubric(row(weights=weights))


def test_an_item_that_says_nothing_is_refused():
    with pytest.raises(DataError, match="'A1' says nothing"):
        rubric(row(text="A1:\nA2: So.", weights={"A1": 50, "A2": 50}))


def test_a_ground_truth_of_the_first_version_is_one_item():
    made = rubric({"task_id": "x", "confirmed_task": "T.", "answer": "Six."})
    assert [(i.weight, "Six." in i.requirement) for i in made.items] == [(100, True)]
    assert made.text == "Six."
    assert rubric({"task_id": "x", "confirmed_task": "T."}) is None


def sealed(value, name="Set"):
    from cryptography.fernet import Fernet

    key = base64.urlsafe_b64encode(hashlib.sha256(name.encode()).digest())
    return base64.b64encode(Fernet(key).encrypt(json.dumps(value).encode()))


def test_a_sealed_file_opens_under_its_name_only(tmp_path):
    path = tmp_path / "Set.enc"
    path.write_bytes(sealed([row()]) + b"\n")
    assert rubric(read_sealed(path)[0]).text == TEXT
    with pytest.raises(DataError, match="cannot be opened under the name 'Other'") as caught:
        read_sealed(path, "Other")
    assert "kettle" not in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["Set.enc"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"\xff\xfe", "not base64"), (b"{}", "not base64"), (base64.b64encode(b"x"), "cannot be op")],
)
def test_what_is_not_sealed_is_refused(data, problem):
    with pytest.raises(DataError, match=problem):
        unseal(data, "Set")


def test_a_sealed_file_that_holds_no_json_is_refused_without_its_content():
    from cryptography.fernet import Fernet

    key = base64.urlsafe_b64encode(hashlib.sha256(b"Set").digest())
    with pytest.raises(DataError, match="is not JSON") as caught:
        unseal(base64.b64encode(Fernet(key).encrypt(b"plain words")), "Set")
    assert "words" not in str(caught.value)


def test_without_cryptography_the_message_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cryptography.fernet", None)
    with pytest.raises(ConfigError, match="pip install cryptography"):
        unseal(b"", "Set")


@oracle.needed
@pytest.mark.oracle
@pytest.mark.parametrize(
    ("name", "n_rows", "n_rubrics"), [("BU_Bench_V1", 100, 40), ("Stealth_Bench_V1", 80, 80)]
)
def test_the_published_encrypted_sets_open_and_nothing_is_lost(name, n_rows, n_rubrics):
    # Nothing of a row may reach an assertion's message: only counts and truth values.
    rows = read_sealed(oracle.PUBLIC / "bu-benchmark" / "tasks" / f"{name}.enc")
    made = [rubric(row) for row in rows]
    counts = (len(made), sum(r is not None for r in made))
    assert counts == (n_rows, n_rubrics)
    kept = all(
        r is None or (r.text == row["answer"] and row["answer"] in r.items[0].requirement)
        for row, r in zip(rows, made, strict=True)
    )
    assert kept
