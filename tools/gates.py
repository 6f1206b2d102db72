"""Gates that no linter has: sizes of functions and files, and import cycles."""

from __future__ import annotations

import ast
import graphlib
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "browseruse_bench"

FUNCTION_LINES = 60
FUNCTION_LINES_P95 = 40
FILE_LINES = 700
FILE_LINES_P95 = 500


def body_lengths(tree: ast.Module) -> Iterator[tuple[str, int, int]]:
    """(name, line, lines of the body without the docstring) of each function."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            if body:
                yield node.name, node.lineno, (body[-1].end_lineno or 0) - body[0].lineno + 1


def percentile95(values: list[int]) -> int:
    """The smallest value that 95 % of the values do not exceed."""
    return sorted(values)[max(0, -(-95 * len(values) // 100) - 1)]


def size_problems(root: Path) -> list[str]:
    """Functions and files of the package that are too long."""
    problems: list[str] = []
    functions: list[int] = []
    files: list[int] = []
    for path in sorted(root.rglob("*.py")):
        text = path.read_text()
        files.append(len(text.splitlines()))
        where = path.relative_to(root.parent)
        if files[-1] > FILE_LINES:
            problems.append(f"{where}: {files[-1]} lines, at most {FILE_LINES}")
        for name, line, length in body_lengths(ast.parse(text)):
            functions.append(length)
            if length > FUNCTION_LINES:
                problems.append(f"{where}:{line}: {name}: {length} lines, at most {FUNCTION_LINES}")
    for what, values, limit in (
        ("function bodies", functions, FUNCTION_LINES_P95),
        ("files", files, FILE_LINES_P95),
    ):
        found = percentile95(values)
        print(f"{what}: {len(values)}, 95th percentile {found} lines (at most {limit})")
        if found > limit:
            problems.append(f"{what}: 95th percentile is {found} lines, at most {limit}")
    return problems


def cycle_problems(package: str) -> list[str]:
    """Import cycles between modules of the package."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=True)
    imports = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return [f"import cycle: {' -> '.join(error.args[1])}"]
    return []


def main() -> int:
    """Print what is wrong and return the exit status."""
    problems = size_problems(ROOT / PACKAGE) + cycle_problems(PACKAGE)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
