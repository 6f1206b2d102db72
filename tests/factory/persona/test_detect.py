"""What the deterministic pass finds. It was written before it saw the held-out texts' misses."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.factory.persona.detect import detect
from browseruse_bench.factory.personas import COUNTRIES, load
from tests.factory.persona.measuring import held_out, measure, oracle_cases


def kinds(text, country="US"):
    return {(hit.kind, text[hit.start : hit.end]) for hit in detect(text, country)}


def test_held_out_texts_are_found_as_was_measured():
    recall, precision, flagged, n_clean = measure(held_out())
    assert recall >= 0.95
    assert precision >= 0.95
    assert (flagged <= 1, n_clean) == (True, 16)


@pytest.mark.oracle
@pytest.mark.skipif("BUBENCH_ORACLE_DATA" not in os.environ, reason="no BUBENCH_ORACLE_DATA")
def test_public_cases_are_found_as_was_measured():
    if not (Path(os.environ["BUBENCH_ORACLE_DATA"]) / "pii/cases.jsonl").is_file():
        pytest.skip("no pii/cases.jsonl there")
    recall, precision, flagged, _ = measure(oracle_cases())
    assert recall >= 0.9
    assert precision >= 0.98
    assert flagged == 0


def test_bl075_capital_words_and_codes_are_no_licence():
    text = "Compare iPhone A1234 and H1 chips on the public site, INTRODUCTORY offer, order soon"
    assert not kinds(text)


@pytest.mark.parametrize("country", COUNTRIES)
def test_bl082_numbers_of_each_country_are_found(country):
    people = load(country)
    for person in people.persons:
        phone = f"call {person.phone}"
        assert ("PHONE", person.phone) in kinds(phone, country)


@pytest.mark.parametrize(
    ("text", "country", "expected"),
    [
        ("IBAN FR1420041010050500013M02606", "FR", ("IBAN", "FR1420041010050500013M02606")),
        ("CPF 529.982.247-25", "BR", ("NATIONAL_ID", "529.982.247-25")),
        ("〒150-0043 東京都渋谷区道玄坂2-10-7", "JP", ("ADDRESS", "〒150-0043 東京都渋谷区道玄坂2-10-7")),
        ("Aadhaar 2341 2341 2346", "IN", ("NATIONAL_ID", "2341 2341 2346")),
        ("Lindenstr. 5a, 50674 Köln", "DE", ("ADDRESS", "Lindenstr. 5a, 50674 Köln")),
    ],
)  # fmt: skip
def test_bl082_forms_of_other_countries_are_found(text, country, expected):
    assert expected in kinds(text, country)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("my card 4242 4242 4242 4242", "my card 4242 4242 4242 4243"),
        ("CPF 529.982.247-25", "CPF 529.982.247-26"),
        ("IBAN DE89370400440532013000", "IBAN DE89370400440532013001"),
        ("NHS number 943 476 5919", "NHS number 943 476 5918"),
    ],
)
def test_check_digits_decide(right, wrong):
    assert any(hit.sure for hit in detect(right, "GB"))
    assert not any(hit.sure for hit in detect(wrong, "GB"))


@given(st.text(max_size=60), st.sampled_from(COUNTRIES))
def test_hits_are_disjoint_and_in_the_text(text, country):
    hits = detect(text, country)
    assert all(0 <= hit.start < hit.end <= len(text) for hit in hits)
    assert all(a.end <= b.start for a, b in zip(hits, hits[1:], strict=False))
