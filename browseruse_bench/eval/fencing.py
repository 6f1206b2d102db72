"""Text of a trace as a judge reads it: data, each line of it marked, and nothing in it alive.

What a page, an agent or a file wrote reaches a judge only as lines that begin with `| `, between
two lines that hold a token which nothing of the trace can have known: it is made from the
trace's key, which is a hash of every byte of it. So no data can begin a line of its own, close
the fence or open another. Inside the data

- the token, however it is written, becomes `[fence]`;
- characters that are not seen (zero width, direction marks, control characters, fillers, more
  than one variation selector in a row) are written out: `⟨U+200B⟩`, `⟨U+200B×40⟩`;
- marks by which model formats tell who is speaking are broken: `<¦im_start¦>`, `<·system>`,
  `[·INST]`. Nothing else of the text changes, so that it can be quoted: `plain` takes all of
  this out of a quote again, and words are compared, not signs.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

_UNSEEN = re.compile(
    "([\x00-\x08\x0e-\x1b\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f"
    "\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb\U000110bd\U000110cd"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\ud800-\udfff])\\1*|([\ufe00-\ufe0f])[\ufe00-\ufe0f]+"
)
_LINE_END = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_ROLES = (
    r"(?:system|assistant|user|human|developer|model|tool|tools|tool_\w+|function|function_\w+"
    r"|instructions?|think|thinking|start_of_turn|end_of_turn|start_header_id|end_header_id"
    r"|begin_of_text|end_of_text|eot_id|bos|eos|s|invoke|parameter|antml)\b"
)
_TAG = re.compile(rf"<(/?)(?={_ROLES})", re.IGNORECASE)
_BRACKET = re.compile(r"\[(/?)(?=(?:INST|SYS|SYSTEM|TOOL_CALLS|AVAILABLE_TOOLS)\b)", re.IGNORECASE)
_SYS = re.compile(r"<<(?=/?SYS)", re.IGNORECASE)
_MARK = re.compile(r"⟨U\+([0-9A-F]{2,6})(?:×([0-9]{1,7}))?⟩")
_NAME = re.compile(r"(?<=[<\[])(/?)·")
PREFIX = "| "
"""Begins every line of data, and no line that the harness itself wrote."""


def fence_of(trace_key: str) -> str:
    """The token of a trace: always the same, and unknown to whatever is in the trace."""
    return hashlib.sha256(f"fence of {trace_key}".encode()).hexdigest()[:20]


def visible(text: str, fence: str) -> str:
    """A text with nothing unseen, no role marks and without the fence's token."""
    alike = text if text.isascii() else unicodedata.normalize("NFKC", text)
    if fence in alike.casefold():
        text = re.sub(re.escape(fence), "[fence]", alike, flags=re.IGNORECASE)
    text = _UNSEEN.sub(_written_out, text)
    text = text.replace("<|", "<¦").replace("|>", "¦>")
    text = _SYS.sub("<·<", _TAG.sub(r"<\1·", text))
    return _BRACKET.sub(r"[\1·", text)


def _written_out(found: re.Match[str]) -> str:
    parts: list[str] = []
    run = found[0]
    at = 0
    while at < len(run):
        end = at
        while end < len(run) and run[end] == run[at]:
            end += 1
        times = f"×{end - at}" if end - at > 1 else ""
        parts.append(f"⟨U+{ord(run[at]):04X}{times}⟩")
        at = end
    return "".join(parts)


def block(text: str, fence: str) -> str:
    """A text as lines of data; an empty text is one empty line of data."""
    shown = visible(_LINE_END.sub("\n", text), fence)
    return PREFIX + shown.replace("\n", f"\n{PREFIX}")


def line(text: str, fence: str) -> str:
    """A text as one line of data."""
    return PREFIX + visible(_LINE_END.sub(" ⏎ ", text), fence)


def plain(quote: str) -> str:
    """A quote of shown data as it stood in the trace, as far as a comparison of words goes."""
    quote = re.sub(r"(^|\n)\| ?", r"\1", quote)
    quote = _NAME.sub(r"\1", quote.replace("<¦", "<|").replace("¦>", "|>"))
    return _MARK.sub(_restored, quote)


def _restored(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    times = min(int(found[2] or 1), 10_000)
    return chr(code) * times if code < 0x110000 else found[0]
