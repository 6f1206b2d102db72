import json

import phonenumbers
import pytest
from pydantic import ValidationError

from browseruse_bench.errors import ConfigError
from browseruse_bench.factory.persona.fit import E164
from browseruse_bench.factory.personas import CARDS, COUNTRIES, FOLDER, VIN, Country, load


def test_the_countries_that_are_asked_for_are_there():
    assert set(
        ["US", "GB", "CA", "AU", "IN", "DE", "FR", "ES", "IT", "NL", "PL", "BR", "MX", "JP", "KR"]
    ) <= set(COUNTRIES)


@pytest.mark.parametrize("country", COUNTRIES)
def test_bl082_every_value_is_valid_where_it_is_at_home(country):
    found = load(country)
    assert found.country == country
    assert {person.gender for person in found.persons} == {"f", "m", "n"}
    for person in found.persons:
        assert person.ids
        number = phonenumbers.parse(person.phone)
        national = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.NATIONAL)
        assert E164.of(national, country).e164 == person.phone


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("persons", 0, "phone"), "+12345"),
        (("persons", 0, "phone"), "+442079460123"),
        (("persons", 0, "email"), "a b"),
        (("persons", 0, "ids"), {"ssn": "000-12-3456"}),
        (("persons", 0, "ids"), {"cpf": "123.456.789-00"}),
        (("persons", 0, "birth_date"), "2020-01-01"),
        (("persons", 1, "family"), "Harper"),
        (("addresses", 0, "postal"), "9720"),
        (("addresses", 0, "city"), "Boise"),
        (("iban",), "DE00500105170000001234"),
    ],
)
def test_a_value_that_is_not_valid_is_refused(place, value):
    content = json.loads((FOLDER / "US.json").read_text())
    spot = content
    for key in place[:-1]:
        spot = spot[key]
    spot[place[-1]] = value
    with pytest.raises(ValidationError):
        Country.model_validate(content)


def test_a_country_without_personas_is_said():
    with pytest.raises(ConfigError, match="no personas for XX"):
        load("XX")


def test_cards_and_vin_pass_their_check_digits():
    from stdnum import luhn

    assert all(luhn.is_valid(card) for card in CARDS)
    values = dict(zip("ABCDEFGH", range(1, 9), strict=True)) | dict(
        zip("JKLMNPRSTUVWXYZ", [1, 2, 3, 4, 5, 7, 9, 2, 3, 4, 5, 6, 7, 8, 9], strict=True)
    )
    weights = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2]
    total = sum(
        w * (int(c) if c.isdigit() else values[c]) for w, c in zip(weights, VIN, strict=True)
    )
    assert "0123456789X"[total % 11] == VIN[8]
