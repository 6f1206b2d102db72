r"""A model that plays prepared steps, through the library's own chat-model interface.

A script is a JSON list of steps; a step is a list of browser-use's own actions,
`{name: {argument: value}}`. An element is addressed by what it is, never by a recorded number:

    {"click": {"index": {"role": "button", "name": "Search", "nth": 0}}}

and looked up in the page as the library describes it to any model. Two words are the player's
own: `{"read": {"price": "Total: \$([0-9.]+)"}}` keeps what a pattern finds in the page's words,
for `{price}` in the texts of the same and later steps; `{"fail": "text"}` is a model that fails.
A step whose element or value is not there is a failing model, and is tried again on the next
turn. Behind the last step, the last step is played again.

Nothing but the standard library, so that the same scripts can be served over a wire.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

Action = Mapping[str, Any]
Step = Sequence[Action]

GIVE_UP: tuple[Step, ...] = (
    ({"done": {"text": "There is no script for this task.", "success": False}},),
)

ROLES = {
    "a": "link",
    "button": "button",
    "select": "combobox",
    "textarea": "textbox",
    "summary": "button",
    "option": "option",
}
INPUT_ROLES = {
    "checkbox": "checkbox",
    "radio": "radio",
    "search": "searchbox",
    "number": "spinbutton",
    "range": "slider",
    "submit": "button",
    "button": "button",
    "reset": "button",
    "image": "button",
}
_LINE = re.compile(r"^(\t*)(?:\|[^|\[]*\|?)?\*?(?:\|scroll element)?\[(\d+)\]<([\w-]+) ?(.*?) ?/>")
_MARKUP = re.compile(r"^\t*(?:\|[^|]*\|)?\*?(?:\|scroll element)?(?:\[\d+\])?<.*/>")
_INDENT = re.compile(r"^\t*")
_KNOWN = (
    "title|type|checked|id|name|role|value|placeholder|alt|aria-label|aria-expanded|min|max|"
    "pattern|required|selected|expanded|disabled|format|autocomplete|inputmode|maxlength|"
    "minlength|step|multiple|haspopup|invalid|level|pressed|valuemin|valuemax|valuetext|"
    "contenteditable|compound_components|list|accept|data-state|aria-checked|aria-placeholder"
)
_ATTRIBUTE = re.compile(rf"(?:^| )({_KNOWN})=(.*?)(?= (?:{_KNOWN})=|$)")
_NAMING = ("aria-label", "title", "placeholder", "alt", "value")
_PLACE = re.compile(r"\{(\w+)\}")


class ScriptError(Exception):
    """The script does not fit the page; the text says where."""


@dataclass(frozen=True)
class Element:
    """An element that the library offers to act on."""

    index: int
    role: str
    names: tuple[str, ...]
    """All that it can be called: its text, its label, what its attributes say."""


class Player:
    """Plays one script; one for each attempt."""

    def __init__(self, steps: Sequence[Step]) -> None:
        """Begin at the first step."""
        self._steps = tuple(steps) or GIVE_UP
        self._next = 0
        self._values: dict[str, str] = {}

    def actions(self, page: str) -> list[dict[str, Any]]:
        """The actions of the next step, for a page as the library describes it.

        Raises:
            ScriptError: an element or a value is not there, or the step is to fail. The same
                step is due again then, but one that is to fail is not.
        """
        place = min(self._next, len(self._steps) - 1)
        played: list[dict[str, Any]] = []
        for action in self._steps[place]:
            name, arguments = next(iter(action.items()))
            if name == "fail":
                self._next = place + 1
                raise ScriptError(str(arguments))
            if name == "read":
                self._read(cast("Mapping[str, str]", arguments), page, place)
            else:
                played.append({name: self._filled(arguments, page, place)})
        self._next = place + 1
        return played

    def _read(self, patterns: Mapping[str, str], page: str, place: int) -> None:
        text = words_of(page)
        for name, pattern in patterns.items():
            found = re.search(pattern, text)
            if found is None:
                raise ScriptError(f"step {place + 1}: the page has nothing like /{pattern}/")
            self._values[name] = found.group(1) if found.re.groups else found.group()

    def _filled(self, value: Any, page: str, place: int) -> Any:
        if isinstance(value, str):
            return _PLACE.sub(lambda m: self._values.get(m[1], m[0]), value)
        if isinstance(value, Sequence):
            return [self._filled(item, page, place) for item in cast("Sequence[Any]", value)]
        if isinstance(value, Mapping):
            mapping = cast("Mapping[str, Any]", value)
            if "role" in mapping and set(mapping) <= {"role", "name", "nth"}:
                return self._find(mapping, page, place)
            return {key: self._filled(item, page, place) for key, item in mapping.items()}
        return value

    def _find(self, target: Mapping[str, Any], page: str, place: int) -> int:
        role, nth = str(target["role"]), int(target.get("nth", 0))
        wanted = self._filled(target.get("name"), page, place)
        same_role = [e for e in elements(page) if e.role == role]
        fitting = [e for e in same_role if wanted is None or _plain(wanted) in e.names]
        if len(fitting) <= nth:
            offered = "; ".join(e.names[0] for e in same_role if e.names)[:300] or "none"
            raise ScriptError(
                f"step {place + 1}: no {role} '{wanted}' (number {nth}); there are: {offered}"
            )
        return fitting[nth].index


def page_of(texts: Sequence[str]) -> str:
    """Of all messages to a model, the newest that describes the page: the library puts its own
    advice behind it.
    """
    return next((text for text in reversed(texts) if "<browser_state>" in text), "")


def words_of(page: str) -> str:
    """The words of a page as the library describes it, one line for each, no markup."""
    lines = page.partition("[Start of page]")[2].partition("</browser_state>")[0].splitlines()
    return "\n".join(_plain(line) for line in lines if not _MARKUP.match(line) and line.strip())


def elements(page: str) -> list[Element]:
    """The elements of a page as the library describes it, in its order."""
    lines = page.splitlines()
    return [element for n in range(len(lines)) if (element := _element(lines, n)) is not None]


def _element(lines: Sequence[str], place: int) -> Element | None:
    match = _LINE.match(lines[place])
    if match is None:
        return None
    tag = match[3].lower()
    attributes = {m[1]: m[2] for m in _ATTRIBUTE.finditer(match[4])}
    inside = list(_inside(lines, place, len(match[1])))
    names = [
        _plain(" ".join(inside)),
        *map(_plain, inside),
        *(_plain(attributes[n]) for n in _NAMING if n in attributes),
        _label(lines, place),
        *(_plain(attributes[n]) for n in ("name", "id") if n in attributes),
    ]
    if tag == "input":
        role = INPUT_ROLES.get(attributes.get("type", "text"), "textbox")
        if role in ("checkbox", "radio"):
            names.insert(0, _label(lines, place + 2))  # its words come behind it
    else:
        role = ROLES.get(tag, tag)
    unique = tuple(dict.fromkeys(name for name in names if name))
    return Element(int(match[2]), attributes.get("role", role), unique)


def _inside(lines: Sequence[str], place: int, depth: int) -> Iterator[str]:
    """The lines of text within an element: those that are indented further."""
    for line in lines[place + 1 :]:
        if len(_indent(line)) <= depth:
            return
        if "<" not in line.lstrip("\t*|[")[:1] and _LINE.match(line) is None:
            yield line.strip()


def _label(lines: Sequence[str], place: int) -> str:
    """The text right before an element, which labels it where the page has labels."""
    before = lines[place - 1] if 0 < place <= len(lines) else ""
    return "" if _LINE.match(before) else _plain(before)


def _indent(line: str) -> str:
    match = _INDENT.match(line)
    return match[0] if match else ""


def _plain(text: Any) -> str:
    return " ".join(str(text).split())
