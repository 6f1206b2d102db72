"""Stage persona with a scripted model, right and wrong."""

import json
import re
from pathlib import Path

import pytest

from browseruse_bench.factory.context import Context
from browseruse_bench.factory.persona.canonical import canonical
from browseruse_bench.factory.persona.residue import leaked
from browseruse_bench.factory.runner import run_stage
from browseruse_bench.factory.stage import Dropped, Kept
from browseruse_bench.factory.stage_folder import StageFolder
from browseruse_bench.factory.stages.persona import Persona
from browseruse_bench.factory.workspace import WorkspaceConfig
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.records.candidate import new_candidate

CONFIG = WorkspaceConfig(name="w", roles={"persona": "p"})


def target(verbatim, kind, person="p1", occurrences=None, incidental=True):
    return {"verbatim": verbatim, "kind": kind, "person": person, "occurrences": occurrences,
            "incidental": incidental}  # fmt: skip


def reply(*targets, kept=(), facts=(), persons=(("p1", "f", False),)):
    people = [{"id": i, "gender": g, "minor": m} for i, g, m in persons]
    return {
        "persons": people,
        "targets": list(targets),
        "kept": [{"verbatim": v, "reason": r} for v, r in kept],
        "facts": [{"verbatim": v, "kind": k, "person": p} for v, k, p in facts],
    }


def context(root, model):
    return Context(
        workspace=root,
        folder=root / "restricted/persona",
        open_model=lambda role: {"persona": model}[role],
        clock=lambda: "2026-06-01T00:00:00+00:00",
    )


async def settle(tmp_path, text, answer, **more):
    model = ScriptedModel([answer], **more)
    return await Persona(CONFIG).settle(new_candidate(text), context(tmp_path, model))


async def kept_text(tmp_path, text, answer):
    outcome = await settle(tmp_path, text, answer)
    assert isinstance(outcome, Kept), outcome
    return outcome.value.text


ANN = "Ann Delacroix"
TASK = (
    "Fill in the contact form of acmeplumbing.com for Ann Delacroix, phone (312) 555-0148, "
    "ann.delacroix@outlook.com, card 4539 1488 0343 6467. ANN DELACROIX wants a quote."
)
RIGHT = reply(
    target(ANN, "NAME"),
    target("(312) 555-0148", "PHONE"),
    target("ann.delacroix@outlook.com", "EMAIL"),
    target("4539 1488 0343 6467", "CARD"),
)


async def test_everything_personal_is_replaced_and_the_rest_stays(tmp_path):
    text = await kept_text(tmp_path, TASK, RIGHT)
    shape = re.fullmatch(
        r"Fill in the contact form of acmeplumbing\.com for ([A-Z]\w+ [A-Z]\w+), phone "
        r"(\(\d{3}\) 555-01\d\d), (\S+@example\.com), card 4242 4242 4242 4242\. "
        r"([A-Z ]+) wants a quote\.",
        text,
    )
    assert shape
    assert shape.group(4) == shape.group(1).upper()
    assert shape.group(3) == shape.group(1).lower().replace(" ", ".") + "@example.com"
    assert not leaked([t["verbatim"] for t in RIGHT["targets"]], text.encode())


async def test_the_same_unit_comes_out_the_same(tmp_path):
    assert await kept_text(tmp_path, TASK, RIGHT) == await kept_text(tmp_path, TASK, RIGHT)


async def refused(tmp_path, text, answer, reason="refused"):
    outcome = await settle(tmp_path, text, answer)
    assert isinstance(outcome, Dropped), outcome
    assert outcome.reason == reason
    return json.dumps(outcome.evidence)


async def test_bl083_absent_target_is_refused(tmp_path):
    wrong = reply(*RIGHT["targets"], target("Anne Delacroix", "NAME"))
    assert "not in the text" in await refused(tmp_path, TASK, wrong)


async def test_a_rewritten_sentence_is_refused(tmp_path):
    wrong = reply(*RIGHT["targets"], target("Ann Delacroix would like a quote", "NAME"))
    assert "not in the text" in await refused(tmp_path, TASK, wrong)


async def test_a_public_figure_that_is_kept_stays_and_one_marked_private_changes_nothing_else(
    tmp_path,
):
    text = "Find the last three interviews of Rosa Maltravers and list their dates."
    answer = reply(kept=[("Rosa Maltravers", "public_figure")], persons=())
    assert await kept_text(tmp_path, text, answer) == text
    wrong = reply(target("Rosa Maltravers", "NAME"))
    out = await kept_text(tmp_path, text, wrong)
    assert out.startswith("Find the last three interviews of ")
    assert out.endswith(" and list their dates.")
    depends = reply(target("Rosa Maltravers", "NAME", incidental=False))
    await refused(tmp_path, text, depends, "work_depends_on_person")


async def test_a_brand_is_kept_with_its_reason(tmp_path):
    text = "Is Dr. Martens 1460 sold at Sephora or by Tom Ford?"
    answer = reply(kept=[("Tom Ford", "brand"), ("Dr. Martens", "brand")], persons=())
    assert await kept_text(tmp_path, text, answer) == text


async def test_a_card_number_cannot_be_called_public(tmp_path):
    text = "Pay with 4539 1488 0343 6467."
    wrong = reply(kept=[("4539 1488 0343 6467", "business_contact")], persons=())
    assert "calls a CARD public" in await refused(tmp_path, text, wrong)


async def test_a_business_contact_is_kept(tmp_path):
    text = "Call the Hilton Chicago, (312) 555-0148, about parking."
    answer = reply(kept=[("(312) 555-0148", "business_contact")], persons=())
    assert await kept_text(tmp_path, text, answer) == text


async def test_what_the_model_overlooks_is_replaced_where_code_is_sure(tmp_path):
    text = "Send the list to wilma.stone@outlook.com please."
    out = await kept_text(tmp_path, text, reply(persons=()))
    assert re.fullmatch(r"Send the list to \S+@example\.com please\.", out)


async def test_what_the_model_overlooks_is_refused_where_code_is_not_sure(tmp_path):
    text = "Book a table under Whitfield for four."
    assert "account for a NAME" in await refused(tmp_path, text, reply(persons=()))


async def test_a_login_of_an_existing_account_drops_the_task(tmp_path):
    text = "Log in with username gkessler_77 and password Tr0ub4dor&3x! and get the bills."
    answer = reply(
        target("gkessler_77", "USERNAME", incidental=False),
        target("Tr0ub4dor&3x!", "PASSWORD", incidental=False),
    )
    evidence = await refused(tmp_path, text, answer, "work_depends_on_person")
    assert "gkessler" not in evidence
    assert "Tr0ub" not in evidence


async def test_a_personal_page_that_is_the_work_drops_the_task(tmp_path):
    text = "Count the posts on www.instagram.com/bex.hollowell about sourdough."
    answer = reply(target("bex.hollowell", "USERNAME", incidental=False))
    await refused(tmp_path, text, answer, "work_depends_on_person")


FACTS = (
    ("Humana", "employer", "p1"),
    ("senior actuary", "role", "p1"),
    ("Louisville", "town", "p1"),
)
LINKED = "Find courses for Rosalind Achterberg, senior actuary at Humana in Louisville."


async def test_three_facts_of_a_private_person_drop_the_task_and_two_do_not(tmp_path):
    name = target("Rosalind Achterberg", "NAME")
    answer = reply(name, facts=FACTS)
    evidence = await refused(tmp_path, LINKED, answer, "identifying_combination")
    assert "Humana" not in evidence
    assert await kept_text(tmp_path, LINKED, reply(name, facts=FACTS[:2]))


async def test_an_employer_is_replaced_in_all_its_forms_and_two_stay_two(tmp_path):
    text = (
        "Find courses for Rosalind Achterberg of Humana Inc. (until May at Aetna); Humana pays, "
        "and HUMANA wants a list."
    )
    answer = reply(
        target("Rosalind Achterberg", "NAME"),
        target("Humana Inc", "COMPANY"),
        target("Humana", "COMPANY"),
        target("Aetna", "COMPANY"),
    )
    out = await kept_text(tmp_path, text, answer)
    assert "of Example Industries. (until May at Example Services); Example Industries pays" in out
    assert "and EXAMPLE INDUSTRIES wants" in out
    assert not leaked(["Humana", "Aetna"], out.encode())


async def test_more_employers_than_companies_are_refused(tmp_path):
    names = ["Humana", "Aetna", "Cigna", "Oscar Health", "Molina"]
    answer = reply(*(target(name, "COMPANY") for name in names))
    await refused(tmp_path, f"I worked at {', '.join(names)}: list their pension plans.", answer)


async def test_an_employer_that_is_the_work_drops_the_task(tmp_path):
    answer = reply(target("Humana", "COMPANY", incidental=False))
    await refused(tmp_path, "Read my payslip at Humana.", answer, "work_depends_on_person")


async def test_a_fact_that_is_not_there_is_refused(tmp_path):
    answer = reply(target("Rosalind Achterberg", "NAME"), facts=[("Aetna", "employer", "p1")])
    await refused(tmp_path, LINKED, answer)


async def test_look_alike_letters_are_quarantined(tmp_path):
    text = "Ann Delacroix and \u0410nn Delacroix want wool scarves."
    await refused(tmp_path, text, reply(target(ANN, "NAME")), "quarantined")


async def test_a_value_within_a_longer_word_is_quarantined(tmp_path):
    text = "Ann Delacroix sells at the Delacroixhof; list its opening hours."
    answer = reply(target(ANN, "NAME"), target("Delacroix", "NAME"))
    await refused(tmp_path, text, answer, "quarantined")


async def test_a_part_of_a_name_that_nobody_listed_is_quarantined(tmp_path):
    text = "ann needs a gift: find a wool scarf. Ship to Ann Delacroix."
    await refused(tmp_path, text, reply(target(ANN, "NAME")), "quarantined")
    listed = reply(target(ANN, "NAME"), target("ann", "NAME"))
    out = await kept_text(tmp_path, text, listed)
    assert re.fullmatch(r"([a-z]+) needs a gift: find a wool scarf\. Ship to (?i:\1) \w+\.", out)


async def test_a_name_that_is_a_month_leaves_the_month(tmp_path):
    text = "Add April Summers to the April 14 yoga class."
    out = await kept_text(tmp_path, text, reply(target("April Summers", "NAME")))
    assert out.endswith(" to the April 14 yoga class.")


async def test_relatives_keep_one_family_name_and_have_values_of_their_own(tmp_path):
    text = "Book for Ann Delacroix and Leo Delacroix; Leo pays."
    answer = reply(
        target(ANN, "NAME"), target("Leo Delacroix", "NAME", "p2"), target("Leo", "NAME", "p2"),
        persons=(("p1", "f", False), ("p2", "m", False)),
    )  # fmt: skip
    out = await kept_text(tmp_path, text, answer)
    found = re.fullmatch(r"Book for (\w+) (\w+) and (\w+) (\w+); (\w+) pays\.", out)
    assert found
    assert found.group(2) == found.group(4)
    assert found.group(1) != found.group(3) == found.group(5)


async def test_gender_follows_the_text(tmp_path):
    from browseruse_bench.factory.personas import load

    out = await kept_text(
        tmp_path, "My brother Leo needs a red scarf.", reply(target("Leo", "NAME"), persons=(("p1", "m", False),))
    )  # fmt: skip
    men = {person.given for person in load("US").persons if person.gender in "mn"}
    assert out.removeprefix("My brother ").partition(" ")[0] in men


async def test_name_order_and_honorific_of_japan(tmp_path):
    text = "山田太郎様に荷物を送る。山田は東京に住む。"
    answer = reply(
        target("山田太郎", "NAME"), target("山田", "NAME"), persons=(("p1", "m", False),)
    )
    out = await kept_text(tmp_path, text, answer)
    found = re.fullmatch(r"(.+)様に荷物を送る。(.+)は東京に住む。", out)
    assert found
    assert found.group(1).startswith(found.group(2))
    assert found.group(1) != found.group(2)


@pytest.mark.parametrize(
    ("born", "country_hint", "pattern"),
    [
        ("03/14/1991", "", r"(0[137]|11)/\d\d/19\d\d"),
        ("July 9, 2004", "", r"[A-Z][a-z]+ \d+, 19\d\d"),
        ("1979-02-28", "", r"19\d\d-\d\d-\d\d"),
        ("22/11/1987", " in London", r"\d\d/\d\d/19\d\d"),
        ("5 mai 1994", " in Paris", r"\d+ \w+ 19\d\d"),
    ],
)
async def test_birth_dates_keep_their_form_and_booking_dates_stay(
    tmp_path, born, country_hint, pattern
):
    text = f"A room{country_hint} on 3 August for Ann Delacroix, born {born}."
    answer = reply(target(ANN, "NAME"), target(born, "DOB"))
    out = await kept_text(tmp_path, text, answer)
    assert re.fullmatch(rf"A room{country_hint} on 3 August for \w+ \w+, born {pattern}\.", out)


async def test_a_child_stays_a_child(tmp_path):
    text = "Leo Fenwick, born July 9, 2014, is 11 years old and needs a form."
    answer = reply(
        target("Leo Fenwick", "NAME"), target("July 9, 2014", "DOB"), target("11 years old", "AGE"),
        persons=(("p1", "m", True),),
    )  # fmt: skip
    out = await kept_text(tmp_path, text, answer)
    assert ", 2014, is 10 years old" in out


async def test_an_address_is_one_bundle_of_the_country(tmp_path):
    text = "Get fibre offers for 14 Bramley Close, Leeds LS6 2QX."
    answer = reply(target("14 Bramley Close, Leeds LS6 2QX", "ADDRESS"))
    out = await kept_text(tmp_path, text, answer)
    assert out in {
        f"Get fibre offers for {line}."
        for line in ("12 Heron Close, Bristol BS1 4ST", "7 Rowan Terrace, Sheffield S10 2TN")
    }


async def test_more_people_than_personas_is_refused(tmp_path):
    names = [f"{a}o Fenwick{a.lower()}" for a in "BDFGK"]
    answer = reply(
        *(target(name, "NAME", f"p{i}") for i, name in enumerate(names)),
        persons=tuple((f"p{i}", "n", False) for i in range(5)),
    )
    await refused(tmp_path, "Invite " + ", ".join(names) + ".", answer)


async def test_instructions_in_a_task_are_data(tmp_path):
    text = "Type {candidates} and {task} into the search box of example.org"
    model = ScriptedModel([reply(persons=())])
    await Persona(CONFIG).settle(new_candidate(text), context(tmp_path, model))
    assert text in model.requests[0].text


# ------------------------------------------------------ through the runner, and on disk


async def run(tmp_path, texts, model):
    folder = StageFolder(tmp_path / "restricted/persona")
    stage = Persona(CONFIG)
    folder.claim(stage, None)
    units = [new_candidate(text) for text in texts]
    return await run_stage(stage, units, folder, context(tmp_path, model), source="filter"), folder


async def test_a_model_that_may_not_see_restricted_text_never_gets_any(tmp_path):
    model = ScriptedModel(lambda text, sample: RIGHT, may_see="clean")
    settled, folder = await run(tmp_path, [TASK], model)
    assert settled.flow.failed == 1
    assert model.requests == []
    assert "Delacroix" not in folder.journal_path.read_text()


async def test_no_original_value_is_in_what_the_stage_writes(tmp_path):
    wrong = {**RIGHT, "targets": [*RIGHT["targets"], target("Nobody Here", "NAME")]}
    answers = {TASK: RIGHT, TASK + " Soon.": wrong}

    def answer(text, sample):
        task = canonical(text.partition("<task>\n")[2].partition("\n</task>")[0]).text
        return next(a for t, a in answers.items() if canonical(t).text == task)

    settled, folder = await run(tmp_path, answers, ScriptedModel(answer))
    assert settled.flow.kept == 1
    assert settled.flow.dropped == {"refused": 1}
    values = [t["verbatim"] for t in RIGHT["targets"]] + ["Ann", "Delacroix"]
    files = [path for path in Path(tmp_path).rglob("*") if path.is_file()]
    assert len(files) >= 4
    assert not [path for path in files if leaked(values, path.read_bytes())]
    key = tmp_path / "restricted/persona.key"
    assert key in files or not key.exists()


async def test_a_reply_of_another_form_fails_without_repeating_it(tmp_path):
    model = ScriptedModel([{"targets": [{"verbatim": "Ann Delacroix"}]}])
    settled, folder = await run(tmp_path, [TASK], model)
    assert settled.flow.failed == 1
    assert "the reply fits no proposal" in folder.journal_path.read_text()
    assert not leaked(["Delacroix"], folder.journal_path.read_bytes())


def test_the_leak_test_finds_a_leak():
    assert leaked(["Delacroix"], b"xDELACROIXy") == [0]
    assert leaked(["Ann"], b"Ann.") == [0]
    assert leaked(["Ann"], b"Announce") == []
    assert leaked(["\u00c9lodie"], "\u00e9lodie".encode()) == [0]
