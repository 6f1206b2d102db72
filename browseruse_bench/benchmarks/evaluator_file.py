"""Whether an evaluator.py can be one, told from its source; it is never run here."""

from __future__ import annotations

import ast
import builtins
from pathlib import Path

from browseruse_bench.benchmarks.problems import Problem

_BASE = "BaseEvaluator"


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
        return Problem(path.name, None, "", f"has no subclass of {_BASE}")
    return None


def evaluator_classes(tree: ast.Module) -> list[str]:
    """The classes at the top of a module that derive from BaseEvaluator and that no other
    class of the module derives from.
    """
    bases = {node.name: _bases(node) for node in tree.body if isinstance(node, ast.ClassDef)}
    derived = {_BASE, *_aliases(tree)}
    evaluators: list[str] = []
    for name, parents in bases.items():
        if derived.intersection(parents):
            derived.add(name)
            evaluators.append(name)
    parents_of_others = {parent for name in evaluators for parent in bases[name]}
    return [name for name in evaluators if name not in parents_of_others]


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
    own = {node.name for node in classes} | set(dir(builtins))
    return any(base not in own for node in classes for base in _bases(node))
