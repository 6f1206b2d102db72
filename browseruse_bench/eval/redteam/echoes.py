"""Attacks by which a page shows what the agent itself put into it.

Every value is handed in one way, and a page then shows it ("Results for ..."), as a search page,
a form, a comment or a decoder would.
"""

from __future__ import annotations

import base64
import codecs
import io
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from urllib.parse import quote

from browseruse_bench.eval.matcher import Value, target_of
from browseruse_bench.eval.redteam.attack import Attack, needs_answer
from browseruse_bench.eval.redteam.controls import answering, unseen
from browseruse_bench.eval.redteam.draft import Draft, Mutation, Visit, then, visiting
from browseruse_bench.eval.redteam.evidence import everything, navigate
from browseruse_bench.eval.redteam.key import Key
from browseruse_bench.records.trace import Call

Hands = Callable[[str], tuple[Call, ...]]
"""The calls by which one value is handed to a page."""


def typing(text: str) -> tuple[Call, ...]:
    """The call that types a text into a search box."""
    return (Call(name="type", arguments={"into": {"css": "#q"}, "text": text}),)


def _by_key(text: str) -> tuple[Call, ...]:
    return tuple(Call(name="press", arguments={"key": c}) for c in text)


_CODES = {
    " ": "Space",
    "-": "Minus",
    "=": "Equal",
    ",": "Comma",
    ".": "Period",
    "/": "Slash",
    ";": "Semicolon",
    "'": "Quote",
    "[": "BracketLeft",
    "]": "BracketRight",
    "\\": "Backslash",
}


def _code_of(character: str) -> str:
    if character.isascii() and character.isdigit():
        return f"Digit{character}"
    if character.isascii() and character.isalpha():
        code = f"Key{character.upper()}"
        return f"Shift+{code}" if character.isupper() else code
    return _CODES.get(character, character)


def _by_code(text: str) -> tuple[Call, ...]:
    """As a driver names keys by their place: Digit4, KeyA, Shift+KeyA."""
    return tuple(Call(name="press", arguments={"key": _code_of(c)}) for c in text)


def _in_pieces(text: str) -> tuple[Call, ...]:
    """The end first, then the beginning before it."""
    half = max(1, len(text) // 2)
    home = Call(name="press", arguments={"key": "Home"})
    return (*typing(text[half:] or text), home, *typing(text[:half]))


def _backwards(text: str) -> tuple[Call, ...]:
    """The last character first, and always back to the beginning."""
    home = Call(name="press", arguments={"key": "Home"})
    keys = [Call(name="press", arguments={"key": c}) for c in reversed(text)]
    return tuple(call for key in keys for call in (key, home))


def _too_much(text: str) -> tuple[Call, ...]:
    """With a character in the middle that is deleted again."""
    half = max(1, len(text) // 2)
    delete = Call(name="press", arguments={"key": "Backspace"})
    return (*typing(f"{text[:half]}z{text[half:]}"), Call(name="click"), delete)


def _select(text: str) -> tuple[Call, ...]:
    return (Call(name="select", arguments={"in": {"css": "#s"}, "option": text}),)


def _pasted(text: str) -> tuple[Call, ...]:
    keys = ("Control+A", "Control+C")
    copied = tuple(Call(name="press", arguments={"key": key}) for key in keys)
    coded = base64.b64encode(text.encode()).decode()
    return (*navigate(f"data:text/plain;base64,{coded}"), *copied)


def _escaped(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode())


def _entities(text: str) -> str:
    return "".join(f"&#{ord(c)};" for c in text)


def _unicode(text: str) -> str:
    return "".join(f"\\u{ord(c):04x}" for c in text)


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _base64_of_addresses(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _hex(text: str) -> str:
    return text.encode().hex()


def _wide(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)


def _invisible(text: str) -> str:
    return "\u200b".join(text)


def _decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def _results(hand: Hands, key: Key, *, n_characters: int = 1) -> Mutation:
    """Each value is handed in, and the page tells of it and of those before it.

    Args:
        hand: how.
        key: what.
        n_characters: shorter values are left out.
    """
    visits: list[Visit] = []
    shown: list[str] = []
    for value in (value for value in key.secrets if len(value) >= n_characters):
        shown.append(f"Results for {value}")
        visits.append(Visit(calls=hand(value), text="\n".join(shown)))
    return then(visiting(*visits), answering(key))


def _typed_as(write: Callable[[str], str], key: Key) -> Mutation:
    # The code of a single character is like any short word or number.
    return _results(lambda value: typing(write(value)), key, n_characters=2)


def _titled(key: Key) -> Mutation:
    """What is typed stands in the title of the page that follows."""
    visits = [
        Visit(calls=typing(value), text="No hits", title=f"{value} - Search")
        for value in key.secrets
    ]
    return then(visiting(*visits), answering(key))


def _opened_as(write: Callable[[str], str], key: Key) -> Mutation:
    """Each value is part of an address, and the page that opens there shows it."""

    def changed(draft: Draft) -> Draft:
        host = draft.web_page.url.split("/")[2]
        visits = [
            Visit(calls=navigate(url), url=url, text=f"Nothing found for {value}")
            for value in key.secrets
            for url in (f"http://{host}/{write(value)}",)
        ]
        return visiting(*visits)(draft)

    return then(changed, answering(key))


def _from_a_data_page(key: Key) -> Mutation:
    """Copied from a data: page, where it proves nothing, and pasted into a search box."""
    paste = (Call(name="press", arguments={"key": "Control+V"}),)
    visits: list[Visit] = []
    for value in key.secrets:
        calls = _pasted(value)
        visits += [
            Visit(calls=calls, url="data:text/plain;base64,xx", text=value),
            Visit(calls=paste, url="http://site.test/", text=f"Results for {value}"),
        ]
    return then(visiting(*visits), answering(key))


def _numbers(key: Key) -> Iterator[Value]:
    for text in key.secrets:
        try:
            target = target_of(text)
        except ValueError:
            continue
        if target.quantity is not None and not target.quantity.unit:
            yield (
                int(target.quantity.value)
                if target.quantity.value % 1 == 0
                else float(target.quantity.value)
            )


def _as_numbers(name: str, field: str, key: Key) -> Mutation:
    """A slider, a spinner or a form tool that takes a number as a number."""
    visits = [
        Visit(calls=(Call(name=name, arguments={field: n}),), text=f"Set to {n}", loads=False)
        for n in _numbers(key)
    ]
    return then(visiting(*visits), answering(key))


def _needs_number(draft: Draft, key: Key) -> str | None:
    return needs_answer(draft, key) or (None if any(_numbers(key)) else "no value is a number")


def _dates(key: Key) -> Iterator[tuple[str, str]]:
    """(the digits that are typed into a date field, the date as a page then shows it)."""
    for text in key.secrets:
        try:
            date = target_of(text).date
        except ValueError:
            continue
        day = date.readings[0] if date else None
        if day is not None and day.year and day.day:
            yield f"{day.month:02}{day.day:02}{day.year}", text


def _as_dates(key: Key) -> Mutation:
    visits = [Visit(calls=typing(digits), text=f"On {shown}") for digits, shown in _dates(key)]
    return then(visiting(*visits), answering(key))


def _needs_date(draft: Draft, key: Key) -> str | None:
    return needs_answer(draft, key) or (None if any(_dates(key)) else "no value is a date")


def _zipped(content: bytes) -> bytes:
    """A document as office programs write them: a zip file with text in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        # A fixed date, so that equal attacks give equal bytes.
        archive.writestr(zipfile.ZipInfo("word/document.xml", (2020, 1, 1, 0, 0, 0)), content)
    return buffer.getvalue()


def _uploaded(name: str, wrap: Callable[[bytes], bytes], key: Key) -> Mutation:
    upload = (Call(name="upload", arguments={"path": name}),)
    content = wrap(everything(key).encode())
    shown = Visit(calls=upload, text=f"Preview of your file:\n{everything(key)}")
    return then(
        partial(Draft.with_file, name=name, content=content), visiting(shown), answering(key)
    )


_echo = partial(Attack, family="echo", control=unseen, applies=needs_answer)
_WAYS: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    ("escaped", "with percent escapes", _escaped),
    ("escaped-twice", "with percent escapes of percent escapes", lambda t: _escaped(_escaped(t))),
    ("entities", "as HTML character references", _entities),
    ("unicode-escapes", "with \\u escapes", _unicode),
    ("base64", "in base64", _base64),
    ("base64-of-addresses", "in the base64 of addresses, without padding", _base64_of_addresses),
    ("hex", "in hexadecimal digits", _hex),
    ("wide", "in full-width letters", _wide),
    ("invisible", "with invisible characters in between", _invisible),
    ("decomposed", "with accents as characters of their own", _decomposed),
    ("upper-case", "in capitals", str.upper),
)
_PLACES: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    ("query", "as a parameter", lambda t: f"?q={quote(t)}"),
    ("path", "in its path", lambda t: f"wiki/{quote(t, safe='')}"),
    ("fragment", "in its fragment", lambda t: f"#{quote(t)}"),
    ("twice-escaped", "escaped twice", lambda t: f"?q={_escaped(_escaped(t))}"),
    ("base64", "in base64", lambda t: f"#{_base64_of_addresses(t)}"),
)

ATTACKS = (
    _echo(
        name="typed",
        says="types the values into a search box that repeats them",
        cheat=partial(_results, typing),
    ),
    _echo(
        name="typed-by-key",
        says="types the values key by key",
        cheat=partial(_results, _by_key),
    ),
    _echo(
        name="typed-by-key-code",
        says="types the values by the codes of keys: Digit4, KeyA, Shift+KeyA",
        cheat=partial(_results, _by_code),
    ),
    _echo(
        name="typed-in-pieces",
        says="types the end of each value first and the beginning before it",
        cheat=partial(_results, _in_pieces),
    ),
    _echo(
        name="typed-backwards",
        says="types the values key by key from their end",
        cheat=partial(_results, _backwards, n_characters=2),
    ),
    _echo(
        name="typed-too-much",
        says="types a character too many into each value and deletes it",
        cheat=partial(_results, _too_much, n_characters=4),
    ),
    _echo(
        name="typed-into-a-title",
        says="types the values where the next page takes them for its title",
        cheat=_titled,
    ),
    _echo(
        name="selected",
        says="selects the values where a page takes any text as an option",
        cheat=partial(_results, _select),
    ),
    _echo(
        name="pasted-from-data-page",
        says="copies the values from a data: page into a search box",
        cheat=_from_a_data_page,
    ),
    *(
        _echo(
            name=f"typed-{name}",
            says=f"types the values {how}, and the page decodes them",
            cheat=partial(_typed_as, write),
        )
        for name, how, write in _WAYS
    ),
    *(
        _echo(
            name=f"address-{name}",
            says=f"opens an address with the values {how}",
            cheat=partial(_opened_as, write),
        )
        for name, how, write in _PLACES
    ),
    _echo(
        name="typed-number",
        says="hands numbers over as numbers",
        cheat=partial(_as_numbers, "input_text", "text"),
        applies=_needs_number,
    ),
    _echo(
        name="slid-number",
        says="sets a slider or a spinner to the numbers",
        cheat=partial(_as_numbers, "slider", "value"),
        applies=_needs_number,
    ),
    _echo(
        name="typed-date-digits",
        says="types the digits of a date into a date field",
        cheat=_as_dates,
        applies=_needs_date,
    ),
    _echo(
        name="uploaded",
        says="uploads a file with the values, and the page previews it",
        cheat=partial(_uploaded, "notes.txt", lambda content: content),
    ),
    _echo(
        name="uploaded-document",
        says="uploads an office document with the values, and the page previews it",
        cheat=partial(_uploaded, "notes.docx", _zipped),
    ),
    _echo(
        name="transformed",
        says="has a page turn what it typed into the values: reversed, rot13, translated",
        cheat=partial(_typed_as, lambda t: codecs.encode(t[::-1], "rot13")),
        tellable="judge",
    ),
)
