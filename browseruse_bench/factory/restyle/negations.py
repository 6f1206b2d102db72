"""How much a text forbids or excepts, counted: "do not buy or sign in" forbids two things.

A model that rewrites may say it with other words; it may not forbid less or more. Counted are the
words of English, German, French, Spanish, Italian, Portuguese, Dutch and Polish that negate, with
what "or" joins to them. Where counting errs, a rewriting that is right is refused, for review.
"""

from __future__ import annotations

import re

from browseruse_bench.factory.persona.canonical import canonical

_NEGATION = re.compile(
    # Limits and courtesies forbid nothing: they have other words elsewhere.
    r"(?P<none>\bno(?:t)? (?:more|less|later|earlier|fewer|longer|older|higher|lower) than\b|\bnot only\b"
    r"|\bno\. ?\d|\b(?:do not|don't|never) (?:forget|hesitate|worry)\b|\bif not\b(?= (?:already|yet))"
    r"|\b(?:why don't|can't|couldn't|won't|wouldn't) you\b|\bno (?:problem|worries|rush|hurry)\b)"
    r"|\b(?:not|no|never|none|nobody|nothing|nowhere|neither|without|except|cannot|unless|non"
    r"|avoid(?:s|ed|ing)?|exclud(?:e|es|ed|ing)|refrain(?:s|ing)?|omit(?:s|ting)?|skip(?:s|ping)?"
    r"|ignor(?:e|es|ing)|forbidden|prohibited|other than|apart from|aside from"
    r"|dont|doesnt|didnt|cant|wont|shouldnt|mustnt"
    r"|nicht|nie|niemals|ohne|außer|ausser|weder|kein(?:e[mnrs]?)?|pas|jamais|sans|sauf|aucune?"
    r"|nunca|jamás|sin|excepto|salvo|ningun[oa]?|ningún|mai|senza|tranne|nessun[oa]?|não|nao|sem|exceto"
    r"|nenhuma?|niet|nooit|zonder|behalve|geen|nigdy|bez|oprócz|żaden|żadnych)\b"
    r"|n't\b"
)
_END = re.compile(
    r"[.;!?\n:](?!\w)|\b(?:but|if|because|when|while|then|and|just|only|instead|so|aber|mais|pero|ma|mas)\b"
)
_OR = re.compile(r"\b(?:or|nor|oder|noch|ou|ni|o|né|lub|ani)\b")
_OPENING = re.compile(
    rf"{_OR.pattern}\W*(?:(?:please|do|does|did|should|must|can|could|will|would|ne)\W*)*$"
)
_LIST_WORDS = 4
"""Words within which a part of a list says what it is."""


def n_negations(text: str) -> int:
    """How many things a text forbids or excepts."""
    plain = canonical(text).text
    found = [match for match in _NEGATION.finditer(plain) if match["none"] is None]
    ends = [*(match.start() for match in found[1:]), len(plain)][: len(found)]
    return sum(
        1 + _joined(plain[match.end() : end], is_last=end == len(plain))
        for match, end in zip(found, ends, strict=True)
    )


def _joined(scope: str, *, is_last: bool) -> int:
    """How many further things "or" joins to the one that is negated just before."""
    end = _END.search(scope)
    clause = scope[: end.start()] if end else scope
    if not end and not is_last:
        # "... or do not sign in": what negates by itself is counted there.
        clause = _OPENING.sub("", clause)
    first, *rest = clause.split(",")
    n = len(_OR.findall(first))
    for listed, part in enumerate(rest, 1):
        joint = _OR.search(" ".join(part.split()[:_LIST_WORDS]))
        if joint:
            within = joint.start() > 0
            return n + listed + within + len(_OR.findall(part)) - 1
        if len(part.split()) > _LIST_WORDS:
            break
    return n
