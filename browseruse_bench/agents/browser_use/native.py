"""browser-use's own record, read: calls, steps, and how the attempt ended.

Pure functions over plain JSON, without a dependency: the worker uses them while it runs, and
anybody can use them on a stored record later. A native step is what the library keeps of one
turn: `{model_output, result: [...], state, metadata}`; `model_output` is null where the model
failed. The library's own words are not believed: it calls a click on a vanished element a
success, and its final result is the last text of any action.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

Json = Mapping[str, Any]
Status = Literal["finished", "gave_up", "step_limit", "time_limit", "budget_limit", "agent_error"]

NEUTRAL = {
    "navigate": "navigate",
    "search": "search",
    "go_back": "back",
    "click": "click",
    "input": "type",
    "select_dropdown": "select",
    "send_keys": "key",
    "scroll": "scroll",
    "find_text": "scroll",
    "switch": "switch_tab",
    "close": "close_tab",
    "wait": "wait",
    "extract": "extract",
    "done": "done",
}
"""The library's name of an action -> ours; others keep their name."""

# What the library says, without calling it an error, where an action had no effect.
_INEFFECTIVE = re.compile(
    r"Element (with )?index \S+ (not|does not|is not)\b"
    r"|No element\b|Text '.*' not found or not visible"
    r"|Tried scrolling to text '.*' but it was not found",
    re.DOTALL,
)


@dataclass(frozen=True, kw_only=True)
class NativeCall:
    """One action of a native step."""

    name: str
    native_name: str
    arguments: dict[str, Any]
    target: str | None = None
    """What was acted on, as the library saw it: tag and accessible name or text."""
    result: str | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class NativeStep:
    """One turn of the library: a model's answer and the actions that were carried out."""

    index: int
    thought: str | None
    calls: tuple[NativeCall, ...]
    errors: tuple[str, ...] = ()
    """What went wrong with the turn itself, above all with its model."""
    model_failed: bool = False


@dataclass(frozen=True, kw_only=True)
class NativeEnd:
    """How an attempt ended, by counts."""

    status: Status
    answer: str | None = None
    claimed_success: bool | None = None
    reason: str = ""


def call(action: Json, result: Json | None, element: Json | None = None) -> NativeCall:
    """One action and its result.

    Args:
        action: `{name: {argument: value}}`.
        result: what the library kept of it; None where the action never ended.
        element: the library's record of the element acted on, if any.
    """
    native_name = next(iter(action), "unknown")
    arguments: Json | None = action.get(native_name)
    result = result or {}
    said = result.get("extracted_content") or result.get("long_term_memory")
    error = result.get("error")
    if error is None and said and _INEFFECTIVE.match(str(said)):
        error = str(said)
    return NativeCall(
        name=NEUTRAL.get(native_name, native_name),
        native_name=native_name,
        arguments=dict(arguments or {}),
        target=_target(element),
        result=None if said is None else str(said),
        error=None if error is None else str(error),
    )


def steps(history: Sequence[Json]) -> tuple[NativeStep, ...]:
    """The turns of a native history, in order; what the library adds after the last is left out."""
    turns = (item for item in history if item.get("metadata"))
    return tuple(step(item) for item in turns)


def step(item: Json) -> NativeStep:
    """One turn.

    Its actions are those that have a result: the library drops the others of a turn when the
    page changes.
    """
    output: Json | None = item.get("model_output")
    results = cast("Sequence[Json]", item.get("result") or ())
    metadata: Json = item.get("metadata") or {}
    actions = cast("Sequence[Json]", output.get("action") or ()) if output else ()
    state: Json = item.get("state") or {}
    elements = cast("Sequence[Json | None]", state.get("interacted_element") or ())
    calls = tuple(
        call(action, result, elements[n] if n < len(elements) else None)
        for n, (action, result) in enumerate(zip(actions, results, strict=False))
    )
    unowned = results if output is None else results[len(actions) :]
    return NativeStep(
        index=int(metadata.get("step_number", 0)),
        thought=thought(output),
        calls=calls,
        errors=tuple(str(r["error"]) for r in unowned if r.get("error")),
        model_failed=output is None and any(r.get("error") for r in results),
    )


def thought(output: Json | None) -> str | None:
    """What the model said beside its actions, as labelled lines; None if nothing."""
    if output is None:
        return None
    parts = (
        ("", output.get("thinking")),
        ("Evaluation: ", output.get("evaluation_previous_goal")),
        ("Memory: ", output.get("memory")),
        ("Next goal: ", output.get("next_goal")),
    )
    return "\n".join(f"{label}{text}" for label, text in parts if text) or None


def end(
    history: Sequence[Json],
    *,
    n_steps: int,
    max_steps: int,
    run_error: str | None = None,
    stopped: Status | None = None,
) -> NativeEnd:
    """How the attempt ended.

    Args:
        history: the native history as far as it goes; a turn that was cut off is not in it.
        n_steps: turns that were begun and ended, also those that the history lacks.
        max_steps: the limit on them.
        run_error: what the library raised, if it did.
        stopped: the limit of the harness that ended the attempt, if one did.
    """
    results = cast("Sequence[Json]", history[-1].get("result") or ()) if history else ()
    last: Json = results[-1] if results else {}
    if last.get("is_done") is True:
        return _done(last)
    if stopped is not None:
        return NativeEnd(status=stopped)
    if run_error is not None:
        return NativeEnd(status="agent_error", reason=run_error)
    turns = steps(history)
    failing = _failing(turns)
    acted = any(c.error is None for turn in turns for c in turn.calls)
    if n_steps >= max_steps and (acted or not all(turn.model_failed for turn in turns)):
        return NativeEnd(status="step_limit", reason=f"{max_steps} steps")
    if failing:
        return _failed(failing)
    return NativeEnd(
        status="agent_error",
        reason=f"ended without being done, after {n_steps} of {max_steps} steps",
    )


def _done(result: Json) -> NativeEnd:
    success = result.get("success")
    answer = result.get("extracted_content")
    return NativeEnd(
        status="gave_up" if success is False else "finished",
        answer=None if answer is None else str(answer),
        claimed_success=success if isinstance(success, bool) else None,
        reason="the agent says that it did not succeed" if success is False else "",
    )


def _failed(failing: Sequence[NativeStep]) -> NativeEnd:
    """The end of an attempt that the library ended after so many failing turns in a row."""
    # In the last of them it lets the model do nothing but say a last word.
    causes = failing[:-1] or failing
    why = " ".join((_last_error(causes[-1]) or "").split())[:300]
    n = len(failing)
    if causes[-1].model_failed:
        return NativeEnd(status="agent_error", reason=f"the model failed {n} times in a row: {why}")
    return NativeEnd(status="gave_up", reason=f"stuck: {n} failing steps in a row: {why}")


def _failing(turns: Sequence[NativeStep]) -> Sequence[NativeStep]:
    """The failing turns at the end."""
    first = len(turns)
    while first and _last_error(turns[first - 1]) is not None:
        first -= 1
    return turns[first:]


def _last_error(turn: NativeStep) -> str | None:
    if turn.errors:
        return turn.errors[-1]
    return turn.calls[-1].error if turn.calls else None


def _target(element: Json | None) -> str | None:
    if not element:
        return None
    tag = str(element.get("node_name") or "").lower()
    attributes = cast("Json", element.get("attributes") or {})
    names = (
        element.get("ax_name"),
        *(attributes.get(n) for n in ("aria-label", "placeholder", "title", "name", "id")),
    )
    name = next((str(n) for n in names if n), "")
    return f'{tag} "{name}"' if name else tag or None
