"""The process that a benchmark's own evaluator runs in; started by evaluator_process.py.

    python -m browseruse_bench.eval.serve TARGET [FALLBACK]

One JSON line per message, over copies of the descriptors 0 and 1 that the evaluator does not
know; its own standard input is empty, and what it prints goes to standard error.

    → {n, task_id, result}          end of input: this process and its children end at once
    ← {ready: {name, identity, note}}    or    {fatal, traceback}
    ← {n, ask, request}             the evaluator asks a model, any number of times, and waits
    → {n, ask, reply}               or    {n, ask, error, kind: model | config}
    ← {n, value}                    or    {n, error, kind: error | no_reference | model, traceback}
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import itertools
import json
import math
import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, cast

from browseruse_bench.errors import ConfigError, ModelError
from browseruse_bench.eval.base_evaluator import BaseEvaluator, NoReferenceError
from browseruse_bench.models.base import Reply, Request


class LoadError(Exception):
    """The evaluator cannot be had; the message says why."""


def main(target: str, fallback: str | None) -> None:
    """Load the evaluator, say so, and answer until the input ends."""
    requests_in, replies = _private_descriptors()
    try:
        evaluator, note = load_evaluator(target, Path(fallback) if fallback else None)
        ready = {
            "name": type(evaluator).__qualname__,
            "identity": identity(evaluator),
            "note": note,
        }
    except LoadError as error:
        _say(replies, {"fatal": str(error), "traceback": traceback.format_exc()})
        return
    line = _Line(replies)
    line.say({"ready": ready})
    evaluator._ask = line.ask  # pyright: ignore[reportPrivateUsage]  # this is its process
    requests: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests_in, requests, line), daemon=True).start()
    own = os.getpid()
    while True:
        request = requests.get()
        line.n = request["n"]
        answer = reply(evaluator, request)
        if os.getpid() != own:
            os._exit(0)  # a process that the evaluator forked, and let come back here
        line.say({"n": request["n"], **answer})


class _Line:
    """The way to the parent: messages never tear each other, and each ask finds its reply."""

    def __init__(self, replies: BinaryIO) -> None:
        self.n = 0
        self._pid = os.getpid()
        self._replies = replies
        self._lock = threading.Lock()
        self._asks = itertools.count(1)
        self._waiting: dict[int, queue.SimpleQueue[dict[str, Any]]] = {}

    def say(self, message: dict[str, Any]) -> None:
        """Write one message."""
        with self._lock:
            _say(self._replies, message)

    def ask(self, request: Request) -> Reply:
        """Have the parent ask its model, and wait.

        Raises:
            ModelError: no usable reply came, or this is a process that the evaluator forked.
            ConfigError: no model was named.
        """
        if os.getpid() != self._pid:
            raise ModelError("ask: only in the process in which evaluate_task was called")
        number = next(self._asks)
        waiting = self._waiting[number] = queue.SimpleQueue[dict[str, Any]]()
        self.say({"n": self.n, "ask": number, "request": request.as_wire()})
        answer = waiting.get()
        if "reply" in answer:
            return Reply.model_validate(answer["reply"])
        kind = ConfigError if answer["kind"] == "config" else ModelError
        raise kind(answer["error"])

    def hand(self, answer: dict[str, Any]) -> None:
        """Give a reply to who waits for it."""
        self._waiting.pop(answer["ask"]).put(answer)


def _private_descriptors() -> tuple[BinaryIO, BinaryIO]:
    """Move the protocol away from 0 and 1, where any library may read and print."""
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    return os.fdopen(requests, "rb"), os.fdopen(replies, "wb")


def _say(replies: BinaryIO, message: dict[str, Any]) -> None:
    replies.write(json.dumps(message).encode() + b"\n")
    replies.flush()


def _read(lines: BinaryIO, requests: queue.SimpleQueue[dict[str, Any]], line: _Line) -> None:
    for text in lines:
        message = json.loads(text)
        if "ask" in message:
            line.hand(message)
        else:
            requests.put(message)
    # The parent is gone or has enough. An evaluator that hangs must not outlive it.
    os.killpg(os.getpgrp(), signal.SIGKILL)


def reply(evaluator: BaseEvaluator, request: Mapping[str, Any]) -> dict[str, Any]:
    """What one call gave: its value as plain JSON, or what went wrong."""
    try:
        # A stranger's value may be of any type, whatever its signature says.
        value = cast("Any", evaluator.evaluate_task(request["task_id"], request["result"]))
        if not isinstance(value, dict):
            return {
                "error": f"evaluate_task returned {type(value).__name__}, not a dict",
                "kind": "error",
                "traceback": "",
            }
        return {"value": plain(value)}
    except NoReferenceError as error:
        return {"error": str(error), "kind": "no_reference", "traceback": ""}
    except ModelError as error:
        return {"error": str(error), "kind": "model", "traceback": ""}
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever a stranger's code raises
        return {"error": describe(error), "kind": "error", "traceback": traceback.format_exc()}


def describe(error: BaseException) -> str:
    """The type and text of an error, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")


def plain(value: Any) -> Any:
    """`value` as JSON: scalars of numpy as numbers, what JSON cannot hold as its text."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {plain(str(key)): plain(inner) for key, inner in items}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(inner) for inner in cast("Iterable[Any]", value)]
    scalar = getattr(value, "item", None)
    if callable(scalar) and getattr(value, "shape", None) == ():
        return plain(scalar())
    return plain(repr(value))


def load_evaluator(target: str, fallback: Path | None) -> tuple[BaseEvaluator, str]:
    """An evaluator made from "module:Class" or from the path of an evaluator.py.

    Args:
        target: what the benchmark names.
        fallback: an evaluator.py to use where the module of `target` does not exist.

    Returns:
        The evaluator, and a note for the user if the fallback was taken.

    Raises:
        LoadError: nothing usable is there.
    """
    module_name, colon, attr = target.partition(":")
    if target.endswith(".py"):
        kind, note = _only_subclass(_load_file(Path(target)), target), ""
    elif not (colon and module_name and attr):
        raise LoadError(f"evaluator '{target}' is neither module:Class nor the path of a .py file")
    elif _exists(module_name):
        kind, note = _named(module_name, attr), ""
    elif fallback is not None and fallback.is_file():
        kind = _only_subclass(_load_file(fallback), str(fallback))
        note = f"the registered evaluator '{target}' does not exist; {fallback} is used"
    else:
        raise LoadError(f"evaluator '{target}': there is no module '{module_name}'")
    try:
        return kind(), note
    except Exception as error:
        raise LoadError(
            f"evaluator '{kind.__name__}' cannot be made without arguments: {describe(error)}"
        ) from error


def _exists(module_name: str) -> bool:
    try:
        return importlib.util.find_spec(module_name) is not None
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module_name}.".startswith(f"{error.name}."):
            return False
        raise LoadError(f"evaluator module '{module_name}': {error}") from error
    except Exception as error:
        raise LoadError(f"evaluator module '{module_name}': {describe(error)}") from error


def _named(module_name: str, attr: str) -> type[BaseEvaluator]:
    try:
        kind = getattr(importlib.import_module(module_name), attr, None)
    except (Exception, SystemExit) as error:
        raise LoadError(f"evaluator module '{module_name}': {describe(error)}") from error
    if not isinstance(kind, type) or not issubclass(kind, BaseEvaluator):
        what = "has no" if kind is None else "is not a subclass of BaseEvaluator:"
        raise LoadError(f"evaluator module '{module_name}' {what} '{attr}'")
    return kind


def _load_file(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("evaluator", path)
    if spec is None or spec.loader is None:
        raise LoadError(f"{path}: cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules["evaluator"] = module
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise LoadError(f"{path}: {describe(error)}") from error
    return module


def _only_subclass(module: ModuleType, where: str) -> type[BaseEvaluator]:
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, BaseEvaluator)
        and value.__module__ == module.__name__
        and not inspect.isabstract(value)
    ]
    bases = {base for value in found for base in value.__mro__[1:]}
    kinds = [value for value in dict.fromkeys(found) if value not in bases]
    if len(kinds) == 1:
        return kinds[0]
    if not kinds:
        raise LoadError(f"{where}: defines no subclass of BaseEvaluator with evaluate_task")
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise LoadError(
        f"{where}: defines several evaluators ({names}); keep one, or register the one "
        'that is meant as "module:Class"'
    )


def identity(evaluator: BaseEvaluator) -> str:
    """SHA-256 over the evaluator's name, version and source files.

    Its source files are those of its class and base classes, and of every module of its own
    folder that it has imported. What it reads otherwise is not seen: `version` is for that.
    """
    kind = type(evaluator)
    digest = hashlib.sha256(f"{kind.__qualname__}\0{kind.version}".encode())
    for path in sorted(_sources(kind)):
        digest.update(f"\0{path.name}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(kind: type[BaseEvaluator]) -> set[Path]:
    own = {
        path
        for base in kind.__mro__
        if issubclass(base, BaseEvaluator) and base is not BaseEvaluator
        for path in _file_of(sys.modules.get(base.__module__))
    }
    # A module of this package has the whole package beside it, which is not its own.
    in_package = kind.__module__.startswith("browseruse_bench.")
    folders = [path.parent for path in _file_of(sys.modules.get(kind.__module__)) if not in_package]
    beside = {
        path
        for name, module in list(sys.modules.items())
        if not name.startswith("browseruse_bench")
        for path in _file_of(module)
        if any(path.is_relative_to(folder) for folder in folders)
        and "site-packages" not in path.parts
    }
    return own | beside


def _file_of(module: ModuleType | None) -> tuple[Path, ...]:
    name = getattr(module, "__file__", None)
    return (Path(name).resolve(),) if name and Path(name).is_file() else ()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None)
