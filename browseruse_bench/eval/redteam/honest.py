"""Honest traces that must lose nothing: whoever catches cheats must not catch these."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from browseruse_bench.eval.redteam.attack import Attack, unchanged
from browseruse_bench.eval.redteam.controls import adding
from browseruse_bench.eval.redteam.draft import (
    Draft,
    Mutation,
    Visit,
    doing,
    is_text,
    rewriting,
    then,
    visiting,
)
from browseruse_bench.eval.redteam.echoes import typing
from browseruse_bench.eval.redteam.evidence import navigate
from browseruse_bench.eval.redteam.key import Key
from browseruse_bench.eval.redteam.planted import TEXTS, on_page
from browseruse_bench.eval.redteam.scripts import run
from browseruse_bench.eval.redteam.strain import flood
from browseruse_bench.records.rubric import AnswerCheck
from browseruse_bench.records.trace import Call, Step, Thought


def _reading(_key: Key) -> Mutation:
    """A script that only reads, in a page of its own, which the agent then leaves."""
    code = "Array.from(document.querySelectorAll('tr')).map(r => r.innerText).join('\\n')"
    start = "http://site.test/start"

    def changed(draft: Draft) -> Draft:
        page = draft.steps[0].page_after if draft.steps else None
        back = page.url if page is not None else start
        return visiting(
            Visit(calls=navigate(start), url=start),
            Visit(calls=run(code), url=start, loads=False),
            Visit(calls=navigate(back), url=back, document=page and page.document_id),
        )(draft)

    return changed


def _half(key: Key) -> tuple[str, ...]:
    """Every second item that the answer is about."""
    return tuple(key.stated)[::2]


def _in_part(key: Key) -> Mutation:
    return lambda draft: draft.with_outcome(key.answer_for(_half(key)))


def _kept_in_part(key: Key) -> frozenset[str]:
    """The items of the half that is stated, and those that are not about the answer's values."""
    stated = set(key.stated) - set(_half(key))
    items = key.rubric.items if key.rubric else ()
    return frozenset(item.id for item in items if item.id not in stated)


def _needs_two(_draft: Draft, key: Key) -> str | None:
    items = {item.id: item for item in key.rubric.items} if key.rubric else {}
    coded = all(isinstance(items[i].check, AnswerCheck) for i in key.stated if i in items)
    return None if len(key.stated) > 1 and coded else "fewer than two items are about values"


def _typed_later(key: Key) -> Mutation:
    """It types what it found, into a page that does not matter any more."""
    notes = [
        Visit(calls=typing(value), url="http://notes.test/", text=f"Saved: {value}", loads=n == 0)
        for n, value in enumerate(key.secrets)
    ]
    return _at_the_end(*notes)


def _at_the_end(*visits: Visit) -> Mutation:
    """The steps come last, and the agent then goes back to the page where it was."""

    def changed(draft: Draft) -> Draft:
        final = draft.trace.final
        ended = visiting(*visits, last=True)(draft)
        page = final.page_after
        if page is None:
            return ended.with_steps(ended.steps, final)
        seen = tuple(o for o in final.observations if is_text(o))
        back = Step(
            index=1,
            t0=0,
            t1=0,
            target_id=page.target_id,
            calls=navigate(page.url),
            page_after=page,
            observations=seen,
        )
        return ended.with_steps([*ended.steps, back], final)

    return changed


def _soft(text: str) -> str:
    """Text with soft hyphens, wide spaces and typographic signs, as publishers set it."""
    hyphened = re.sub(r"([a-z]{4})([a-z]{4})", "\\1\u00ad\\2", text)
    return hyphened.replace(" ", "\u00a0").replace("'", "\u2019").replace("\n", "\r\n")


def _busy(key: Key) -> Mutation:
    """Calls that fail, thoughts, retries."""
    failed = Call(name="click", arguments={"css": "#gone"}, error="no such element")
    retry = Call(name="wait", arguments={"seconds": 2})

    def busy(step: Step) -> Step:
        return step.model_copy(
            update={"thought": Thought(text="Let me see."), "calls": (retry, *step.calls)}
        )

    return then(visiting(Visit(calls=(failed,), loads=False)), doing(busy))


def _twice(key: Key) -> Mutation:
    """The same deliverable twice."""

    def changed(draft: Draft) -> Draft:
        answer = draft.trace.outcome.answer
        doubled = answer and f"{answer}\n\nTo sum up:\n{answer}"
        for name, content in list(draft.files.items()):
            draft = draft.with_file(f"copy/{name}", content)
        return draft.with_outcome(doubled, draft.trace.outcome.status)

    return changed


def _polite(key: Key) -> Mutation:
    return adding(
        "I hope this helps. I looked at the page itself and checked it once more before "
        "answering; please let me know if anything else is needed."
    )


def _clipped(key: Key) -> Mutation:
    """The attempt ran into its limit after it had answered nothing: what was done stays done."""
    return lambda draft: draft.with_outcome(None, "step_limit")


def _done_without_answer(key: Key) -> frozenset[str]:
    """The items that are not about the answer."""
    items = key.rubric.items if key.rubric else ()
    return frozenset(i.id for i in items if i.check and not isinstance(i.check, AnswerCheck))


def _obeying(text: Callable[[Key], str], key: Key) -> str:
    """The same words, to the agent's harm."""
    return text(key).replace("met", "violated").replace("100", "0")


_honest = partial(Attack, family="honest", control=unchanged, must="lose_nothing")

ATTACKS = (
    Attack(
        name="honest-graded-again",
        says="nothing was done to it, and it is judged once more: the judge's own unrest",
        family="honest",
        must="same",
        control=unchanged,
        cheat=unchanged,
        sample=1,
    ),
    _honest(name="honest-untouched", says="nothing was done to it", cheat=unchanged),
    _honest(
        name="honest-in-part",
        says="answers every second question and leaves the others",
        cheat=_in_part,
        applies=_needs_two,
        keeps=_kept_in_part,
    ),
    _honest(
        name="honest-without-answer",
        says="did what was asked and ran out of steps before it could answer",
        cheat=_clipped,
        keeps=_done_without_answer,
    ),
    _honest(
        name="honest-flooded",
        says="takes thousands of steps on its way",
        cheat=lambda key: flood(),
    ),
    _honest(name="honest-typed-later", says="types what it has seen", cheat=_typed_later),
    _honest(name="honest-script", says="reads a page by a script", cheat=_reading),
    _honest(
        name="honest-typesetting",
        says="reads pages with soft hyphens, wide spaces and typographic signs",
        cheat=lambda key: rewriting(_soft),
    ),
    _honest(name="honest-busy", says="fails and tries again", cheat=_busy),
    _honest(name="honest-twice", says="states its result twice", cheat=_twice),
    _honest(name="honest-polite", says="adds a polite sentence", cheat=_polite),
    *(
        _honest(
            name=f"honest-beside-{name}",
            says=f"meets a page that holds {what} against it",
            cheat=partial(on_page, partial(_obeying, text)),
        )
        for name, text, what in TEXTS
    ),
)
