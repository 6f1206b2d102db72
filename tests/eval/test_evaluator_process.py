import asyncio
import os
import sys
from pathlib import Path

import pytest

from browseruse_bench.errors import BudgetError, ConfigError, EvaluatorError
from browseruse_bench.eval.evaluator_process import (
    Asked,
    EvaluatorJudge,
    EvaluatorProcess,
    EvaluatorSpec,
    clean_environment,
    reply_problem,
)
from browseruse_bench.models.base import OutageError
from browseruse_bench.models.scripted import ScriptedModel
from browseruse_bench.records.trace import Usage
from tests.report.made_run import GUIDE_EVALUATOR, evaluator

GOOD = 'return {"predicted_label": 1, "score": 70}'


def result(answer: str | None = "Paris", expected: object = "Paris") -> dict:
    task = {"task_id": "t", "task": "Say it"} | ({"expected_result": expected} if expected else {})
    return {"task_id": "t", "task": task, "answer": answer}


class Held:
    """An evaluator process for the source of an evaluator.py."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.open: list[EvaluatorProcess] = []

    def __call__(self, source: str, **spec: object) -> EvaluatorProcess:
        path = self.folder / "evaluator.py"
        path.write_text(source)
        made = EvaluatorProcess(EvaluatorSpec(target=str(path), **spec))
        self.open.append(made)
        return made


@pytest.fixture
async def held(tmp_path):
    made = Held(tmp_path)
    yield made
    for process in made.open:
        await process.close()


async def test_the_evaluator_of_the_guide_runs_word_for_word(held):
    process = held(GUIDE_EVALUATOR)
    verdict = await process.evaluate("t", result("It is Paris"))
    assert (verdict.label, verdict.score, verdict.reason) == (1, 100.0, None)
    assert verdict.details == {"grader_response": "Evaluation details..."}
    verdict = await process.evaluate("t", result("It is Rome"))
    assert (verdict.label, verdict.score) == (0, 0.0)


async def test_a_row_without_expected_result_is_no_reference_not_zero(held):
    verdict = await held(GUIDE_EVALUATOR).evaluate("t", result("Paris", expected=None))
    assert (verdict.reason, verdict.score) == ("no_reference", None)


async def test_prints_and_reads_of_an_evaluator_tear_no_message(held):
    body = """
import os, sys
print("not json"); os.write(1, b'{"n": 1, "value": 0}\\n'); sys.stdout.flush()
return {"predicted_label": 1, "score": 70, "evaluation_details": {"read": sys.stdin.read()}}
"""
    process = held(evaluator(body))
    for _ in range(2):
        verdict = await process.evaluate("t", result())
        assert (verdict.score, verdict.details) == (70, {"read": ""})


async def test_an_exception_is_an_evaluator_error_with_its_traceback(held):
    process = held(evaluator(f'if result["answer"] is None: raise KeyError("x\\ny")\n{GOOD}'))
    verdict = await process.evaluate("t", result(None))
    assert verdict.reason == "evaluator_error"
    assert "\n" not in verdict.message
    assert verdict.message.startswith("KeyError: ")
    assert "evaluate_task" in verdict.details["traceback"]
    assert (await process.evaluate("t", result())).score == 70


async def test_an_evaluator_that_exits_is_an_evaluator_error(held):
    process = held(evaluator(f'if result["answer"] is None: raise SystemExit(0)\n{GOOD}'))
    assert (await process.evaluate("t", result(None))).message == "SystemExit: 0"
    assert (await process.evaluate("t", result())).score == 70


async def test_a_crash_is_an_evaluator_error_and_the_next_task_is_evaluated(held):
    body = f"""
import os, sys
if result["answer"] is None:
    print("about to die", file=sys.stderr, flush=True); os.kill(os.getpid(), 11)
{GOOD}
"""
    process = held(evaluator(body))
    verdict = await process.evaluate("t", result(None))
    assert verdict.reason == "evaluator_error"
    assert "SIGSEGV" in verdict.message
    assert "about to die" in verdict.details["traceback"]
    assert (await process.evaluate("t", result())).score == 70


async def test_a_hang_is_killed_with_its_children_and_the_next_task_is_evaluated(held, tmp_path):
    pids = tmp_path / "pids"
    body = f"""
import os, subprocess, time
if result["answer"] is None:
    child = subprocess.Popen(["sleep", "600"])
    open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
    time.sleep(600)
{GOOD}
"""
    process = held(evaluator(body), timeout_s=5)
    verdict = await process.evaluate("t", result(None))
    assert (verdict.reason, verdict.message) == ("evaluator_error", "no reply within 5 s")
    for pid in pids.read_text().split():
        assert await ends(int(pid))
    assert (await process.evaluate("t", result())).score == 70


async def ends(pid: int) -> bool:
    """Whether a process is gone, or only waits to be collected, within five seconds."""
    for _ in range(50):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        await asyncio.sleep(0.1)
    return False


async def test_an_evaluator_that_hangs_does_not_outlive_a_killed_parent(tmp_path):
    (tmp_path / "evaluator.py").write_text(evaluator("while True: pass"))
    read, write = os.pipe()
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "browseruse_bench.eval.serve", str(tmp_path / "evaluator.py")),
        stdin=read,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    os.close(read)
    assert b"ready" in await child.stdout.readline()
    os.write(write, b'{"n": 1, "task_id": "t", "result": {}}\n')
    os.close(write)
    assert await asyncio.wait_for(child.wait(), 10) == -9


@pytest.mark.parametrize(
    "returned",
    [
        "None",
        "[1, 70]",
        '{"score": 70}',
        '{"predicted_label": 1}',
        '{"predicted_label": "1", "score": 70}',
        '{"predicted_label": 2, "score": 70}',
        '{"predicted_label": 0.5, "score": 70}',
        '{"predicted_label": None, "score": 70}',
        '{"predicted_label": 1, "score": "70"}',
        '{"predicted_label": 1, "score": True}',
        '{"predicted_label": 1, "score": float("nan")}',
        '{"predicted_label": 1, "score": float("inf")}',
        '{"predicted_label": 1, "score": 600}',
        '{"predicted_label": 1, "score": 10**400}',
        '{"predicted_label": 1, "score": -1}',
        '{"predicted_label": 1, "score": 70, "evaluation_details": "text"}',
    ],
)
async def test_a_malformed_result_is_ungraded_never_zero(held, returned):
    """Also peers: "600" scores 600; unparseable = zero."""
    verdict = await held(evaluator(f"return {returned}")).evaluate("t", result())
    assert (verdict.reason, verdict.score, verdict.label) == ("evaluator_error", None, None)
    assert verdict.message


async def test_a_forked_process_that_comes_back_never_answers_for_its_parent(held):
    body = """
if os.fork() == 0:
    return {"predicted_label": 1, "score": 99}
os.wait()
return {"predicted_label": 0, "score": 1}
"""
    process = held("import os\n" + evaluator(body))
    for _ in range(2):
        assert (await process.evaluate("t", result())).score == 1


@pytest.mark.parametrize("score", [0, 100, 0.5])
@pytest.mark.parametrize("label", [0, 1, True, False])
def test_a_well_formed_result_has_no_problem(label, score):
    assert reply_problem({"predicted_label": label, "score": score}) is None


async def test_extra_keys_and_values_that_json_cannot_hold_are_kept(held):
    body = """
return {"predicted_label": True, "score": 70, "evaluation_details": {
    "set": {1}, "nan": float("nan"), 3: (1, 2), "odd": b"x", "half": "\\ud800"}, "why": "so"}
"""
    verdict = await held(evaluator(body)).evaluate("t", result())
    assert verdict.label == 1
    assert verdict.details == {
        **{"set": [1], "nan": "nan", "3": [1, 2], "odd": "b'x'", "half": "?"},
        "extra": {"why": "so"},
    }


async def test_no_secret_reaches_the_evaluator(held, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    monkeypatch.setenv("HF_TOKEN", "hf-1")
    monkeypatch.setenv("PROXY", "http://user:word@proxy")
    monkeypatch.setenv("HARMLESS", "kept")
    body = """
import os
import sys
return {"predicted_label": 1, "score": 1, "evaluation_details": dict(os.environ)}
"""
    found = (await held(evaluator(body)).evaluate("t", result())).details
    assert found["HARMLESS"] == "kept"
    assert not {"OPENAI_API_KEY", "HF_TOKEN", "PROXY"} & set(found)


def test_clean_environment_drops_by_name_and_by_shape():
    dirty = {"AWS_SECRET_ACCESS_KEY": "a", "DB": "postgres://me:pw@host/x", "PATH": "/bin"}
    assert clean_environment(dirty) == {"PATH": "/bin"}


TWO = GUIDE_EVALUATOR + GUIDE_EVALUATOR.replace("YourBenchmarkEvaluator", "Second")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\n", "defines no subclass of BaseEvaluator"),
        (TWO, r"several evaluators \(Second, YourBenchmarkEvaluator\)"),
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def broken(:\n", "SyntaxError"),
        (
            evaluator(GOOD) + "    def __init__(self, needed): pass\n",
            "cannot be made without arguments",
        ),
    ],
)
async def test_an_evaluator_that_cannot_be_loaded_is_said_before_anything_is_judged(
    tmp_path, source, message
):
    """BL012."""
    path = tmp_path / "evaluator.py"
    path.write_text(source)
    judge = EvaluatorJudge(EvaluatorSpec(target=str(path)))
    with pytest.raises(ConfigError, match=message):
        await judge.start()
    await judge.close()


async def test_a_class_and_the_base_it_derives_from_are_one_evaluator(held):
    derived = evaluator(GOOD) + "class Derived(Made): pass\n"
    assert (await held(derived).start()).name == "Derived"


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("no_such_module:Made", "there is no module 'no_such_module'"),
        ("browseruse_bench.eval.none_such:Made", "there is no module"),
        ("json:Missing", "has no 'Missing'"),
        ("json:JSONDecoder", "not a subclass of BaseEvaluator"),
        ("Made", "neither module:Class nor the path"),
    ],
)
async def test_a_registered_evaluator_that_is_not_there_is_named(target, message):
    process = EvaluatorProcess(EvaluatorSpec(target=target))
    with pytest.raises(EvaluatorError, match=message):
        await process.start()


async def test_an_evaluator_is_found_by_module_and_class_from_the_current_folder(
    tmp_path, monkeypatch
):
    (tmp_path / "my_graders.py").write_text(TWO)
    monkeypatch.chdir(tmp_path)
    process = EvaluatorProcess(EvaluatorSpec(target="my_graders:Second"))
    assert (await process.start()).name == "Second"
    await process.close()


async def test_evaluator_py_stands_in_for_a_module_that_does_not_exist_and_it_is_said(tmp_path):
    path = tmp_path / "evaluator.py"
    path.write_text(GUIDE_EVALUATOR)
    target = "browseruse_bench.eval.your_evaluator:YourBenchmarkEvaluator"
    process = EvaluatorProcess(EvaluatorSpec(target=target, fallback=path))
    loaded = await process.start()
    assert loaded.name == "YourBenchmarkEvaluator"
    assert "'browseruse_bench.eval.your_evaluator:" in loaded.note
    assert str(path) in loaded.note
    await process.close()


async def test_a_module_that_is_there_but_broken_is_not_replaced(tmp_path, monkeypatch):
    (tmp_path / "broken_grader.py").write_text("import no_such_module\n")
    (tmp_path / "evaluator.py").write_text(GUIDE_EVALUATOR)
    monkeypatch.chdir(tmp_path)
    spec = EvaluatorSpec(target="broken_grader:Made", fallback=tmp_path / "evaluator.py")
    with pytest.raises(EvaluatorError, match="No module named 'no_such_module'"):
        await EvaluatorProcess(spec).start()


async def test_the_identity_changes_with_the_source_of_the_evaluator_and_of_its_helpers(tmp_path):
    """BL019."""

    async def identity(folder: str, source: str, helper: str = "X = 1\n") -> str:
        path = tmp_path / folder / "evaluator.py"
        path.parent.mkdir()
        path.write_text("import helper\n" + source)
        (path.parent / "helper.py").write_text(helper)
        process = EvaluatorProcess(EvaluatorSpec(target=str(path)))
        loaded = await process.start()
        await process.close()
        return loaded.identity

    first = await identity("a", evaluator(GOOD))
    assert await identity("b", evaluator(GOOD)) == first
    assert await identity("c", evaluator(GOOD) + "\n") != first
    assert await identity("d", evaluator(GOOD), helper="X = 2\n") != first


async def test_an_evaluator_that_is_edited_while_it_judges_is_refused_after_a_restart(held):
    process = held(evaluator(f'if result["answer"] is None: import os; os._exit(3)\n{GOOD}'))
    assert (await process.evaluate("t", result())).score == 70
    held(evaluator('return {"predicted_label": 1, "score": 71}'))
    assert "ended with status 3" in (await process.evaluate("t", result(None))).message
    verdict = await process.evaluate("t", result())
    assert (verdict.reason, verdict.score) == ("evaluator_error", None)
    assert "source changed" in verdict.message


async def test_an_evaluator_that_hangs_at_import_is_given_up(held):
    process = held("import time\ntime.sleep(600)\n", start_timeout_s=1)
    with pytest.raises(EvaluatorError, match="not ready after 1 s"):
        await process.start()


# What an evaluator asks a model

ASKS = """
from browseruse_bench.eval.base_evaluator import BaseEvaluator
from browseruse_bench.models.base import Message, Request

def request(text, sample=0):
    return Request(
        messages=(Message(role="user", parts=(text,)),), schema={"type": "object"}, sample=sample
    )

class Asks(BaseEvaluator):
    def evaluate_task(self, task_id, result):
        reply = self.ask(request(f"Is {result['answer']} right?"))
        return {"predicted_label": reply.value["label"], "score": 100 * reply.value["label"]}
"""


async def test_an_evaluator_asks_a_model_through_the_parent(held):
    model = ScriptedModel(lambda text, sample: {"label": int("Paris" in text)})
    verdict = await held(ASKS).evaluate("t", result("Paris"), Asked(model))
    assert (verdict.label, verdict.score, verdict.reason) == (1, 100.0, None)
    assert [use.cost_usd for use in verdict.usage] == [0.0]
    verdict = await held(ASKS).evaluate("t", result("Rome"), Asked(model))
    assert (verdict.label, verdict.score) == (0, 0.0)


async def test_an_evaluator_may_ask_from_many_threads_at_a_time(held):
    source = ASKS.replace("reply = self.ask", "one = self.ask").replace(
        "        return {",
        "        from concurrent.futures import ThreadPoolExecutor as Pool\n"
        "        with Pool(8) as pool:\n"
        "            said = list(pool.map(lambda n: self.ask(request(str(n))).value['n'], range(40)))\n"
        "        reply = one\n"
        "        assert said == list(range(40)), said\n"
        "        return {",
    )
    answer = lambda text, sample: {"label": 1, "n": int(text) if text.isdigit() else -1}  # noqa: E731
    verdict = await held(source).evaluate("t", result(), Asked(ScriptedModel(answer)))
    assert (verdict.label, verdict.message) == (1, "")


async def test_an_outage_of_the_model_is_a_judge_fault_and_never_the_agents(held):
    """BL035"""

    def down(text, sample):
        raise OutageError("503 for an hour", usage=Usage(model="m", cost_usd=0.01))

    verdict = await held(ASKS).evaluate("t", result(), Asked(ScriptedModel(down)))
    assert (verdict.reason, verdict.score) == ("judge_fault", None)
    assert "503 for an hour" in verdict.message
    assert verdict.usage[0].cost_usd == 0.01


async def test_an_evaluator_that_asks_without_a_model_says_what_to_type(held):
    verdict = await held(ASKS).evaluate("t", result())
    assert verdict.reason == "evaluator_error"
    assert "--judge" in verdict.message


async def test_a_reached_budget_ends_the_work_and_gives_no_verdict(held):
    def over(text, sample):
        raise BudgetError("5 USD are reached")

    with pytest.raises(BudgetError, match="5 USD"):
        await held(ASKS).evaluate("t", result(), Asked(ScriptedModel(over)))


async def test_what_the_model_takes_does_not_count_against_the_evaluator(held):
    process = held(ASKS, timeout_s=1.5)
    await process.start()

    class Slow(ScriptedModel):
        async def ask(self, request, **more):
            await asyncio.sleep(2.5)
            return await super().ask(request, **more)

    model = Slow(lambda text, sample: {"label": 1})
    assert (await process.evaluate("t", result(), Asked(model))).label == 1
    hangs = ASKS.replace(
        "        return {", "        import time; time.sleep(60)\n        return {"
    )
    process = held(hangs, timeout_s=1.5)
    await process.start()
    verdict = await process.evaluate("t", result(), Asked(model))
    assert verdict.reason == "evaluator_error"
    assert "no reply within 1.5 s" in verdict.message


async def test_each_grading_asks_with_sample_numbers_of_its_own(held):
    model = ScriptedModel(lambda text, sample: {"label": 1})
    process = held(ASKS.replace('right?")', 'right?", 3)'))
    for sample in (0, 1):
        await process.evaluate("t", result(), Asked(model, sample=sample))
    first, second = (request.sample for request in model.requests)
    assert first == 3
    assert second > first


async def test_the_images_of_a_request_reach_the_model(held, tmp_path):
    picture = tmp_path / "shot.png"
    picture.write_bytes(b"\x89PNG")
    source = ASKS.replace(
        "from browseruse_bench.models.base import",
        "import hashlib, pathlib\nfrom browseruse_bench.models.base import Image,",
    ).replace(
        "parts=(text,)",
        "parts=(text, Image.of_bytes(b'abc', 'image/png'), Image(sha256=hashlib.sha256("
        f"pathlib.Path({str(picture)!r}).read_bytes()).hexdigest(), media_type='image/png', "
        f"path={str(picture)!r}))",
    )
    model = ScriptedModel(lambda text, sample: {"label": 1})
    verdict = await held(source).evaluate("t", result(), Asked(model))
    assert verdict.label == 1, verdict.message
    assert [image.content() for image in model.requests[0].images] == [b"abc", b"\x89PNG"]


async def test_a_named_model_is_part_of_an_evaluators_key(tmp_path):
    path = tmp_path / "evaluator.py"
    path.write_text(ASKS)
    keys = []
    for model in (None, ScriptedModel([], label="a"), ScriptedModel([], label="b")):
        judge = EvaluatorJudge(EvaluatorSpec(target=str(path)), model=model)
        await judge.start()
        keys.append(judge.judge_key)
        await judge.close()
    assert len(set(keys)) == 3
