import asyncio
import json

import httpx
import pytest

from browseruse_bench.errors import BudgetError, ConfigError
from browseruse_bench.eval.judges import Verdict
from browseruse_bench.export.reward import service as service_module
from browseruse_bench.records.judgement import Finding
from tests.export.reward.conftest import told, zipped
from tests.report.made_run import rubric


class Counting:
    """A judge that finds everything met, or fails, and counts what it was asked."""

    basis = "findings"
    protocol = "counting"
    judge_key = "0" * 64

    def __init__(self, fail=0, gate=None, error=None):
        self.n = 0
        self.samples = []
        self.fail = fail
        self.gate = gate
        self.error = error

    async def judge(self, case):
        self.n += 1
        self.samples.append(case.sample)
        if self.gate is not None:
            await self.gate.wait()
        if self.n <= self.fail:
            raise self.error or RuntimeError("unparseable")
        return Verdict(
            findings=tuple(
                Finding(item=item.id, claim="c", status="met") for item in case.rubric.items
            )
        )


async def test_a_told_trace_is_graded_on_the_agents_word_and_says_so(setting):
    async with setting.served() as served:
        answer = await served.grade(told())
    assert answer.status_code == 200
    body = answer.json()
    assert (body["reward"], body["points"], body["success"]) == (0.6, 60, False)
    assert body["evidence_policy"] == body["details"]["evidence_policy"] == "agent_reported"
    assert [finding["status"] for finding in body["findings"]] == ["violated", "met"]


async def test_only_a_trace_of_a_journal_of_ours_is_graded_as_recorded_by_the_harness(setting):
    run = setting.run()
    entry = run.folder.attempts()["a", 1]
    packed = zipped(run.folder.try_path("a", 1, 1))
    async with setting.served() as served:
        alone = (await served.grade(content=packed)).json()
    async with setting.served(runs=setting.tmp / "experiments") as served:
        sent = (await served.grade(content=packed)).json()
        named = (await served.grade({"trace_key": entry.trace_key})).json()
    assert alone["trace_key"] == sent["trace_key"] == entry.trace_key
    assert alone["evidence_policy"] == "agent_reported"
    assert sent["evidence_policy"] == named["evidence_policy"] == "harness"
    assert sent["id"] == named["id"] != alone["id"]
    assert sent["reward"] == 0.6


async def test_the_same_request_is_graded_once_also_at_the_same_time_and_after_a_restart(setting):
    setting.bench.rubrics = {"a": rubric("a", 40, 60, check=False)}
    judge = Counting()
    async with setting.served(judge) as served:
        answers = await asyncio.gather(*(served.grade(told()) for _ in range(8)))
        other = await served.grade(told(sample=1))
    async with setting.served(judge) as served:
        again = await served.grade(told())
        read = await served.client.get(f"/v1/gradings/{again.json()['id']}")
    assert {answer.text for answer in (*answers, again, read)} == {answers[0].text}
    assert answers[0].json()["reward"] == 1
    assert other.json()["id"] != again.json()["id"]
    assert judge.n == 2


async def test_a_failed_grading_has_no_reward_and_is_tried_again_as_another_sample(setting):
    setting.bench.rubrics = {"a": rubric("a", 100, check=False)}
    judge = Counting(fail=1)
    async with setting.served(judge) as served:
        failed = await served.grade(told())
        read = await served.client.get(f"/v1/gradings/{failed.json()['id']}")
        again = await served.grade(told())
    assert failed.status_code == read.status_code == 502
    assert "reward" not in failed.text
    assert failed.json()["error"]["code"] == "judge_failed"
    assert (again.status_code, again.json()["reward"]) == (200, 1)
    assert judge.samples == [0, 1000]


async def test_a_spent_budget_is_no_reward_and_the_grading_stays_owed(setting):
    setting.bench.rubrics = {"a": rubric("a", 100, check=False)}
    async with setting.served(Counting(fail=1, error=BudgetError("spent"))) as served:
        refused = await served.grade(told())
    assert (refused.status_code, "reward" in refused.text) == (402, False)
    judge = Counting()
    async with setting.served(judge) as served:
        assert served.service.n_resumed == 1
        read = await served.client.get(
            f"/v1/gradings/{refused.json()['id']}", params={"wait_s": 20}
        )
    assert (read.status_code, read.json()["reward"], judge.n) == (200, 1, 1)


@pytest.mark.parametrize("what", ["rubric", "task", "wanted", "old", "gone"])
async def test_what_is_stale_answers_stale_and_no_reward(setting, what):
    fact = {"id": "F1", "claim": "c", "checked_on": "2026-11-01", "quote": "q"}
    setting.bench.rubrics = {"a": {**rubric("a", 100), "facts": [fact]}}
    days = 29 if what == "old" else 30
    async with setting.served(max_fact_age_days=days) as served:
        body = told()
        path = setting.bench.path / "rubrics" / "a.json"
        if what != "old":
            assert (await served.grade(body)).status_code == 200
        if what == "rubric":
            path.write_text(json.dumps(rubric("a", 50, 50)))
        elif what == "gone":
            path.unlink()
        elif what == "task":
            body["task_key"] = "0" * 64
        elif what == "wanted":
            body["rubric_key"] = "0" * 64
        answer = await served.grade(body)
        states = (await served.client.get("/v1/tasks")).json()
    assert (answer.status_code, answer.json()["status"]) == (409, "stale")
    assert "reward" not in answer.text
    assert ("stale" in states[0]) == (what in ("rubric", "old", "gone"))


async def test_a_full_queue_refuses_with_retry_after_and_loses_nothing(setting):
    setting.bench.rubrics = {"a": rubric("a", 100, check=False)}
    gate = asyncio.Event()
    async with setting.served(Counting(gate=gate), concurrency=1, max_queue=2) as served:
        first = await served.grade(told(sample=0), wait_s=0)
        while served.service.load()["grading"] == 0:
            await asyncio.sleep(0.01)
        others = [await served.grade(told(sample=n), wait_s=0) for n in (1, 2, 3)]
        same = await served.grade(told(sample=1), wait_s=0)
        gate.set()
        done = [
            await served.client.get(each.headers["location"], params={"wait_s": 20})
            for each in (first, *others[:2])
        ]
    assert [each.status_code for each in (first, *others)] == [202, 202, 202, 429]
    assert int(others[2].headers["retry-after"]) >= 1
    assert same.status_code == 202
    assert [each.json()["reward"] for each in done] == [1, 1, 1]


async def test_what_waits_when_the_server_ends_is_graded_by_the_next_one(setting, monkeypatch):
    monkeypatch.setattr(service_module, "GRACE_S", 0.05)
    setting.bench.rubrics = {"a": rubric("a", 100, check=False)}
    async with setting.served(Counting(gate=asyncio.Event()), concurrency=1) as served:
        ids = [(await served.grade(told(sample=n), wait_s=0)).json()["id"] for n in range(3)]
        served.service.closing = True
        late = await served.grade(told(sample=9), wait_s=0)
    assert (late.status_code, "retry-after" in late.headers) == (503, True)
    judge = Counting()
    async with setting.served(judge) as served:
        found = [await served.client.get(f"/v1/gradings/{id}", params={"wait_s": 20}) for id in ids]
    assert [each.json()["reward"] for each in found] == [1, 1, 1]
    assert judge.n == 3


async def test_orders_and_results_cut_at_any_byte_give_the_same_rewards(setting):
    async with setting.served() as served:
        whole = (await served.grade(told())).json()
    state = setting.tmp / "state"
    contents = {name: (state / name).read_bytes() for name in ("orders.jsonl", "results.jsonl")}
    for name, content in contents.items():
        for end in {0, 1, len(content) // 2, len(content) - 1}:
            for other, text in contents.items():
                (state / other).write_bytes(text)
            (state / name).write_bytes(content[:end])
            async with setting.served() as served:
                again = (await served.grade(told())).json()
            assert again.pop("at")
            assert again == {key: value for key, value in whole.items() if key != "at"}


async def test_a_task_that_nothing_grades_says_so(setting):
    async with setting.served() as served:
        answers = {t: await served.grade(told(t)) for t in ("b", "c")}
        states = {s["task_id"]: s for s in (await served.client.get("/v1/tasks")).json()}
    assert answers["b"].status_code == 422
    assert answers["b"].json()["error"]["code"] == "not_gradable"
    assert "not_gradable" in states["b"]
    assert answers["c"].json()["reward"] == 0


async def test_a_task_of_the_benchmarks_own_evaluator_is_graded_by_it(setting):
    from tests.report.made_run import evaluator

    setting.bench.evaluator = evaluator('return {"predicted_label": 1, "score": 70}')
    async with setting.served() as served:
        body = (await served.grade(told())).json()
    assert (body["reward"], body["success"]) == (0.7, True)


async def test_one_state_folder_is_served_by_one_process(setting):
    async with setting.served():
        with pytest.raises(ConfigError, match="another process"):
            async with setting.served():
                pass


async def test_the_token_opens_it_and_nothing_else_does(setting):
    async with setting.served() as served:
        for header in ("", "Bearer", "Bearer wrong", "Basic YTpi", "Bearer \u00e9"):
            given = {"authorization": header.encode()}
            for path in ("/v1/tasks", "/v1/gradings/x"):
                answer = await served.client.get(path, headers=given)
                assert (answer.status_code, answer.json()["status"]) == (401, "error")
        assert (await served.client.post("/v1/gradings", headers=given)).status_code == 401
        assert (await served.client.get("/healthz", headers=given)).json() == {"status": "ok"}


async def test_the_description_names_every_path_and_its_schemas_resolve(setting):
    async with setting.served() as served:
        described = (await served.client.get("/openapi.json")).json()
    assert described["openapi"] == "3.1.0"
    assert set(described["paths"]) == {"/v1/gradings", "/v1/gradings/{id}", "/v1/tasks", "/healthz"}
    text = json.dumps(described)
    for part in text.split('"$ref": "#/components/schemas/')[1:]:
        assert part.split('"')[0] in described["components"]["schemas"]
    graded = described["components"]["schemas"]["Graded"]
    assert "reward" in graded["required"]
    assert "reward" not in described["components"]["schemas"]["NoReward"]["properties"]
    assert isinstance(httpx.Response(200, json=described).json(), dict)
