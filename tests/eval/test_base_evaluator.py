import subprocess
import sys

import pytest

from browseruse_bench.eval.base_evaluator import BaseEvaluator, NoReferenceError


class Guide(BaseEvaluator):
    def evaluate_task(self, task_id: str, result: dict) -> dict:
        score = self._calculate_score(result)
        return {"predicted_label": 1 if score >= 60 else 0, "score": score}


def result(expected: object, answer: str | None) -> dict:
    task = {"task_id": "t", "task": "Say it"}
    if expected is not None:
        task["expected_result"] = expected
    return {"task_id": "t", "task": task, "answer": answer, "status": "finished", "steps": []}


@pytest.mark.parametrize(
    ("expected", "answer", "score"),
    [
        ("Paris", "It is Paris.", 100),
        ("Paris", "It is Rome.", 0),
        ("Paris", None, 0),
        (["Paris", "Rome"], "Paris and Rome", 100),
        (["Paris", "Rome"], "Paris", 50),
    ],
)
def test_calculate_score_is_the_share_of_the_expected_result(expected, answer, score):
    assert Guide()._calculate_score(result(expected, answer)) == score
    assert Guide().evaluate_task("t", result(expected, answer))["predicted_label"] == (score >= 60)


def test_without_expected_result_there_is_no_score():
    with pytest.raises(NoReferenceError, match="'t' has no expected_result"):
        Guide()._calculate_score(result(None, "Paris"))


def test_an_evaluator_without_evaluate_task_cannot_be_made():
    with pytest.raises(TypeError, match="evaluate_task"):
        type("Empty", (BaseEvaluator,), {})()


def test_importing_the_base_class_loads_nothing_heavy():
    code = (
        "import sys; import browseruse_bench.eval.base_evaluator\n"
        "heavy = {'pydantic', 'asyncio', 'rich', 'websockets', 'click'} & set(sys.modules)\n"
        "sys.exit(', '.join(sorted(heavy)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
