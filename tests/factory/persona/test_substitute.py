"""Every row of the case table, and what holds for any text."""

import unicodedata

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from browseruse_bench.factory.persona.canonical import canonical, same
from browseruse_bench.factory.persona.confusables import is_mixed, skeleton
from browseruse_bench.factory.persona.substitute import (
    RefusedError,
    Replacement,
    places,
    substitute,
)


def name(target, value, person="p1", occurrences=None):
    return Replacement(target, value, "NAME", person, occurrences)


def put(text, *plan, region="US"):
    return substitute(text, plan, region=region).text


def refusal(text, *plan, region="US"):
    with pytest.raises(RefusedError) as error:
        substitute(text, plan, region=region)
    return error.value.refusal


ANN = name("Ann", "Jane")
FULL = name("Ann Delacroix", "Jane Harper")


def test_absent_target_refuses_the_whole_plan():
    assert refusal("Ann is here", ANN, name("Bob", "Rob", "p2")) == "absent"


def test_bl083_a_target_that_differs_in_letters_is_absent():
    assert refusal("Ask John  Smith", name("jon smith", "Paul Reed")) == "absent"
    found = substitute("Ask John  Smith now", [name("john smith", "Paul Reed")])
    assert [edit.old for edit in found.edits] == ["John  Smith"]


@pytest.mark.parametrize("text", ["Announce", "annex", "Joann", "ann1", "1ann", "Annapolis"])
def test_bl080_within_a_word_is_no_match(text):
    assert refusal(text, ANN) == "absent"


def test_bl080_li_stays_in_linkedin_and_may_in_the_calendar():
    assert put("Li uses LinkedIn", name("Li", "Wu")) == "Wu uses LinkedIn"
    assert refusal("May may come in May", name("May", "Jane")) == "ambiguous"
    text = "May will fly in May"
    assert put(text, name("May", "Jane", occurrences=(0,))) == "Jane will fly in May"


def test_cjk_needs_no_boundary():
    assert put("山田太郎様に送る", name("山田太郎", "鈴木一郎")) == "鈴木一郎様に送る"
    assert put("Annさんに送る", ANN) == "Janeさんに送る"


def test_longest_first_one_owner():
    text = "Ann Delacroix and Ann. Announce nothing, annex."
    assert put(text, ANN, FULL) == "Jane Harper and Jane. Announce nothing, annex."


def test_bl077_values_of_other_length_leave_no_remnant():
    text = "My name is John Smith, my email is john@example.com, phone 555-867-5309"
    plan = (
        name("John Smith", "Bartholomew Fitzgerald-Hughes"),
        Replacement("john@example.com", "b@example.org", "EMAIL", "p1"),
    )
    assert put(text, *plan) == (
        "My name is Bartholomew Fitzgerald-Hughes, my email is b@example.org, phone 555-867-5309"
    )


def test_bl078_nested_targets_have_one_owner_and_crossing_ones_refuse():
    mail = Replacement("john.smith@x.com", "paul.reed@example.com", "EMAIL", "p1")
    assert put("john.smith@x.com, John Smith", mail, name("John Smith", "Paul Reed")) == (
        "paul.reed@example.com, Paul Reed"
    )
    crossing = (name("Ann Lee", "Jane Poe"), name("Lee Smith", "Poe Reed", "p1"))
    assert refusal("Ann Lee Smith", *crossing) == "overlap"


def test_a_swap_chain_is_refused_since_the_value_is_in_the_text():
    plan = (name("Bob", "Al"), name("Al", "Cy", "p2"))
    assert refusal("Bob pays Al", *plan) == "already_there"


def test_order_of_the_plan_changes_nothing():
    plan = [name("Tom", "Cyd"), name("Al", "Rolf", "p2"), name("Tom Lee", "Cyd Poe")]
    text = "Tom Lee pays Al; Al pays Tom"
    assert put(text, *plan) == put(text, *plan[::-1]) == "Cyd Poe pays Rolf; Rolf pays Cyd"


def test_replacement_in_the_text_refuses():
    assert refusal("Ann and Jane", ANN) == "already_there"


def test_two_people_on_one_value_and_two_values_for_one_target_refuse():
    assert refusal("Ann and Sue", ANN, name("Sue", "Jane", "p2")) == "two_people_one_value"
    assert refusal("Ann", ANN, name("ANN", "June")) == "two_values"


def test_case_and_possessive_follow():
    text = "ANN, ann, Ann's, Ann’s, DELACROIX"
    plan = (ANN, name("Delacroix", "Harper"))
    assert put(text, *plan) == "JANE, jane, Jane's, Jane’s, HARPER"
    assert put("Ann DELACROIX", FULL) == "Jane HARPER"


@pytest.mark.parametrize(
    ("text", "target", "value", "expected"),
    [
        ("My wife Mercedes wants a Mercedes C300", "Mercedes", "Jane", "My wife Jane wants a Mercedes C300"),
        ("My son Hunter needs Hunter boots", "Hunter", "Paul", "My son Paul needs Hunter boots"),
    ],
)  # fmt: skip
def test_one_word_in_two_senses(text, target, value, expected):
    assert put(text, name(target, value, occurrences=(0,))) == expected
    assert refusal(text, name(target, value)) == "ambiguous"
    assert refusal(text, name(target, value, occurrences=(2,))) == "occurrence"


def test_initials_and_middle_names_are_listed_or_refused():
    plan = (name("Ann Delacroix", "Jane Harper"), name("A. Delacroix", "J. Harper"))
    assert put("Ann Delacroix, A. Delacroix", *plan) == "Jane Harper, J. Harper"
    text = "Ann Delacroix or A. Delacroix"
    assert refusal(text, FULL, name("Delacroix", "Harper")) == "unlisted_initial"
    assert refusal("Ann Delacroix, Ann D.", FULL, ANN) == "unlisted_initial"


@pytest.mark.parametrize(
    "form", ["adelacroix", "anndelacroix", "delacroixa", "x.com/in/ann-delacroix-22", "annd@x.com"]
)
def test_derived_forms_are_targets_of_their_own(form):
    assert refusal(f"Ann Delacroix, {form}", FULL) == "derived_form"
    plan = (FULL, Replacement(form, "jharper@example.com", "EMAIL", "p1"))
    assert put(f"Ann Delacroix, {form}", *plan) == "Jane Harper, jharper@example.com"


@pytest.mark.parametrize(
    "text",
    [
        "Jose\u0301 Nu\u0301n\u0303ez",
        "José\u00a0Núñez",
        "Jo\u200bsé Núñ\u00adez",
        "ＪＯＳÉ ＮÚÑＥＺ",
        "José\u202fNúñez",
        "Jose\u200d\u0301 Núñez",
    ],
)
def test_canonical_forms_match_at_the_original_offsets(text):
    whole = f"«{text}» stays\u0301"
    found = substitute(whole, [name("José Núñez", "Carlos Ruiz")])
    assert found.text.casefold() == "«carlos ruiz» stays\u0301"
    assert found.edits[0].old == text
    assert found.original() == whole


def test_curly_quotes_and_hyphens_are_equal():
    assert put("Giovanni D’Amico", name("Giovanni D'Amico", "Luca Ferri")) == "Luca Ferri"
    assert put("Garnier\u2011Roux", name("Garnier-Roux", "Petit")) == "Petit"


def test_full_width_digits_match():
    phone = Replacement("090-1234-5678", "+818000000001", "PHONE", "p1")
    assert (
        put("ＴＥＬ ０９０－１２３４－５６７８。", phone, region="JP") == "ＴＥＬ 080－0000－0001。"
    )


def test_a_look_alike_is_never_silently_equal():
    assert refusal("\u0410nn Lee", name("Ann Lee", "Jane Poe")) == "absent"
    assert skeleton("\u0410nn Lee") == skeleton("Ann Lee")
    assert is_mixed("\u0410nn")
    assert not is_mixed("Анна")
    assert not is_mixed("Ann")


PHONE = Replacement("(312) 555-0148", "+16465550119", "PHONE", "p1")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(312) 555-0148 or 312.555.0148", "(646) 555-0119 or 646.555.0119"),
        ("+1 312 555 0148", "+1 646 555 0119"),
        ("+13125550148", "+16465550119"),
        ("1-312-555-0148!", "1-646-555-0119!"),
        ("tel:3125550148.", "tel:6465550119."),
    ],
)
def test_a_phone_in_any_format_keeps_it(text, expected):
    assert put(text, PHONE) == expected


def test_national_and_international_forms_are_one_number():
    phone = Replacement("+44 7700 900412", "+442079460123", "PHONE", "p1")
    text = "+44 7700 900412, 07700 900412"
    assert put(text, phone, region="GB") == "+44 2079 460123, 02079 460123"


def test_a_digit_more_is_another_number():
    assert refusal("13125550148x 93125550148", PHONE) == "absent"


def test_card_keeps_its_grouping_and_refuses_another_length():
    card = Replacement("4539148803436467", "4242424242424242", "CARD", "p1")
    assert put("4539 1488 0343 6467; 4539-1488-0343-6467", card) == (
        "4242 4242 4242 4242; 4242-4242-4242-4242"
    )
    amex = Replacement("4539148803436467", "378282246310005", "CARD", "p1")
    assert refusal("4539 1488 0343 6467", amex) == "invalid_value"


def test_iban_is_compared_on_its_characters():
    iban = Replacement("DE89370400440532013000", "DE75512108001245126199", "IBAN", "p1")
    assert put("DE89370400440532013000 and DE89 3704 0044 0532 0130 00", iban) == (
        "DE75512108001245126199 and DE75 5121 0800 1245 1261 99"
    )


def test_a_short_number_needs_a_cue_or_an_occurrence():
    cvv = Replacement("417", "123", "CARD_CVV", "p1")
    text = "cvv 417, OLED417A, 9417, 417 pieces, 41.417, 1,417"
    assert put(text, cvv) == "cvv 123, OLED417A, 9417, 417 pieces, 41.417, 1,417"
    assert refusal("417 pieces", cvv) == "ambiguous"
    named = Replacement("417", "123", "CARD_CVV", "p1", (1,))
    assert put("417 pieces, and the 417", named) == "417 pieces, and the 123"


def test_replacement_that_contains_a_target_leaves_residue():
    assert refusal("Ann", name("Ann", "Ann-Marie")) == "residue"


def test_a_second_application_refuses():
    once = put("Ann Delacroix and Ann", ANN, FULL)
    assert refusal(once, ANN, FULL) in {"absent", "already_there"}


def test_refusals_never_hold_the_text():
    with pytest.raises(RefusedError) as error:
        substitute("nobody", [name("Secretname", "Jane")])
    assert "ecretname" not in str(error.value)


# ------------------------------------------------------------- what holds for any text

NASTY = "\u200b\u200d\u0301\u00a0\u00adß\ufb01İıſ\u1100\u1161\u11a8\uff76\uff9e\U0001f469\u0345ǆ½²ﷺ\u202e\ufe0f\u3000\r\n\x00"
TEXTS = st.text(st.one_of(st.sampled_from(NASTY + "Aan .-@/'"), st.characters()), max_size=40)


@given(TEXTS)
def test_canonical_places_run_through_the_text(text):
    form = canonical(text)
    assert len(form.text) == len(form.places)
    assert list(form.places) == sorted(form.places)
    assert all(0 <= a < b <= len(text) for a, b in form.places)


@given(TEXTS)
def test_canonical_is_final(text):
    assert canonical(canonical(text).text).text == canonical(text).text


@given(TEXTS)
def test_nfc_and_nfd_are_the_same(text):
    assume(not any(unicodedata.category(char) == "Cf" for char in text))
    forms = {form: unicodedata.normalize(form, text) for form in ("NFC", "NFD")}
    assert same(forms["NFC"], forms["NFD"])


@given(
    st.lists(TEXTS, min_size=2, max_size=4), st.sampled_from(["Zqann Wxdel", "Ž\u0301qø", "王小明"])
)
def test_everything_else_stays_and_the_original_comes_back(parts, target):
    text = f" {target} ".join(parts)
    item = name(target, "Kyvor Plimt")
    try:
        found = substitute(text, [item])
    except RefusedError:
        # Only where the text around it makes another word, an initial or an address of it.
        assume(False)
    assert found.original() == text
    assert not places(found.text, item, "US")
    at = new_at = 0
    for edit in found.edits:
        assert text[at : edit.start] == found.text[new_at : edit.new_start]
        assert text[edit.start : edit.end] == edit.old
        at, new_at = edit.end, edit.new_end
    assert text[at:] == found.text[new_at:]
    with pytest.raises(RefusedError):
        substitute(found.text, [item])


@given(TEXTS, TEXTS)
def test_a_letter_at_the_side_is_another_word(before, after):
    text = f"{before}xZqannx{after}"
    assert not places(text, name("Zqann", "Kyvor"), "US")
