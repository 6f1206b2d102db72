"""Tasks on docs.test. Every answer is computed from the signatures of the installed package.

Templates, by the length of the path:

    default   the default of one parameter, and how many parameters there are        easy
    owner     the one member of a section that takes a parameter of this name        medium
    survey    every member of a section looked at, one page each                     hard

The path of a survey cannot be shorter than the section: a signature is shown on the page of
its member only, and each of them is an operand of the answer.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Sequence
from typing import Any

from builder.draft import Draft, Wrong

from browseruse_bench.sites.docs import HOST, MODULE, check_package, page_of, sections

HOME = f"http://{HOST}/"
CHECKED_ON = "2026-11-30"
NEXT = "div.relations a[title='next chapter']"

Steps = list[dict[str, Any]]


def drafts() -> Iterator[Draft]:
    """All tasks of this site; the pinned version of the package must be installed."""
    check_package()
    yield from _default()
    yield from _owner()
    yield from _survey()


# The package


def parameters(name: str) -> dict[str, inspect.Parameter]:
    """The parameters of a member, in order."""
    member = getattr(importlib.import_module(MODULE), name)
    return dict(inspect.signature(member).parameters)


def shown(name: str) -> str:
    """The signature as its page shows it, up to the first default that has no plain form."""
    signature = str(inspect.signature(getattr(importlib.import_module(MODULE), name)))
    plain = "" if signature == "()" else signature.partition("<")[0]
    return f"{MODULE}.{name}{plain}"


def section_of(name: str) -> str:
    (title,) = (title for title, members in sections().items() if name in members)
    return title


def takers(title: str, parameter: str) -> list[str]:
    """The members of a section with a parameter of this name."""
    return [name for name in sections()[title] if parameter in parameters(name)]


# Actions


def click(selector: str) -> dict[str, Any]:
    return {"click": {"css": selector}}


def open_section(title: str) -> Steps:
    return [{"navigate": HOME}, click(f"div.body a[href='{page_of(title)}.html']")]


def open_member(name: str) -> Steps:
    """From the page of its section."""
    return [click(f"div.body a[href='api/{name}.html']"), {"wait": {"text": shown(name)}}]


def look_up(name: str) -> Steps:
    return [*open_section(section_of(name)), *open_member(name)]


def search(word: str, name: str) -> Steps:
    """Find a member's page by a word on it."""
    return [
        {"navigate": HOME},
        {"type": {"into": {"css": "div.sphinxsidebar input[name='q']"}, "text": word}},
        {"key": "Enter"},
        click(f"ul.search a[href^='api/{name}.html']"),
        {"wait": {"text": shown(name)}},
    ]


def read_through(members: Sequence[str]) -> Steps:
    """From a section's page through the pages of its first members."""
    first, *others = members
    steps = open_member(first)
    for name in others:
        steps += [click(NEXT), {"wait": {"text": shown(name)}}]
    return steps


# Rubrics


def answer(
    item: str, requirement: str, weight: int, values: list[Any], facts: list[str], **check: Any
) -> dict[str, Any]:
    return {
        "id": item,
        "requirement": requirement,
        "facts": facts,
        "weight": weight,
        "check": {"kind": "answer", "values": values, **check},
    }


def signature_fact(number: int, name: str) -> dict[str, Any]:
    return {
        "id": f"F{number}",
        "claim": f"{name} takes these parameters, with these defaults.",
        "values": [shown(name)],
        "url": f"{HOME}api/{name}.html",
        "quote": shown(name),
        "how": "site",
        "checked_on": CHECKED_ON,
    }


# Templates


def _default() -> Iterator[Draft]:
    cases = (
        ("grouper", "incomplete", "fillvalue"),
        ("split_at", "maxsplit", "keep_separator"),
        ("replace", "window_size", "count"),
    )
    for number, (name, parameter, other) in enumerate(cases, 1):
        takes = parameters(name)
        default, confused = takes[parameter].default, takes[other].default
        value = default if isinstance(default, int) else str(default)
        assert str(default) != str(len(takes)), "one number would be the answer to both questions"
        how = {"match": "number" if isinstance(default, int) else "text", "seen": [shown(name)]}
        yield Draft(
            task_id=f"docs-default-{number}",
            template="docs-default",
            task=f"I am about to call {name} from more-itertools and want to leave out its "
            f"argument {parameter}. Look the function up in the documentation: what is the "
            f"default value of {parameter}, and how many parameters does {name} have in all?",
            website=HOST,
            start_url=HOME,
            category="Reference",
            difficulty="easy",
            expected_result=f"{default}; {len(takes)} parameters",
            items=[
                answer("A1_default", f"Says that {parameter} is {default!r} by default.", 70,
                       [value], ["F1"], **how),
                answer("A2_number", f"Says that {name} has {len(takes)} parameters.", 30,
                       [len(takes)], ["F1"], match="number", seen=[shown(name)]),
            ],
            facts=[signature_fact(1, name)],
            failures=[
                {"text": "Reads the default of another parameter.",
                 "looks_like": f"the answer {confused!r}, which is the default of {other}"},
            ],
            solution=[
                *look_up(name),
                {"done": f"{parameter} is {default!r} by default; {len(takes)} parameters in all"},
            ],
            wrong=Wrong(
                why=f"Gives the default of {other} in place of that of {parameter}.",
                solution=[
                    *look_up(name),
                    {"done": f"{parameter} is {confused!r} by default; "
                     f"{len(takes)} parameters in all"},
                ],
                points=30,
            ),
        )  # fmt: skip


def _owner() -> Iterator[Draft]:
    cases = (
        ("Others", "result_index", "tabulate"),
        ("Augmenting", "distance", "repeat_each"),
        ("Combinatorics", "steps", "random_product"),
    )
    for number, (title, parameter, near) in enumerate(cases, 1):
        (name,) = takers(title, parameter)
        default = parameters(name)[parameter].default
        also = parameters(near)
        yield Draft(
            task_id=f"docs-owner-{number}",
            template="docs-owner",
            task=f"In the section {title} of the more-itertools documentation there is exactly "
            f"one function that has a parameter called {parameter} in its signature, but I "
            f"forgot which one. What is the function called, and what is the default value of "
            f"{parameter}?",
            website=HOST,
            start_url=HOME,
            category="Reference",
            difficulty="medium",
            expected_result=f"{name}; {default}",
            items=[
                answer("A1_function", f"Names the function {name}.", 60, [name], ["F1"],
                       seen=[shown(name)]),
                answer("A2_default", f"Says that {parameter} is {default} by default.", 40,
                       [default], ["F1"], match="number", seen=[shown(name)]),
            ],
            facts=[signature_fact(1, name)],
            failures=[
                {"text": "Names a function of the section that sounds alike.",
                 "looks_like": f"the answer {near}, whose parameters are {', '.join(also)}"},
            ],
            solution=[
                *search(parameter, name),
                {"done": f"It is {name}; {parameter} is {default} by default"},
            ],
            wrong=Wrong(
                why=f"Names {near} of the same section, which takes no {parameter}.",
                solution=[
                    *look_up(near),
                    {"done": f"It is {near}; {parameter} is {default} by default"},
                ],
                points=0,
            ),
        )  # fmt: skip


def _survey() -> Iterator[Draft]:
    cases = (
        ("Grouping", "strict", "sizes"),
        ("Summarizing", "key", "counts"),
        ("Others", "pred", "chunk_size"),
        ("Combinatorics", "repeat", "min_size"),
    )
    for number, (title, parameter, rare) in enumerate(cases, 1):
        members = sections()[title]
        found = takers(title, parameter)
        (single,) = takers(title, rare)
        assert single not in found, "the list would answer the second question as well"
        before_last = members[: members.index(found[-1])]
        assert single in before_last
        facts = [signature_fact(n, name) for n, name in enumerate(members, 1)]
        told = f"{{}}; {rare} belongs to {single}"
        yield Draft(
            task_id=f"docs-survey-{number}",
            template="docs-survey",
            task=f"Please go through all {len(members)} entries of the section {title} in the "
            f"more-itertools documentation and look at the signature on the page of each. Which "
            f"of them have a parameter that is called exactly {parameter}? List them all. And "
            f"which single entry has one that is called {rare}?",
            website=HOST,
            start_url=HOME,
            category="Reference",
            difficulty="hard",
            expected_result=told.format(", ".join(found)),
            items=[
                answer("A1_all", f"Lists exactly {', '.join(found)}.", 70, list(found),
                       [fact["id"] for fact in facts], match="list",
                       seen=[shown(name) for name in members]),
                answer("A2_single", f"Says that {single} has the parameter {rare}.", 30, [single],
                       [facts[members.index(single)]["id"]], seen=[shown(single)]),
            ],
            facts=facts,
            failures=[
                {"text": "Stops before the last entry.",
                 "looks_like": f"an answer without {found[-1]}"},
            ],
            solution=[
                *open_section(title), *read_through(members),
                {"done": told.format(", ".join(found))},
            ],
            wrong=Wrong(
                why=f"Stops after {len(before_last)} of the {len(members)} entries and so "
                f"misses {found[-1]}.",
                solution=[
                    *open_section(title), *read_through(before_last),
                    {"done": told.format(", ".join(found[:-1]))},
                ],
                points=30,
            ),
        )  # fmt: skip
