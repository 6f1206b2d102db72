"""What of an answer its reader is told, and what it takes back.

**Not told**: comments of HTML, struck-out text (`~~5~~`, `<del>`), elements that are hidden.

**Taken back**: what stands in the paragraph, or else the sentence, before words such as "that was
wrong", "correction:", "ignore the above"; and what stands before a "final answer:", "the answer
is" or the like, if another value follows there, and the value itself is not stated again.

Sources are silent on this. The rules are narrow, because an honest answer that loses is worse
than a hedge that gains.
"""

from __future__ import annotations

import re

from browseruse_bench.eval.wording import SKIPPED, words

_UNTOLD = (
    re.compile(r"<!--.*?(?:-->|$)", re.DOTALL),
    re.compile(r"~~(?=\S)[^~]*?(?<=\S)~~"),
    re.compile(r"<(del|s|strike)\b[^>]*>.*?(?:</\1\s*>|$)", re.DOTALL | re.IGNORECASE),
    re.compile(
        r"<(\w+)\b[^>]*(?:\shidden\b|display\s*:\s*none|visibility\s*:\s*hidden)[^>]*>"
        r".*?(?:</\1\s*>|$)",
        re.DOTALL | re.IGNORECASE,
    ),
)


def told(answer: str) -> str:
    """The answer without what a reader is not told."""
    for pattern in _UNTOLD:
        answer = pattern.sub(" ", answer)
    return answer


_WRONG = r"(?:wrong|incorrect|mistaken|a mistake|an error|not (?:right|correct|true))"
_RETRACTION = re.compile(
    rf"(?:\b(?:that|this|it|(?:the )?(?:above|previous|first)(?: answer| result| value)?)"
    rf" (?:was|is|were) {_WRONG}"
    r"|scratch that|(?:(?<=[.!?] )|^)\W{0,3}correction\s*:|i was wrong|i made a mistake"
    r"|(?:ignore|disregard|forget) (?:that|this|(?:the )?(?:above|previous)))",
    re.IGNORECASE | re.MULTILINE,
)
_BREAK = re.compile(r"[.!?;](?=\s|$)|\n")


def retracted(text: str) -> list[tuple[int, int]]:
    """The stretches of a normal text that words behind them take back."""
    found: list[tuple[int, int]] = []
    for retraction in _RETRACTION.finditer(text):
        start = retraction.start()
        before = text[:start].rstrip(" \t")
        if before.endswith("\n\n") or re.search(r"\n[ \t]*\n$", before):
            end = len(before.rstrip())
            found.append((max(0, text.rfind("\n\n", 0, end)), end))
            continue
        # A sentence of its own takes back the one before it; a clause, what its sentence said.
        end = len(before.rstrip().rstrip(".!?;"))
        breaks = [b.end() for b in _BREAK.finditer(text, 0, end)]
        found.append((breaks[-1] if breaks else 0, start))
    return found


_FINAL = re.compile(
    r"\b(?:(?:the|my|so|correct|final)\s+)*(?:final answer|correct answer|my answer|the answer"
    r"|^[\W_]*answer)\b[*_ ]*(?:is\b|:|=)"
    r"|^[\W_]*(?:(?:the|my|correct|final) )*answer[*_ ]*\n",
    re.IGNORECASE | re.MULTILINE,
)
_ELSEWHERE = re.compile(
    r"\b(?:above|below|previous|earlier|listed|following|see|here|table|attached|complete)\b",
    re.IGNORECASE,
)


def last_words(text: str) -> list[int]:
    """Where in a normal text what follows each "final answer:" or the like begins, and what
    follows a paragraph's "that was wrong"; those after which nothing comes, or that refer to what
    stands elsewhere, are left out.
    """
    found: list[int] = []
    anew = (m for m in _RETRACTION.finditer(text) if re.search(r"\n\s*\n\s*$", text[: m.start()]))
    for match in sorted((*_FINAL.finditer(text), *anew), key=lambda match: match.end()):
        rest = text[match.end() : match.end() + 1000]
        first = next((line for line in rest.splitlines() if re.search(r"\w", line)), "")
        if first and not _ELSEWHERE.search(first):
            found.append(match.end())
    return found


def are_short(text: str, n_words: int) -> bool:
    """Whether every line of a text is so short that it can only be a value; articles and the
    like are not counted.
    """
    lines = [[word.word for word in words(line)] for line in text.splitlines()]
    counts = [sum(word not in SKIPPED for word in line) for line in lines if line]
    return bool(counts) and max(counts) <= n_words


COPY_CHARS = 150
COPY_LINES = 8
"""A shorter page may well be the answer."""
COPY_SHARE = 0.9


def is_copy(answer: str, page: str) -> bool:
    """Whether an answer hands in a whole page: nearly all lines of a long one stand in it."""
    if not COPY_CHARS <= len(page) <= 2 * len(answer):
        return False
    lines = [line for line in map(str.strip, page.splitlines()) if line]
    if len(lines) < COPY_LINES:
        return False
    given = set(map(str.strip, answer.splitlines()))
    return sum(len(line) for line in lines if line in given) >= COPY_SHARE * sum(map(len, lines))
