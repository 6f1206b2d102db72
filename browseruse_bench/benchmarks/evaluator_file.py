"""Whether an evaluator.py can be one, told from its source; it is never run here."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

from browseruse_bench.benchmarks.problems import Problem

_BASE, _METHOD = "BaseEvaluator", "evaluate_task"


def evaluator_problem(path: Path) -> Problem | None:
    """Why a folder's evaluator.py is none; None if it can be one or is not there."""
    if not path.is_file():
        return None
    try:
        tree = ast.parse(path.read_bytes(), filename=path.name)
    except (SyntaxError, ValueError) as error:
        line = f"line {error.lineno}: " if isinstance(error, SyntaxError) and error.lineno else ""
        return Problem(path.name, None, "", f"{line}is not Python: {error}")
    names = evaluator_classes(tree)
    if len(names) > 1:
        text = f"has {len(names)} evaluators, {', '.join(names)}; it must have one"
        return Problem(path.name, None, "", text)
    if not names and not _may_inherit(tree):
        text = f"has no subclass of {_BASE} with a method evaluate_task"
        return Problem(path.name, None, "", text)
    return None


def evaluator_classes(tree: ast.Module) -> list[str]:
    """The classes at the top of a module that derive from BaseEvaluator and have a method
    evaluate_task, their own or that of such a class above them.
    """
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    derived = {_BASE, *_aliases(tree)}
    concrete: list[str] = []
    for node in classes:
        parents = _bases(node)
        if derived.isdisjoint(parents):
            continue
        derived.add(node.name)
        if _METHOD in _methods(node) or not set(concrete).isdisjoint(parents):
            concrete.append(node.name)
    return concrete


def _methods(node: ast.ClassDef) -> set[str]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {inner.name for inner in node.body if isinstance(inner, functions)}


def _aliases(tree: ast.Module) -> set[str]:
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    return {a.asname for node in imports for a in node.names if a.name == _BASE and a.asname}


def _bases(node: ast.ClassDef) -> list[str]:
    return [
        base.id if isinstance(base, ast.Name) else base.attr
        for base in node.bases
        if isinstance(base, (ast.Name, ast.Attribute))
    ]


def _may_inherit(tree: ast.Module) -> bool:
    """Whether some class derives from one that another module brings along."""
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    own = {node.name for node in classes} | set(dir(builtins)) | {_BASE, "ABC", *_aliases(tree)}
    return any(base not in own for node in classes for base in _bases(node))
