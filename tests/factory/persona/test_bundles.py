"""What stands for somebody belongs together, in every country: street, city, postal code, area
code; and papers and bank data have the form of the country.
"""

import json
import random
import re
from datetime import date

import phonenumbers
import pytest
from phonenumbers import geocoder
from pydantic import ValidationError

from browseruse_bench.factory.persona.proposal import Someone, Target
from browseruse_bench.factory.persona.substitute import RefusedError, substitute
from browseruse_bench.factory.persona.values import cast, replacements
from browseruse_bench.factory.personas import COUNTRIES, FOLDER, Country, load
from browseruse_bench.factory.personas.forms import (
    BANKS,
    PASSPORTS,
    PLATES,
    is_clabe,
    is_of,
    is_routing,
)
from tests.factory.persona.test_stage import kept_text, refused, reply, target

# (city, what the numbering plan says of its area code, postal codes of the city)
PLACES = {
    "US": [("Portland", "Oregon", "972"), ("Columbus", "Ohio", "432")],
    "CA": [("Ottawa", "Ontario", "K1"), ("Halifax", "Nova Scotia", "B3")],
    "GB": [("Bristol", "Bristol", "BS"), ("Sheffield", "Sheffield", "S1")],
    "FR": [("Nantes", "France", "44"), ("Dijon", "France", "21")],
    "DE": [("Hamburg", "Hamburg", "20"), ("Köln", "Cologne", "50")],
    "ES": [("Zaragoza", "Zaragoza", "50"), ("Murcia", "Murcia", "30")],
    "IT": [("Bologna", "Bologna", "401"), ("Verona", "Verona", "371")],
    "NL": [("Utrecht", "Utrecht", "35"), ("Groningen", "Groningen", "97")],
    "PL": [("Lublin", "Lublin", "20"), ("Gdańsk", "Gdańsk", "80")],
    "BR": [("Curitiba", "Paraná", "80"), ("Recife", "Pernambuco", "50")],
    "MX": [("Puebla", "Puebla", "72"), ("Mérida", "Merida", "97")],
    "AU": [("Richmond", "", "3121"), ("Manly", "", "2095")],
    "IN": [("Pune", "", "411"), ("Hyderabad", "", "500")],
    "JP": [("渋谷区", "", "150"), ("福岡市中央区", "", "810")],
    "KR": [("중구", "", "045"), ("해운대구", "", "480")],
}  # fmt: skip


@pytest.mark.parametrize("country", COUNTRIES)
def test_area_and_postal_codes_are_those_of_the_city(country):
    found = load(country)
    assert len(found.addresses) == len(PLACES[country])
    for address, (city, area, postal) in zip(found.addresses, PLACES[country], strict=True):
        assert address.city == city
        assert address.postal.startswith(postal)
        assert (address.phone_prefix is None) == (not area)
        for person in found.persons:
            number = phonenumbers.parse(address.phone_of(person))
            assert phonenumbers.is_valid_number_for_region(number, country)
            said = geocoder.description_for_number(number, "en")
            if area:
                assert area in said
            else:
                assert phonenumbers.number_type(number) != phonenumbers.PhoneNumberType.FIXED_LINE


def plan(country, *named, gender="f", stays=False, seed=0):
    targets = [
        Target(verbatim=v, occurrences=None, kind=k, person=p, incidental=True) for v, k, p in named
    ]
    persons = [
        Someone(id=p, gender=gender, minor=False) for p in dict.fromkeys(n[2] for n in named)
    ]
    who = cast(
        persons, targets, load(country), domain="example.com", today=date(2026, 6, 1),
        rng=random.Random(seed), place_stays=stays,
    )  # fmt: skip
    text = "; ".join(v for v, _, _ in named)
    done = substitute(text, replacements(targets, who), region=country)
    return dict(zip((n[0] for n in named), (edit.new for edit in done.edits), strict=True)), who


@pytest.mark.parametrize("country", COUNTRIES)
@pytest.mark.parametrize("gender", ["f", "m", "n"])
@pytest.mark.parametrize("seed", [0, 5])
def test_one_person_gets_one_bundle(country, gender, seed):
    example = phonenumbers.example_number_for_type(country, phonenumbers.PhoneNumberType.MOBILE)
    phone = phonenumbers.format_number(example, phonenumbers.PhoneNumberFormat.INTERNATIONAL)
    named = [("Zorban Quexley", "NAME", "p1"), (phone, "PHONE", "p1"), ("9 Old Way", "STREET", "p1"),
             ("Oldtown", "CITY", "p1"), ("QX77", "ZIP", "p1"), ("zorban@old.example", "EMAIL", "p1")]  # fmt: skip
    new, who = plan(country, *named, gender=gender, seed=seed)
    person, address = who.people["p1"], who.addresses["p1"]
    assert person.gender == gender
    assert address in load(country).addresses
    assert (new["9 Old Way"], new["Oldtown"], new["QX77"]) == (
        address.street,
        address.city,
        address.postal,
    )
    number = phonenumbers.parse(new[phone], country)
    e164 = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    assert e164 == address.phone_of(person)
    assert new["zorban@old.example"] == f"{person.email}@example.com"
    assert {*new["Zorban Quexley"].split()} == {*person.given.split(), *person.family.split()}


async def test_where_the_place_is_the_work_city_zip_and_area_code_stay(tmp_path):
    text = (
        "Find a plumber in Chicago, IL 60614 who comes to 4812 Larkspur Lane; my phone is "
        "(312) 555-0148."
    )
    answer = reply(
        target("4812 Larkspur Lane", "STREET"), target("(312) 555-0148", "PHONE"),
        kept=[("Chicago, IL 60614", "place_of_the_work")],
    )  # fmt: skip
    out = await kept_text(tmp_path, text, answer)
    streets = "|".join(address.street for address in load("US").addresses)
    assert re.fullmatch(
        rf"Find a plumber in Chicago, IL 60614 who comes to (?:{streets}); my phone is "
        r"\(312\) 555-01(?!48)\d\d\.", out,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "verbatim"),
    [("ADDRESS", "4812 Larkspur Lane, Chicago, IL 60614"), ("CITY", "Chicago"), ("ZIP", "60614"), ("REGION", "IL")],
)  # fmt: skip
async def test_of_a_place_that_is_the_work_only_the_street_can_go(tmp_path, kind, verbatim):
    text = "Find plumbers in Chicago. I live at 4812 Larkspur Lane, Chicago, IL 60614."
    answer = reply(
        target("4812 Larkspur Lane", "STREET"), target(verbatim, kind),
        kept=[("Chicago", "place_of_the_work")],
    )  # fmt: skip
    assert "place that is the work" in await refused(tmp_path, text, answer)


async def test_a_street_that_was_called_an_address_stays_a_street(tmp_path):
    text = "Deliver to 14 Bramley Close by noon, in the United Kingdom."
    out = await kept_text(tmp_path, text, reply(target("14 Bramley Close", "ADDRESS")))
    streets = "|".join(address.street for address in load("GB").addresses)
    assert re.fullmatch(rf"Deliver to (?:{streets}) by noon, in the United Kingdom\.", out)


def test_a_toll_free_number_gets_no_area_of_the_place():
    new, who = plan("US", ("800-234-5678", "PHONE", "p1"), stays=True)
    assert not new["800-234-5678"].startswith("800")
    new, _ = plan("US", ("800-234-5678", "PHONE", "p1"))
    assert new["800-234-5678"][:3] in {"503", "614"}


# ------------------------------------------------------------------ papers and banks


@pytest.mark.parametrize("country", COUNTRIES)
def test_papers_have_the_form_of_their_country(country):
    found = load(country)
    assert is_of(PASSPORTS, country, found.passport)
    assert is_of(PLATES, country, found.plate)
    assert found.bank["account"]


@pytest.mark.parametrize(
    ("country", "place", "value", "said"),
    [
        ("US", ("passport",), "X0000001", "no passport number"),
        ("GB", ("passport",), "X00000012", "no passport number"),
        ("DE", ("passport",), "A01X00T47", "no passport number"),
        ("NL", ("passport",), "SPECO0012", "no passport number"),
        ("GB", ("plate",), "QQ9 QQQQ", "no number plate"),
        ("ES", ("plate",), "0000 AEI", "no number plate"),
        ("FR", ("plate",), "WI-123-ZZ", "no number plate"),
        ("US", ("bank", "routing"), "110000001", "no routing"),
        ("US", ("bank", "account"), "123", "no account"),
        ("US", ("bank", "sortcode"), "11-00-00", "no sortcode"),
        ("US", ("bank",), {"routing": "110000000"}, "no account"),
        ("MX", ("bank", "clabe"), "002010077777777772", "no clabe"),
        ("MX", ("bank", "account"), "12345678901", "not of the account"),
        ("GB", ("bank", "sort_code"), "20-00-05", "not of the account"),
        ("GB", ("bank", "account"), "31926819", "not of the account"),
        ("AU", ("bank", "bsb"), "06-2000", "no bsb"),
        ("DE", ("iban",), "GB33BUKB20201555555555", "no IBAN of DE"),
        ("ES", ("iban",), "ES9121000418450200051333", "no IBAN of ES"),
        ("US", ("addresses", 0, "phone_prefix"), "+1999", "no phone number"),
    ],
)  # fmt: skip
def test_papers_and_bank_data_that_are_not_valid_are_refused(country, place, value, said):
    content = json.loads((FOLDER / f"{country}.json").read_text())
    spot = content
    for key in place[:-1]:
        spot = spot[key]
    spot[place[-1]] = value
    with pytest.raises(ValidationError, match=said):
        Country.model_validate(content)


@pytest.mark.parametrize(
    ("country", "kind", "old"),
    [
        ("US", "PASSPORT", "C12345678"), ("US", "PASSPORT", "512345678"), ("GB", "PASSPORT", "512345678"),
        ("CA", "PASSPORT", "GA123456"), ("DE", "PASSPORT", "C9V4K7LM2"), ("FR", "PASSPORT", "12CV34567"),
        ("NL", "PASSPORT", "NW3R7L9K2"), ("JP", "PASSPORT", "TK1234567"), ("KR", "PASSPORT", "M123A4567"),
        ("US", "PLATE", "8ABC123"), ("GB", "PLATE", "LK19 XRB"), ("DE", "PLATE", "M-AB 1234"),
        ("DE", "PLATE", "HH-X 12"), ("FR", "PLATE", "AB-123-CD"), ("ES", "PLATE", "1234 BCD"),
        ("IT", "PLATE", "AB 123 CD"), ("NL", "PLATE", "AB-123-C"), ("PL", "PLATE", "WA 12345"),
        ("BR", "PLATE", "ABC1D23"), ("BR", "PLATE", "ABC-1234"), ("MX", "PLATE", "ABC-12-34"),
        ("IN", "PLATE", "MH 12 AB 1234"), ("AU", "PLATE", "ABC 12D"), ("CA", "PLATE", "ABCD 123"),
        ("JP", "PLATE", "横浜 330 さ 12-34"), ("KR", "PLATE", "12가 3456"), ("KR", "PLATE", "123가 4567"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("people", [1, 2])
def test_a_paper_becomes_another_one_of_the_same_form(country, kind, old, people):
    forms = PASSPORTS if kind == "PASSPORT" else PLATES
    assert is_of(forms, country, old)
    named = [("someone@old.example", "EMAIL", "p1")][: people - 1]
    new, _ = plan(country, *named, (old, kind, f"p{people}"))
    assert is_of(forms, country, new[old])
    assert new[old] != old
    assert re.sub(r"\w", "x", new[old]) == re.sub(r"\w", "x", old)


@pytest.mark.parametrize(
    ("country", "old", "scheme"),
    [
        ("US", "021000021", "routing"), ("CA", "021000021", "routing"), ("GB", "20-45-67", "sort_code"),
        ("GB", "20 45 67", "sort_code"), ("AU", "063-001", "bsb"), ("MX", "032180000118359719", "clabe"),
        ("US", "032180000118359719", "clabe"),
    ],
)  # fmt: skip
def test_a_code_of_a_bank_stays_one_with_its_check_digit(country, old, scheme):
    assert BANKS[scheme](old)
    new, _ = plan(country, (old, "BANK", "p1"))
    assert BANKS[scheme](new[old])
    assert new[old] != old
    assert re.sub(r"\d", "0", new[old]) == re.sub(r"\d", "0", old)


def test_an_account_keeps_its_length_and_no_two_people_share_one():
    new, _ = plan("GB", ("12345678", "BANK", "p1"), ("87654321", "BANK", "p2"))
    assert new["12345678"] == load("GB").bank["account"]
    assert re.fullmatch(r"\d{8}", new["87654321"])
    assert len({*new.values(), *new}) == 4
    with pytest.raises(RefusedError):
        plan("US", ("021000021", "BANK", "p1"), ("011401533", "BANK", "p2"))


@pytest.mark.parametrize("number", ["021000021", "011401533", "110000000"])
def test_one_digit_changed_is_no_routing_number(number):
    assert is_routing(number)
    assert not any(
        is_routing(number[:i] + str((int(number[i]) + 1) % 10) + number[i + 1 :]) for i in range(9)
    )


def test_one_digit_changed_is_no_clabe():
    number = "032180000118359719"
    assert is_clabe(number)
    changed = [number[:i] + str((int(number[i]) + 1) % 10) + number[i + 1 :] for i in range(18)]
    assert not any(map(is_clabe, changed))


# ------------------------------------------------------------------ numbers that open something


@pytest.mark.parametrize(
    ("kind", "old"), [("ORDER_ID", "K7QX2M"), ("LOYALTY", "XQ482913"), ("ORDER_ID", "112-8837461-2291")]
)  # fmt: skip
async def test_what_must_be_looked_up_drops_the_task_and_a_field_gets_another_of_its_form(
    tmp_path, kind, old
):
    text = f"Type {old} into the second field of example.org/form and read the message."
    out = await kept_text(tmp_path, text, reply(target(old, kind)))
    new = out.removeprefix("Type ").partition(" into ")[0]
    assert new != old
    assert re.sub(r"\d", "0", re.sub("[A-Z]", "A", new)) == re.sub(
        r"\d", "0", re.sub("[A-Z]", "A", old)
    )
    needed = reply(target(old, kind, incidental=False))
    assert old not in await refused(tmp_path, text, needed, "work_depends_on_person")


async def test_the_age_of_an_adult_is_that_of_the_persona_on_the_day_of_the_run(tmp_path):
    text = "Quote car insurance for Quentin Fanshawe, aged 47, from 1 May."
    answer = reply(
        target("Quentin Fanshawe", "NAME"), target("47", "AGE"), persons=(("p1", "m", False),)
    )
    out = await kept_text(tmp_path, text, answer)
    found = re.fullmatch(r"Quote car insurance for Paul Kessler, aged (\d+), from 1 May\.", out)
    assert found
    assert int(found.group(1)) == 34
