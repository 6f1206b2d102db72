"""The verdict that a judge's free text states: read exactly, or not at all.

Judges that were published with their prompts answer in prose and end with a line such as
`Status: "success"`. What counts is the label with one of the agreed words right behind it, and
nothing else:

- reasoning (`<think>…</think>`) is no part of the reply; a block that never ends leaves none;
- Markdown's emphasis, quotation marks, case and white space do not count;
- a label with several of the words (`Status: "success" or "failure"`) is the prompt's own
  example, and no verdict;
- a label with anything else behind it ("partial success", "unsuccessful", "not met") is
  unreadable, and so is the reply; only in the middle of a line it is no label at all, where
  another stands at the beginning of one (the reply may tell of a page's "Status: Processing");
- labels that contradict each other leave no verdict, whichever comes last.

A reply without a verdict is the judge's fault, never the agent's failure.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

Value = TypeVar("Value")

_BLOCK = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.IGNORECASE | re.DOTALL)
_OPEN = re.compile(r"<(?:think|thinking|reasoning)>", re.IGNORECASE)
_EDGES = " \t\r.!,;|()[]{}#>-"
_MARKUP = "*_`~\"'“”‘’«»„"


@dataclass(frozen=True)
class Stated(Generic[Value]):
    """What a reply states. `value` is None exactly if `why_not` says why it is unreadable."""

    value: Value | None
    why_not: str = ""


def stated(reply: str, label: str, words: Mapping[str, Value]) -> Stated[Value]:
    """The verdict behind a label.

    Args:
        reply: the judge's raw text.
        label: as in `status`; matched as a whole word in any case, before `:` or `=`.
        words: what may stand behind it, in lower case -> what that means.
    """
    bare = _without_reasoning(reply)
    if bare is None:
        return Stated(None, "the reasoning never ends")
    text = unicodedata.normalize("NFKC", bare).translate(dict.fromkeys(map(ord, _MARKUP)))
    found = list(re.finditer(rf"(?<!\w){re.escape(label)}\s*[:=]\s*(?=([^\n]*))", text, re.I))
    behind = [each[1].strip(_EDGES).casefold() for each in found]
    at_line = [not text[: each.start()].rpartition("\n")[2].strip(_EDGES) for each in found]
    if any(at_line):
        pairs = zip(behind, at_line, strict=True)
        behind = [part for part, starts in pairs if starts or part in words]
    meant = [part for part in behind if not _is_example(part, words)]
    if not meant:
        return Stated(None, f"no '{label}:' is stated" if not behind else "only the example is")
    unknown = [part for part in meant if part not in words]
    if unknown:
        return Stated(None, f"'{label}: {unknown[-1][:60]}' is none of {', '.join(words)}")
    if len(set(meant)) > 1:
        return Stated(None, f"contradicts itself: {', '.join(dict.fromkeys(meant))}")
    return Stated(words[meant[0]])


def _without_reasoning(reply: str) -> str | None:
    """The reply without its reasoning; None: it never leaves it."""
    bare = _BLOCK.sub("", reply)
    return None if _OPEN.search(bare) else bare


def _is_example(part: str, words: Mapping[str, Value]) -> bool:
    """Whether all of a label's words are offered, as in the prompt."""
    return len(words) > 1 and set(re.findall(r"\w+", part)) - {"or", "and"} == set(words)
