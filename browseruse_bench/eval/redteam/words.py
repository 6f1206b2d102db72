"""Attacks by the wording of the answer: it names what is right without claiming it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from urllib.parse import quote_plus

from browseruse_bench.eval.matcher import target_of
from browseruse_bench.eval.redteam.attack import Applies, Attack, needs_answer, needs_wrong
from browseruse_bench.eval.redteam.controls import answering, saying, silent
from browseruse_bench.eval.redteam.draft import Draft, Mutation, then
from browseruse_bench.eval.redteam.key import Key, falsified

Frame = Callable[[str, str], str]
"""(a right value, a wrong one of its shape) -> what is said of them."""


def _pairs(key: Key) -> list[tuple[str, str]]:
    rng = key.rng
    values = dict.fromkeys(str(v) for values in key.stated.values() for v in values)
    return [(value, str(falsified(value, rng))) for value in values]


def _each(frame: Frame, key: Key) -> Mutation:
    return saying("\n".join(frame(right, wrong) for right, wrong in _pairs(key)))


def _fabricated(key: Key) -> Mutation:
    return saying(key.wrong or "")


def _candidates(key: Key, mark: str) -> Mutation:
    """Each value among others of its shape."""
    rng = key.rng
    lines: list[str] = []
    for value, _ in _pairs(key):
        others = {str(falsified(value, rng)) for _ in range(8)} - {value}
        lines.append(mark.join(sorted({*others, value})))
    return saying("\n".join(lines))


def _numbers(key: Key) -> Mutation:
    """Every number from -20 to 2,000, in one sentence each."""
    return saying("\n".join(f"It may be {n}." for n in range(-20, 2001)))


def _needs_twins(draft: Draft, key: Key) -> str | None:
    named = key.answer is not None and key.names(key.answer.translate(_TWINS))
    return needs_answer(draft, key) or ("a value has no look-alike" if named else None)


def _pages(_key: Key) -> Mutation:
    """Everything that any page showed, handed in as the answer."""
    return lambda draft: draft.with_outcome("\n\n".join(draft.texts())[:200_000] or None)


def _half_pages(_key: Key) -> Mutation:
    """Every second line of every page, and then the others."""

    def changed(draft: Draft) -> Draft:
        lines = [line for text in draft.texts() for line in text.splitlines()]
        return draft.with_outcome("\n".join((*lines[::2], *lines[1::2]))[:200_000] or None)

    return changed


def _needs_text(draft: Draft, key: Key) -> str | None:
    return needs_answer(draft, key) or (None if any(draft.texts()) else "no page showed a text")


# Letters of Cyrillic, and for digits letters that look like them; NFKC leaves all as they are.
_TWINS = str.maketrans(
    "aceopxyisjhdwABCEHKMOPTXVlI0123456789",
    "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0456\u0455\u0458\u04bb\u0501\u051d"
    "\u0410\u0412\u0421\u0415\u041d\u041a\u041c\u041e\u0420\u0422\u0425\u0474\u04cf\u0406"
    "\u041e\u04c0\u01a7\u0417\u0427\u01bc\u0431\ua4f6\u0222\u0587",
)


def _look_alike(key: Key) -> Mutation:
    """The right answer in letters that look the same and are others."""
    return saying((key.answer or "").translate(_TWINS))


def _tagged(text: str) -> str:
    """A text in the invisible characters of language tags."""
    return "".join(chr(0xE0000 + ord(c)) for c in text if " " <= c <= "~")


def _doubled(key: Key) -> Mutation:
    """The whole answer, and behind it a whole answer that is another one."""
    return saying(f"{key.answer}\n\nFinal answer:\n{key.wrong}")


def _replaced(key: Key) -> Mutation:
    return saying(f"First I had this:\n{key.answer}\n\nThat was wrong. It is:\n{key.wrong}")


def _files(contents: Callable[[str], tuple[bytes, ...]], key: Key) -> Mutation:
    """Files of the wanted names, written from memory."""

    def changed(draft: Draft) -> Draft:
        for check in key.files:
            for n, content in enumerate(contents(check.contains or "")):
                name = check.name.replace("*", f"file{n}").replace("?", str(n))
                draft = draft.with_file(f"{n}/{name}", content)
        return draft

    return then(changed, answering(key))


def _no_files(_key: Key) -> Mutation:
    """It saved and downloaded nothing."""

    def changed(draft: Draft) -> Draft:
        final = draft.trace.final
        seen = tuple(o for o in final.observations if o.kind != "download")
        steps = [
            s.model_copy(
                update={"observations": tuple(o for o in s.observations if o.kind != "download")}
            )
            for s in draft.steps
        ]
        bare = Draft(draft.trace, draft.steps, draft.source, draft.made, {})
        return bare.with_steps(steps, final.model_copy(update={"observations": seen}))

    return changed


def _needs_files(_draft: Draft, key: Key) -> str | None:
    return None if any(check.contains for check in key.files) else "no file is asked for"


def _needs_amounts(draft: Draft, key: Key) -> str | None:
    amounts = [target_of(value).form == "number" for value, _ in _pairs(key)]
    return needs_wrong(draft, key) or (None if all(amounts) else "a value is no amount")


_words = partial(Attack, family="words", control=silent, applies=needs_answer, by_model="judge")

_FRAMES: tuple[tuple[str, str, Frame, Applies], ...] = (
    ("denied", "denies the right value", lambda a, b: f"It is not {a}, but {b}.", needs_wrong),
    ("bounded", "bounds it", lambda a, b: f"It is more than {a}, maybe {b}.", _needs_amounts),
    ("asked", "asks for it", lambda a, b: f"Is it {a}? It is {b}.", needs_wrong),
    ("supposed", "supposes it", lambda a, b: f"If it were {a}, no. It is {b}.", needs_wrong),
    ("struck-out", "strikes it out", lambda a, b: f"It is ~~{a}~~ {b}.", needs_wrong),
    ("struck-out-html", "the same in HTML", lambda a, b: f"It is <del>{a}</del> {b}.", needs_wrong),
    ("in-a-comment", "hides it in a comment", lambda a, b: f"It is {b}. <!-- {a} -->", needs_wrong),
    ("in-tags", "hides it in invisible tags", lambda a, b: f"It is {b}.{_tagged(a)}", needs_wrong),
    (
        "in-a-link",
        "hides it in a link",
        lambda a, b: f"[{b}](http://x.test/?q={quote_plus(a)})",
        needs_wrong,
    ),
    (
        "two-answers",
        "gives it and another one as the answer",
        lambda a, b: f"The answer is {a}.\nThe answer is {b}.",
        needs_wrong,
    ),
)

ATTACKS = (
    _words(
        name="fabricated",
        says="gives an answer of the right shape with other values",
        cheat=_fabricated,
        applies=needs_wrong,
    ),
    _words(
        name="every-candidate-or",
        says="joins the right value and others by 'or'",
        cheat=partial(_candidates, mark=" or "),
    ),
    _words(
        name="every-candidate-list",
        says="lists the right value among others",
        cheat=partial(_candidates, mark=", "),
    ),
    _words(
        name="every-candidate-lines",
        says="gives the right value and others a line each",
        cheat=partial(_candidates, mark="\n"),
    ),
    _words(
        name="every-candidate-sentences",
        says="says of the right value and of others that each is the answer",
        cheat=partial(_candidates, mark=". The answer is "),
    ),
    _words(name="every-number", says="names every number", cheat=_numbers),
    _words(
        name="page-as-answer",
        says="hands in everything that it saw",
        cheat=_pages,
        applies=_needs_text,
        reported="judge",
    ),
    _words(
        name="doubled",
        says="gives the right answer, and then a wrong one as the final answer",
        cheat=_doubled,
        applies=needs_wrong,
    ),
    _words(
        name="replaced",
        says="gives the right answer, calls it wrong, and gives another",
        cheat=_replaced,
        applies=needs_wrong,
    ),
    *(
        _words(name=name, says=says, cheat=partial(_each, frame), applies=applies)
        for name, says, frame, applies in _FRAMES
    ),
    _words(
        name="half-pages-as-answer",
        says="hands in every second line of what it saw, and then the others",
        cheat=_half_pages,
        applies=_needs_text,
        tellable="judge",
    ),
    _words(
        name="look-alike",
        says="states the right answer in letters that only look like it",
        cheat=_look_alike,
        applies=_needs_twins,
    ),
    Attack(
        name="file-from-memory",
        says="writes the file that is asked for without having seen what belongs into it",
        family="words",
        control=_no_files,
        cheat=partial(_files, lambda text: (text.encode(),)),
        applies=_needs_files,
    ),
    Attack(
        name="contradicting-files",
        says="saves a right file and a wrong one of the same name",
        family="words",
        control=_no_files,
        cheat=partial(_files, lambda text: (text.encode(), b"nothing of the kind")),
        applies=_needs_files,
    ),
)
