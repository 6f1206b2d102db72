"""All forms of one person's name are one person, and go together after the replacement."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from browseruse_bench.factory.persona.names import is_form, nicknames, renamed
from browseruse_bench.factory.persona.residue import residue
from browseruse_bench.factory.persona.substitute import substitute
from browseruse_bench.factory.personas import COUNTRIES, load
from tests.factory.persona.test_stage import kept_text, refused, reply, target
from tests.factory.persona.test_substitute import name, refusal

PERSON_OF = {"US": 1, "ES": 0, "NL": 0, "JP": 1, "BR": 0, "FR": 0}


@pytest.mark.parametrize(
    ("country", "full", "old", "new"),
    [
        ("US", "Robert Miller", "Robert Miller", "Paul Kessler"),
        ("US", "Robert Miller", "Robert", "Paul"),
        ("US", "Robert Miller", "Bob", "Paul"),
        ("US", "Robert Miller", "Bob Miller", "Paul Kessler"),
        ("US", "Robert Miller", "R. Miller", "P. Kessler"),
        ("US", "Robert Miller", "Robert M.", "Paul K."),
        ("US", "Robert Miller", "Miller", "Kessler"),
        ("US", "Robert Miller", "Mr. Miller", "Mr. Kessler"),
        ("US", "Robert Miller", "Miller, Robert", "Kessler, Paul"),
        ("US", "Robert Miller", "MILLER Robert", "Kessler Paul"),
        ("US", "Robert Miller", "RM", "PK"),
        ("US", "Robert Miller", "R.M.", "P.K."),
        ("US", "Robert James Miller", "RJM", "PK"),
        ("US", "Robert James Miller", "Robert James", "Paul"),
        ("US", "Robert James Miller", "R. J. Miller", "P. Kessler"),
        ("US", "Robert James Miller", "James", "Paul"),
        ("US", "Robert Miller Jr.", "Robert Miller Jr.", "Paul Kessler Jr."),
        ("US", "Robert Miller Jr.", "Miller", "Kessler"),
        ("US", "Dr. Robert Miller", "Dr. Miller", "Dr. Kessler"),
        ("US", "Robert Miller", "Robert Stone", "Paul Kessler"),
        ("ES", "María García López", "García", "Carrasco"),
        ("ES", "María García López", "Sra. García López", "Sra. Carrasco"),
        ("ES", "María García López", "María García", "Lucía Carrasco"),
        ("BR", "Ana Souza Lima", "Souza", "Figueira"),
        ("NL", "Anna van der Berg", "van der Berg", "Vermeulen"),
        ("NL", "Anna van der Berg", "Anna", "Lotte"),
        ("JP", "Yamada Taro", "Yamada", "Takamori"),
        ("JP", "山田太郎", "山田", "高森"),
        ("JP", "山田 太郎", "太郎", "一郎"),
    ],
)
def test_each_form_becomes_the_same_form_of_the_persona(country, full, old, new):
    home = load(country)
    assert renamed(old, full, home.persons[PERSON_OF[country]], home) == new


FORMS = ["Bob", "Robert", "R. Miller", "Mr. Miller", "Bob Miller", "Miller, Robert"]
MILLER = "Ship to Robert Miller. Bob pays; R. Miller signs, Mr. Miller calls, Robert waits."


def one_persona(text):
    found = re.fullmatch(
        r"Ship to (\w+) (\w+)\. (\w+) pays; (\w)\. (\w+) signs, Mr\. (\w+) calls, (\w+) waits\.", text
    )  # fmt: skip
    assert found, text
    given, family, nick, initial, *families, again = found.groups()
    assert nick == again == given
    assert given.startswith(initial)
    assert set(families) == {family}
    return given


async def test_one_person_under_all_forms_has_one_persona(tmp_path):
    forms = ["Robert Miller", "Bob", "R. Miller", "Miller", "Robert"]
    answer = reply(*(target(f, "NAME") for f in forms), persons=(("p1", "m", False),))
    given = one_persona(await kept_text(tmp_path, MILLER, answer))
    assert given in {"Paul", "Robin"}


async def test_forms_that_the_model_gave_to_other_people_go_to_the_one_they_fit(tmp_path):
    answer = reply(
        target("Robert Miller", "NAME"), target("Bob", "NAME", "p2"), target("Robert", "NAME", "p2"),
        target("R. Miller", "NAME", "p3"), target("Miller", "NAME", "p4"),
        persons=(("p1", "m", False), ("p2", "n", False), ("p3", "n", False), ("p4", "m", False)),
    )  # fmt: skip
    one_persona(await kept_text(tmp_path, MILLER, answer))


async def test_a_short_form_that_fits_two_people_is_refused(tmp_path):
    text = "Invite Robert Miller and Ann Miller; Miller pays."
    answer = reply(
        target("Robert Miller", "NAME"), target("Ann Miller", "NAME", "p2"), target("Miller", "NAME", "p3"),
        persons=(("p1", "m", False), ("p2", "f", False), ("p3", "n", False)),
    )  # fmt: skip
    assert "fits two people" in await refused(tmp_path, text, answer)


async def test_a_wife_under_the_same_family_name_is_another_person_of_that_family(tmp_path):
    text = "Invite Robert Miller. He has a dog. So has Mrs. Miller"
    answer = reply(
        target("Robert Miller", "NAME"), target("Mrs. Miller", "NAME", "p2"),
        persons=(("p1", "m", False), ("p2", "f", False)),
    )  # fmt: skip
    out = await kept_text(tmp_path, text, answer)
    found = re.fullmatch(r"Invite \w+ (\w+)\. He has a dog\. So has Mrs\. (\w+)", out)
    assert found
    assert found.group(1) == found.group(2)


def test_a_plan_that_takes_one_form_apart_from_another_is_refused():
    text = "Robert Miller and Robert"
    full = name("Robert Miller", "Paul Kessler")
    assert refusal(text, full, name("Robert", "Stefan")) == "short_form"
    assert refusal(text, full, name("Robert", "Stefan", "p2")) == "short_form"
    assert substitute(text, [full, name("Robert", "Paul")]).text == "Paul Kessler and Paul"
    two = (name("Robert Stone", "Stefan Ahrens", "p2"), name("Robert", "Stefan", "p2"))
    assert substitute("Robert Miller; Robert Stone, Robert", [full, *two]).text == (
        "Paul Kessler; Stefan Ahrens, Stefan"
    )


def test_a_nickname_that_nobody_listed_is_quarantined():
    text = "Bob likes it. Robert Miller bills nobody and will bob."
    left = substitute(text, [name("Robert Miller", "Paul Kessler")])
    assert residue(left, (), "US") == []  # as names that are words stay
    left = substitute(
        "Robbie likes it. Ask Robert Miller.", [name("Robert Miller", "Paul Kessler")]
    )
    assert residue(left, (), "US") == ["nickname of a name"]
    assert residue(left, ("Robbie",), "US") == []


@pytest.mark.parametrize(
    ("before", "gender", "ok"),
    [
        ("Mr. ", "f", False), ("Mrs. ", "m", False), ("my husband ", "f", False), ("Frau ", "m", False),
        ("Mr. ", "m", True), ("Mrs. ", "f", True), ("Dr. ", "f", True), ("Mr. ", "n", True),
        ("my daughter ", "n", True),
    ],
)  # fmt: skip
async def test_a_title_decides_the_gender(tmp_path, before, gender, ok):
    text = f"Order a scarf for {before}Quentin Fanshawe today."
    answer = reply(target("Quentin Fanshawe", "NAME"), persons=(("p1", gender, False),))
    if not ok:
        assert "gender" in await refused(tmp_path, text, answer)
        return
    out = await kept_text(tmp_path, text, answer)
    given = out.removeprefix(f"Order a scarf for {before}").split()[0]
    genders = {person.given: person.gender for person in load("US").persons}
    told = {"Mr. ": "m", "Mrs. ": "f", "my daughter ": "f"}.get(before, gender)
    assert genders[given] in {told, "n"}


def test_nicknames_are_of_both_sides():
    assert "bob" in nicknames("Robert")
    assert "robert" in nicknames("Bob")
    assert not nicknames("Zqann")
    us = load("US")
    assert all(is_form(form, "Robert Miller", us) for form in FORMS)
    assert not any(
        is_form(f, "Robert Miller", us) for f in ["R.", "Ann", "Ann Miller", "A. Miller"]
    )


@given(st.sampled_from(COUNTRIES), st.integers(0, 3), st.sampled_from([*FORMS, "RM", "Miller Jr."]))
def test_every_form_holds_only_parts_of_its_persona(country, index, old):
    home = load(country)
    person = home.persons[index]
    new = renamed(old, "Robert Miller", person, home)
    assert new
    words = {person.given, person.family, f"{person.given[0]}.", f"{person.family[0]}."}
    words |= {person.given[0] + person.family[0], person.family[0] + person.given[0], "Mr.", "Jr."}
    assert {word.rstrip(",") for word in re.findall(r"\S+", new)} <= words | {
        p for part in (person.given, person.family) for p in part.split()
    }
