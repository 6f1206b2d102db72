"""A corpus with planted personal data, public benchmark texts and rows that no tag permits, and
the models that know what was planted: a labeller, a finder of personal data, a restyler.

Everything planted can be told by its shape: family names end in `quenby`, phone numbers are of
area 312, card numbers begin with 4539 14, and rows without a permitted tag hold `FORBIDDEN`.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import corpus_text

FORBIDDEN = "zzunpermittedzz"
FAMILY = "quenby"
TAG = "research"
PERSONAL = (
    "Fill in the contact form there for {name}, phone {phone}, e-mail {email}, and ask for a call.",
    "The receipt goes to {email} and the parcel is for {name}; call {phone} if the shop asks.",
    "Pay with card {card} in the name of {name}, and give {email} for the confirmation.",
    "Ask the shop to ring {name} at {phone} before it delivers.",
)
ACCOUNT = "Log in there with username {user} and password {password} and read my last invoice."
FACTS = "It is for {name}, chief oboist at Philharmonie Ost in Tartu."
_PLANTED = {
    "NAME": re.compile(rf"\b[A-Z][a-z]+ +[A-Z][a-z]*{FAMILY}\b", re.IGNORECASE),
    "EMAIL": re.compile(rf"\b[a-z]+\.[a-z]*{FAMILY}@outlook\.com\b", re.IGNORECASE),
    "PHONE": re.compile(r"\(312\) \d{3}-\d{4}"),
    "CARD": re.compile(r"\b4539 14\d\d \d{4} \d{4}\b"),
    "USERNAME": re.compile(rf"(?<=username )[a-z]+{FAMILY}_\d+", re.IGNORECASE),
    "PASSWORD": re.compile(r"(?<=password )\S+", re.IGNORECASE),
}
_NAMES = re.compile(
    rf"\b(?:{'|'.join(corpus_text.FIRST)})\s+(?:{'|'.join(corpus_text.LAST)})\b", re.IGNORECASE
)
MARKS = re.compile(
    rf"{FAMILY}|\(312\) \d{{3}}-\d{{4}}|4539 14\d\d \d{{4}} \d{{4}}|"
    rf"(?:{'|'.join(corpus_text.FIRST)}) (?:{'|'.join(corpus_text.LAST)})",
    re.IGNORECASE,
)
"""Finds any planted value, and any full name of the corpus."""


def person(r: random.Random) -> dict[str, str]:
    """Somebody who is nobody: values that belong together."""
    given = "".join(r.choices(corpus_text.SYLLABLES, k=2)).capitalize()
    family = "".join(r.choices(corpus_text.SYLLABLES, k=2)).capitalize() + FAMILY
    slug = f"{given}.{family}".lower()
    return {
        "name": f"{given} {family}",
        "email": f"{slug}@outlook.com",
        "phone": f"(312) {r.randint(620, 799)}-{r.randint(1000, 9999)}",
        "card": card(r),
        "user": f"{given}{family}_{r.randint(10, 99)}".lower(),
        "password": "Kq" + "".join(r.choices("bdfghjkmnprstvwxz23456789", k=10)) + "!7",
    }


def card(r: random.Random) -> str:
    """A number with its check digit."""
    digits = "453914" + "".join(str(r.randrange(10)) for _ in range(9))
    total = 0
    for i, digit in enumerate(map(int, reversed(digits))):
        total += sum(divmod(2 * digit, 10)) if i % 2 == 0 else digit
    digits += str(-total % 10)
    return " ".join(digits[i : i + 4] for i in range(0, 16, 4))


def rows(
    start: int, stop: int, *, n: int, seed: int, ratio: float, planted: float, forbidden: float
) -> Iterator[dict[str, Any]]:
    """Rows `start` to `stop` of `n`: a share of them with personal data, a share without a tag.

    Texts of the others, with their flags, are those of `corpus_text`; `values` names what was
    planted.
    """
    r = random.Random(f"factory/{seed}/{start}")
    plain = corpus_text.rows(start, stop, n=n, seed=seed, ratio=ratio)
    for i, made in zip(range(start, stop), plain, strict=True):
        row = {"text": made.text, "time": 1_700_000_000 + 7 * i, "data_use": TAG, "values": []}
        chance = r.random()
        if chance < forbidden:
            row["text"] = f"{made.text} {FORBIDDEN}{i} for {person(r)['name']}"
            row["data_use"] = r.choice((None, "billing-only", TAG.upper()))
        elif chance < forbidden + planted:
            who = person(r)
            form = r.choices((*PERSONAL, ACCOUNT, FACTS), (5, 5, 5, 5, 2, 1))[0]
            task = corpus_text.task(seed * 10**10 + 7 * 10**9 + i)
            text = "".join(task.pieces).strip()[:400].rpartition(" ")[0]
            row["text"] = f"{text.rstrip('.')}. {form.format(**who)}"
            row["values"] = [value for name, value in who.items() if f"{{{name}}}" in form]
        yield row


# --------------------------------------------------------------------- the models


def _chance(text: str) -> int:
    """0 to 99, by the text."""
    return hashlib.sha256(text.encode()).digest()[0] * 100 // 256


def label(text: str, sample: int) -> dict[str, Any]:
    """The labeller: nine of ten tasks are suitable."""
    task = text.rpartition("The task:\n\n")[2]
    suits = _chance("label" + task) < 90
    return {
        "reason": "It can be done." if suits else "Nobody could tell when it is done.",
        "quote": "" if suits else task.split(".")[0],
        "tags": [] if suits else ["too_vague"],
        "verdict": "suitable" if suits else "unsuitable",
    }


def find(text: str, sample: int) -> dict[str, Any]:
    """The finder of personal data: right, but for one reply of fifty with a string of its own."""
    task = text.rpartition("<task>\n")[2].partition("\n</task>")[0]
    said = re.search(r"Candidates found by a program: (.*)\n", text)
    targets: dict[str, dict[str, Any]] = {}
    people: dict[str, str] = {}
    names = [*_PLANTED["NAME"].findall(task), *_NAMES.findall(task)]
    for name in names:
        people.setdefault(name.lower(), f"p{len(people) + 1}")
        targets[name] = _target(name, "NAME", people[name.lower()])
    for kind, pattern in _PLANTED.items():
        for value in pattern.findall(task) if kind != "NAME" else ():
            people.setdefault("", "p1") if not people else None
            targets[value] = _target(value, kind, "p1")
    if _chance("find" + task) < 2:
        targets["Nobody Here"] = _target("Nobody Here", "NAME", "p1")
        people = people or {"": "p1"}
    kept = [
        value
        for candidate in (said[1].split("; ") if said else ())
        for value in [candidate.partition(": ")[2]]
        if value and value in task and not any(value in t or t in value for t in targets)
    ]
    facts = []
    if "chief oboist" in task.lower() and people:
        for value, kind in (
            ("chief oboist", "role"),
            ("Philharmonie Ost", "employer"),
            ("Tartu", "town"),
        ):
            if value in task:
                facts.append({"verbatim": value, "kind": kind, "person": "p1"})
    return {
        "persons": [{"id": p, "gender": "n", "minor": False} for p in sorted(set(people.values()))],
        "targets": list(targets.values()),
        "kept": [{"verbatim": value, "reason": "not_personal"} for value in dict.fromkeys(kept)],
        "facts": facts,
    }


def _target(value: str, kind: str, who: str) -> dict[str, Any]:
    return {
        "verbatim": value,
        "occurrences": None,
        "kind": kind,
        "person": who,
        "incidental": kind not in ("USERNAME", "PASSWORD"),
    }


LEAD = "Please help me with this: "


def restyle(text: str, sample: int) -> dict[str, Any]:
    """The restyler: it says please, and loses or adds something in one text of twenty. As the one
    who compares it pairs sentences that are the same but for that.
    """
    if "<first>\n" in text:
        first, second = (
            text.rpartition(f"<{side}>\n")[2].partition(f"\n</{side}>")[0]
            for side in ("first", "second")
        )
        return _compared(first, second)
    task = text.rpartition("<task>\n")[2].partition("\n</task>")[0]
    chance = _chance("restyle" + task)
    if chance < 3:
        return {"text": LEAD + " ".join(_sentences(task)[:-1] or [task[: len(task) // 2]])}
    if chance < 5:
        return {"text": f"{LEAD}{task} Also call the shop."}
    return {"text": LEAD + task}


def _sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?])\s+", text.strip()) if part]


def _compared(first: str, second: str) -> dict[str, Any]:
    both = [
        [{"id": f"{side}{i}", "quote": quote} for i, quote in enumerate(_sentences(text))]
        for side, text in (("a", first), ("b", second))
    ]
    plain = [[item["quote"].removeprefix(LEAD) for item in items] for items in both]
    pairs = []
    taken: set[int] = set()
    for i, quote in enumerate(plain[0]):
        j = next((j for j, other in enumerate(plain[1]) if other == quote and j not in taken), None)
        if j is not None:
            taken.add(j)
            pairs.append({"first": f"a{i}", "second": f"b{j}"})
    return {"first": both[0], "second": both[1], "pairs": pairs}


# --------------------------------------------------------------------- the workspace


def workspace(root: Path, corpus: Path, *, engine: str = "embedded") -> Path:
    """Write a workspace that reads `corpus`, with the models of this file; return its folder."""
    public = root / "public"
    public.mkdir(parents=True)
    texts = corpus_text.benchmark_texts()
    (public / "tasks.json").write_text(
        json.dumps([{"id": f"b{i}", "task": text} for i, text in enumerate(texts)])
    )
    models = "".join(
        f'[models.{name}]\nid = "scripted:{Path(__file__).resolve()}:{name}"\n'
        'may_see = "restricted"\n'
        for name in ("label", "find", "restyle")
    )
    (root / "workspace.toml").write_text(
        f'name = "planted"\n[corpus]\npaths = [{json.dumps(str(corpus.resolve()))}]\n'
        'columns = { text = "text", tag = "data_use", time = "time" }\n'
        f'permitted_tags = ["{TAG}"]\nbenchmarks = ["public"]\nengine = "{engine}"\n'
        '[roles]\nlabeller = "label"\npersona = "find"\nrestyler = "restyle"\n' + models
    )
    return root
