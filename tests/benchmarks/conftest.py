"""A small sound benchmark folder that each test spoils or extends in one way."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browseruse_bench.store.files import escaped
from tests.benchmarks.small import INFO, TASKS, put


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Path]:
    """make(tasks, info={...}, rubrics={id: ...}, solutions={...}, files={path: ...}) -> folder."""

    def _make(
        tasks: Any = None,
        *,
        info: dict[str, Any] | None = None,
        rubrics: dict[str, Any] | None = None,
        solutions: dict[str, Any] | None = None,
        files: dict[str, Any] | None = None,
        name: str = "Small",
    ) -> Path:
        folder = tmp_path / "benchmarks" / name
        put(folder / "data_info.json", {**INFO, **(info or {})})
        put(folder / "data" / "tasks.json", TASKS if tasks is None else tasks)
        for kind, values in (("rubrics", rubrics), ("solutions", solutions)):
            for task_id, value in (values or {}).items():
                put(folder / kind / f"{escaped(task_id)}.json", value)
        for path, value in (files or {}).items():
            put(folder / path, value)
        return folder

    return _make
