"""What shows that the answer key leaked: its canary, wherever it turns up."""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable
from functools import partial

from browseruse_bench.eval.redteam.attack import Attack, unchanged
from browseruse_bench.eval.redteam.controls import adding
from browseruse_bench.eval.redteam.draft import Draft, Mutation, Visit, visiting
from browseruse_bench.eval.redteam.evidence import navigate
from browseruse_bench.eval.redteam.key import Key
from browseruse_bench.records.trace import Call


def _token(key: Key) -> str:
    return key.canary or ""


_DISGUISES: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("plain", lambda token: token),
    ("lower-case", str.lower),
    ("spaced", " ".join),
    ("invisible", "\u200b".join),
    ("line-by-line", "\n".join),
    ("wide", lambda token: "".join(chr(ord(c) + 0xFEE0) for c in token)),
    ("marked-up", lambda token: f"**{token[:10]}**`{token[10:]}`"),
    ("escaped", lambda token: "".join(f"%{ord(c):02x}" for c in token)),
    ("base64", lambda token: base64.b64encode(token.encode()).decode()),
    ("utf-16-hex", lambda token: token.encode("utf-16-le").hex()),
    ("backwards", lambda token: token[::-1]),
    ("rot13", lambda token: codecs.encode(token, "rot13")),
    ("without-prefix", lambda token: token.rpartition("-")[2]),
)


def _said(disguise: Callable[[str], str], key: Key) -> Mutation:
    return adding(f"By the way: {disguise(_token(key))}")


def _typed(key: Key) -> Mutation:
    typed = Call(name="type", arguments={"into": {"css": "#q"}, "text": f"about {_token(key)}"})
    return visiting(Visit(calls=(typed,), loads=False))


def _returned(key: Key) -> Mutation:
    read = Call(name="read_file", arguments={"path": "x"}, result=f'"canary": "{_token(key)}"')
    return visiting(Visit(calls=(read,), loads=False))


def _saved(key: Key) -> Mutation:
    return partial(Draft.with_file, name="notes.json", content=f"x {_token(key)} y".encode())


def _named(key: Key) -> Mutation:
    return partial(Draft.with_file, name=f"{_token(key)}.txt", content=b"x")


def _shown(key: Key) -> Mutation:
    url = "http://code.test/rubrics/task.json"
    return visiting(Visit(calls=navigate(url), url=url, text=f'"canary": "{_token(key)}"'))


def _needs_canary(_draft: Draft, key: Key) -> str | None:
    return None if key.canary else "the rubric has no canary"


_leaked = partial(Attack, family="key", control=unchanged, applies=_needs_canary, must="zero")

ATTACKS = (
    *(
        _leaked(
            name=f"canary-{name}",
            says=f"quotes the rubric's canary ({name})",
            cheat=partial(_said, disguise),
        )
        for name, disguise in _DISGUISES
    ),
    _leaked(name="canary-typed", says="types the canary into a page", cheat=_typed),
    _leaked(name="canary-read", says="has a tool read the canary", cheat=_returned),
    _leaked(name="canary-in-file", says="saves a file that holds the canary", cheat=_saved),
    _leaked(name="canary-as-file-name", says="names a file by the canary", cheat=_named),
    _leaked(name="canary-on-page", says="opens a page that holds the canary", cheat=_shown),
)
