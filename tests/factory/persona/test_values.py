"""Every value that stands in for another is valid, and written as that one was."""

import random
import re
from datetime import date

import phonenumbers
import pytest
from hypothesis import given
from hypothesis import strategies as st
from phonenumbers import PhoneNumberFormat

from browseruse_bench.factory.persona.dates import age_on, rewritten
from browseruse_bench.factory.persona.fit import E164, fitted
from browseruse_bench.factory.persona.proposal import Someone, Target
from browseruse_bench.factory.persona.substitute import substitute
from browseruse_bench.factory.persona.values import cast, replacements, shaped
from browseruse_bench.factory.personas import COUNTRIES, SCHEMES, load


def replaced(text, kind, verbatim, country, seed=0):
    targets = (
        Target(verbatim=verbatim, occurrences=None, kind=kind, person="p1", incidental=True),
    )
    who = cast(
        (Someone(id="p1", gender="f", minor=False),), targets, load(country),
        domain="example.com", today=date(2026, 6, 1), rng=random.Random(seed),
    )  # fmt: skip
    return substitute(text, replacements(targets, who), region=country)


SOURCES = {
    "US": ("ssn", "219-09-9999"), "CA": ("sin", "130 692 544"), "GB": ("nhs", "943 476 5919"),
    "AU": ("tfn", "876 543 210"), "IN": ("aadhaar", "2341 2341 2346"), "DE": ("idnr", "36 574 261 809"),
    "FR": ("nir", "2 95 10 99 126 111 93"), "ES": ("dni", "12345678-Z"),
    "IT": ("codicefiscale", "RCCMNL83S18D969H"), "NL": ("bsn", "1112.22.333"), "PL": ("pesel", "44051401359"),
    "BR": ("cpf", "529.982.247-25"), "MX": ("curp", "BOXW310820HNERXN09"), "JP": ("mynumber", "6214 9832 0257"),
    "KR": ("rrn", "971013-9019902"),
}  # fmt: skip


@pytest.mark.parametrize("country", COUNTRIES)
def test_an_identity_number_keeps_its_scheme_and_grouping(country):
    scheme, source = SOURCES[country]
    assert SCHEMES[scheme](source)
    found = replaced(f"my number {source}, please", "NATIONAL_ID", source, country)
    new = found.edits[0].new
    assert SCHEMES[scheme](new)
    assert new != source
    assert re.sub(r"\w", "x", new) == re.sub(r"\w", "x", source)


FORMATS = [PhoneNumberFormat.NATIONAL, PhoneNumberFormat.INTERNATIONAL, PhoneNumberFormat.E164]


@given(
    st.sampled_from(COUNTRIES), st.sampled_from(FORMATS), st.sampled_from(["", ".", " "]), st.data()
)
def test_a_phone_number_in_any_form_becomes_a_valid_one(country, form, mark, data):
    example = phonenumbers.example_number_for_type(
        country, data.draw(st.sampled_from([phonenumbers.PhoneNumberType.MOBILE, phonenumbers.PhoneNumberType.FIXED_LINE]))
    )  # fmt: skip
    old = phonenumbers.format_number(example, form)
    if mark and form is PhoneNumberFormat.NATIONAL:
        old = re.sub(r"[ \-]", mark, old)
    person = load(country).persons[0]
    new = fitted("PHONE", old, person.phone, country)
    assert new is not None
    assert E164.of(new, country).e164 == person.phone
    assert phonenumbers.is_valid_number(phonenumbers.parse(new, country))
    assert new.startswith("+") == old.startswith("+")


@pytest.mark.parametrize(
    ("kind", "old", "pattern"),
    [
        ("PASSWORD", "290417", r"\d{6}"),
        ("PASSWORD", "Summer2024$Lake", r"Kestrel-Lamp-42!"),
        ("PLATE", "LK19 XRB", r"QQ99 QQQ"),
        ("URL", "www.hollowell.example", r"[\w.]+\.example\.com"),
        ("URL", "https://hollowell.example", r"https://[\w.]+\.example\.com"),
        ("IP", "203.0.113.77", r"198\.51\.100\.24"),
    ],
)
def test_what_has_no_check_digits_keeps_its_form(kind, old, pattern):
    assert re.fullmatch(pattern, replaced(f"it is {old} here", kind, old, "GB").edits[0].new)


def test_a_prefix_of_another_length_is_not_cut_in_two():
    assert fitted("PHONE", "+36 20 123 4567", "+13035550176", "US") == "+1 303-555-0176"


def test_an_iban_keeps_its_country_and_grouping():
    found = replaced("IBAN DE89 3704 0044 0532 0130 00.", "IBAN", "DE89370400440532013000", "US")
    from stdnum import iban

    assert iban.is_valid(found.edits[0].new)
    assert re.fullmatch(r"DE\d\d( \d{4}){4} \d\d", found.edits[0].new)


@pytest.mark.parametrize(
    ("source", "brand"),
    [("4539148803436467", "4"), ("5105 1051 0510 5100", "5"), ("371449635398431", "3")],
)
def test_a_card_keeps_brand_length_and_check_digit(source, brand):
    from stdnum import luhn

    new = replaced(f"card {source}", "CARD", source, "US").edits[0].new
    assert new.startswith(brand)
    assert len(new) == len(source)
    assert luhn.is_valid(new.replace(" ", ""))


@given(st.text(alphabet="ABZabz019-/ .", min_size=1, max_size=20), st.integers())
def test_a_shape_stays_and_each_letter_and_digit_is_another(old, seed):
    new = shaped(old, random.Random(seed))
    assert len(new) == len(old)
    for a, b in zip(old, new, strict=True):
        if a.isalnum():
            assert a != b
            assert (a.isdigit(), a.isupper()) == (b.isdigit(), b.isupper())
        else:
            assert a == b


@pytest.mark.parametrize(
    ("written", "order", "languages", "expected"),
    [
        ("03/04/1991", "mdy", ("en",), "11/05/1984"),
        ("03/04/1991", "dmy", ("en",), "05/11/1984"),
        ("03/14/1991", "dmy", ("en",), "11/05/1984"),
        ("3.4.91", "dmy", ("de",), "5.11.84"),
        ("1991-04-03", "dmy", ("de",), "1984-11-05"),
        ("April 3rd, 1991", "mdy", ("en",), "November 5th, 1984"),
        ("3 Apr 1991", "dmy", ("en",), "5 Nov 1984"),
        ("5 mai 1994", "dmy", ("fr",), "5 novembre 1984"),
        ("12. März 1984", "dmy", ("de",), "5. November 1984"),
        ("last spring", "dmy", ("en",), None),
    ],
)
def test_a_birth_date_is_written_as_the_old_one(written, order, languages, expected):
    assert rewritten(written, date(1984, 11, 5), order, languages) == expected


def test_age_is_in_full_years():
    assert age_on(date(2000, 6, 2), date(2026, 6, 1)) == 25
    assert age_on(date(2000, 6, 1), date(2026, 6, 1)) == 26
