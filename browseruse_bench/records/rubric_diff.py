"""What changed between two revisions of a rubric; ids stay, so that they tell what is what."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from browseruse_bench.records.base import canonical_json
from browseruse_bench.records.markdown import block, inline
from browseruse_bench.records.rubric import Rubric

Kind = Literal["added", "removed", "reworded", "reweighted", "changed", "renamed", "moved"]

_WORDING = ("requirement", "verification", "claim", "text", "reason")


@dataclass(frozen=True)
class Change:
    """One difference of one element of a rubric."""

    kind: Kind
    part: str
    """A field of the rubric: "items", "facts", "canary"."""
    id: str | None
    field: str | None
    before: str | None
    """The old value as text; None: there was none."""
    after: str | None

    @property
    def place(self) -> str:
        """Where, as a dotted path."""
        return ".".join(name for name in (self.part, self.id, self.field) if name is not None)

    def as_json(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "kind": self.kind, "part": self.part, "id": self.id, "field": self.field,
            "before": self.before, "after": self.after,
        }  # fmt: skip


def changes(before: Rubric, after: Rubric) -> tuple[Change, ...]:
    """All differences between two rubrics: empty exactly if they are equal.

    Items, facts and rulings are told by their ids. An element that went and came back word for
    word under another id is `renamed`: ids should stay, since findings name them. `moved` says
    that the same items stand in another order.
    """
    found: list[Change] = []
    for part in ("items", "facts", "rulings"):
        old = {element.id: element.as_json() for element in getattr(before, part)}
        new = {element.id: element.as_json() for element in getattr(after, part)}
        found += [*_renamed(part, old, new), *_by_id(part, old, new), *_moved(part, old, new)]
    for part in ("answers", "paths", "failures", "false_claims", "waivers"):
        found += _by_value(part, *(_lines(rubric, part) for rubric in (before, after)))
    for part in ("task_id", "task_key", "revision", "canary", "success_at", "text"):
        old_value, new_value = getattr(before, part), getattr(after, part)
        if old_value != new_value:
            kind = _kind(part, old_value, new_value)
            found.append(Change(kind, part, None, None, _text(old_value), _text(new_value)))
    return tuple(found)


def _by_id(
    part: str, old: Mapping[str, dict[str, Any]], new: Mapping[str, dict[str, Any]]
) -> Iterator[Change]:
    renamed = {(c.before, c.after) for c in _renamed(part, old, new)}
    gone, come = {b for b, _ in renamed}, {a for _, a in renamed}
    for id_, element in old.items():
        if id_ not in new and id_ not in gone:
            yield Change("removed", part, id_, None, _text(element), None)
    for id_, element in new.items():
        if id_ not in old and id_ not in come:
            yield Change("added", part, id_, None, None, _text(element))
        elif id_ in old:
            for field in dict.fromkeys([*old[id_], *element]):
                values = old[id_].get(field), element.get(field)
                if values[0] != values[1]:
                    yield Change(
                        _kind(field, *values), part, id_, field, _text(values[0]), _text(values[1])
                    )


def _renamed(
    part: str, old: Mapping[str, dict[str, Any]], new: Mapping[str, dict[str, Any]]
) -> Iterator[Change]:
    come = {_nameless(element): id_ for id_, element in new.items() if id_ not in old}
    for id_, element in old.items():
        other = come.pop(_nameless(element), None) if id_ not in new else None
        if other is not None:
            yield Change("renamed", part, id_, "id", id_, other)


def _nameless(element: Mapping[str, Any]) -> str:
    return canonical_json({k: v for k, v in element.items() if k != "id"})


def _moved(part: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    was, now = [i for i in old if i in new], [i for i in new if i in old]
    if was != now:
        yield Change("moved", part, None, None, ", ".join(was), ", ".join(now))


def _lines(rubric: Rubric, part: str) -> list[str]:
    return [element.as_line() for element in getattr(rubric, part) or ()]


def _by_value(part: str, old: Sequence[str], new: Sequence[str]) -> Iterator[Change]:
    yield from (Change("removed", part, None, None, v, None) for v in old if v not in new)
    yield from (Change("added", part, None, None, None, v) for v in new if v not in old)
    if sorted(old) == sorted(new) and list(old) != list(new):
        yield Change("moved", part, None, None, "\n".join(old), "\n".join(new))
    elif set(old) == set(new) and list(old) != list(new):
        yield Change("changed", part, None, None, "\n".join(old), "\n".join(new))


def _kind(field: str, before: object, after: object) -> Kind:
    if field == "weight":
        return "reweighted"
    if before is None:
        return "added"
    if after is None:
        return "removed"
    return "reworded" if field in _WORDING else "changed"


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return canonical_json(value)


def diff_lines(found: Sequence[Change]) -> list[str]:
    """The changes for a terminal."""
    if not found:
        return ["no difference"]
    lines: list[str] = []
    for change in found:
        lines.append(f"{change.kind} {change.place}")
        lines += [f"  - {line}" for line in _split(change.before)]
        lines += [f"  + {line}" for line in _split(change.after)]
    return lines


def diff_markdown(before: Rubric, after: Rubric, found: Sequence[Change]) -> str:
    """The changes as a document."""
    title = f"# Rubric of {inline(after.task_id)}: revision {before.revision} to {after.revision}"
    parts = [title]
    for change in found:
        parts.append(f"## {inline(change.place)}: {change.kind}")
        if change.before is not None:
            parts.append(f"Before:\n\n> {block(change.before, '> ')}")
        if change.after is not None:
            parts.append(f"After:\n\n> {block(change.after, '> ')}")
    return "\n\n".join([*parts, *([] if found else ["No difference."])]) + "\n"


def _split(text: str | None) -> list[str]:
    return [] if text is None else text.splitlines() or [""]
