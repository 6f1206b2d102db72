"""The real library in its own environment, driven by scripts, recorded by the harness."""

import asyncio
import json
import subprocess

import pytest

from browseruse_bench.agents.browser_use.agent import WORKER
from browseruse_bench.records.trace import Limits
from browseruse_bench.runs.execute import execute
from browseruse_bench.runs.plan import RunRequest, plan
from browseruse_bench.store.trace_folder import TraceFolder
from tests.agents.browser_use.openai_server import Served

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HOME = [{"navigate": {"url": "http://docs.test/"}}]
GROUPING = [{"click": {"index": {"role": "link", "name": "Grouping"}}}]
DONE = [{"done": {"text": "There are 17.", "success": True}}]


@pytest.fixture
def run(tmp_path, installed):
    """Play scripts of tasks of LocalSites; the folder and trace of each attempt."""

    async def play(scripts, *, model=None, concurrency=2, gateway=True, **limits):
        folder = tmp_path / "scripts"
        folder.mkdir()
        for task_id, script in scripts.items():
            (folder / f"{task_id}.json").write_text(json.dumps(script))
        planned = plan(
            RunRequest(
                agent="browser-use",
                benchmark="LocalSites",
                mode="ids",
                task_ids=tuple(scripts),
                model=model or f"scripted:{folder}",
                limits=Limits(**{"timeout_s": 120, **limits}),
                experiments=tmp_path / "experiments",
                concurrency=concurrency,
                gateway=gateway,
                retries=0,
            )
        )
        await execute(planned, on_settled=lambda _: None, stop=asyncio.Event())
        return {t: TraceFolder.open(planned.folder.try_path(t, 1, 1)) for t in scripts}

    return play


async def test_each_action_is_a_step_with_the_state_after_it(run):
    written = [{"write_file": {"file_name": "found.csv", "content": "n\n17\n"}}]
    twice = [
        {"input": {"index": {"role": "textbox", "name": "Search"}, "text": "chunked"}},
        {"send_keys": {"keys": "Enter"}},
    ]
    script = [HOME, twice, HOME, GROUPING, written, DONE]
    folder = (await run({"docs-default-1": script}))["docs-default-1"]
    trace, steps = folder.trace, folder.steps
    assert (trace.outcome.status, trace.outcome.answer) == ("finished", "There are 17.")
    assert trace.outcome.self_reported_success is True
    names = [step.calls[0].name for step in steps]
    assert names == ["navigate", "type", "key", "navigate", "click", "write_file", "done"]
    assert [step.native_index for step in steps] == [1, 2, 2, 3, 4, 5, 6]
    assert steps[1].page_after.url == "http://docs.test/"
    assert "search.html?q=chunked" in steps[2].page_after.url
    assert steps[4].page_after.url == "http://docs.test/grouping.html"
    assert {step.target_id for step in steps} == {steps[0].target_id}
    assert all("screenshot" in [o.kind for o in step.observations] for step in steps)
    assert all(step.calls[0].t0 <= step.calls[0].t1 <= step.t1 + 0.01 for step in steps)
    assert all(a.t1 <= b.t0 for a, b in zip(steps, steps[1:], strict=False))
    # Two actions of one turn share its thought, which stands at the first.
    assert steps[1].thought is not None
    assert (folder.path / "files" / "found.csv").read_text().split() == ["n", "17"]
    (usage,) = trace.usage
    assert (usage.model, usage.cost_usd, usage.price_source) == ("scripts", 0, "scripted, free")
    assert usage.uncached_tokens > 1000
    assert usage.output_tokens > 0
    history = json.loads((folder.path / "native" / "history.json").read_text())
    assert len(history["history"]) == 6
    assert "/tmp/" not in json.dumps([item["state"] for item in history["history"]])
    assert "cf.browser-use.com" not in json.dumps(trace.as_json())


async def test_two_attempts_at_once_never_share_a_tab(run):
    """Three agents on one endpoint all drove one tab; here each has a browser of its own."""
    other = [{"navigate": {"url": "http://flights.test/nyc/flights"}}]
    pause = [{"wait": {"seconds": 5}}]
    scripts = {
        "docs-default-1": [HOME, pause, GROUPING, DONE],
        "flights-count-1": [other, pause, DONE],
    }
    folders = await run(scripts)
    for task_id, host in (("docs-default-1", "docs.test"), ("flights-count-1", "flights.test")):
        folder = folders[task_id]
        assert folder.trace.outcome.status == "finished"
        assert all(f"http://{host}/" in step.page_after.url for step in folder.steps)
        assert all(len(step.page_after.tabs) == 1 for step in folder.steps)
    targets = [{step.target_id for step in folder.steps} for folder in folders.values()]
    assert not targets[0] & targets[1]


async def test_limits_end_an_attempt_with_their_own_status(run):
    wait = [{"wait": {"seconds": 2}}]
    folders = await run({"docs-default-1": [HOME, wait]}, max_steps=3)
    trace = folders["docs-default-1"].trace
    assert (trace.outcome.status, trace.outcome.answer) == ("step_limit", None)
    # In its last turn the library takes nothing but a last word, which this script has not.
    assert trace.n_steps == 2
    assert trace.outcome.reason == "3 steps"


async def test_an_attempt_that_runs_out_of_time_keeps_what_it_did_and_spent(run):
    # The library cuts a wait to half a minute; three of them outlast the limit in any case.
    script = [HOME, *[[{"wait": {"seconds": 30}}]] * 3]
    folders = await run({"docs-default-1": script}, timeout_s=45)
    folder = folders["docs-default-1"]
    assert (folder.trace.outcome.status, folder.trace.outcome.answer) == ("time_limit", None)
    assert folder.steps[0].calls[0].name == "navigate"
    assert folder.trace.usage[0].uncached_tokens > 0
    assert (folder.path / "native" / "steps.jsonl").read_text().count("\n") in (1, 2)


async def test_a_task_without_a_script_gives_up_at_once(run):
    trace = (await run({"docs-default-1": []}))["docs-default-1"].trace
    assert trace.outcome.status == "gave_up"
    assert trace.outcome.self_reported_success is False
    assert trace.n_steps == 1


async def test_a_download_is_evidence_of_the_harness(run):
    csv = "http://flights.test/nyc/airlines.csv?_dl=1"
    script = [[{"navigate": {"url": csv}}], [{"wait": {"seconds": 4}}], DONE]
    trace = (await run({"flights-count-1": script}))["flights-count-1"].trace
    names = [o.name for o in trace.final.observations if o.kind == "download"]
    assert names == ["airlines.csv"]


async def test_over_the_wire_the_one_key_is_sent_and_cached_tokens_are_apart(
    run, tmp_path, monkeypatch
):
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", "sk-for-the-test")
    monkeypatch.chdir(tmp_path)
    script = [HOME, GROUPING, DONE]
    with Served({"grouper": script}) as served:
        model = f"openai-compatible:played@{served.url}"
        folders = await run({"docs-default-1": []}, model=model, gateway=False)
    folder = folders["docs-default-1"]
    assert folder.trace.outcome.answer == "There are 17."
    assert {key for key, _ in served.requests} == {"Bearer sk-for-the-test"}
    assert len(served.requests) == 3
    (usage,) = folder.trace.usage
    assert usage.model == "played"
    assert usage.cached_tokens == sum(
        len(json.dumps(body)) // 4 // 2 for _, body in served.requests
    )
    assert usage.cached_tokens <= usage.uncached_tokens
    assert (usage.cost_usd, usage.price_source) == (None, None)
    written = [p for p in (tmp_path / "experiments").rglob("*") if p.is_file()]
    assert [p for p in written if b"sk-for-the-test" in p.read_bytes()] == []


async def test_a_model_that_fails_is_an_agent_error_with_its_words(run):
    folders = await run({"docs-default-1": [HOME, [{"fail": "the account has no credit"}]]})
    outcome = folders["docs-default-1"].trace.outcome
    assert outcome.status == "agent_error"
    assert outcome.reason == "the model failed 4 times in a row: the account has no credit"
    assert folders["docs-default-1"].trace.errors


def test_no_env_file_of_the_user_is_loaded(installed, tmp_path):
    """The library loads every .env that it finds above its own folder."""
    secret = installed.path / ".env"
    script = tmp_path / "script.py"
    here = f"import sys; sys.path.insert(0, {str(WORKER.parent)!r})"
    tell = "import os; os.write(2, os.environ.get('LEAKED_SECRET', 'nothing').encode())"
    told = []
    secret.write_text("LEAKED_SECRET=from-a-file")
    try:
        for imported in ("browser_use.agent.service", "worker"):
            script.write_text(f"{here}\nimport {imported}\n{tell}\n")
            done = subprocess.run(
                [str(installed.python), str(script)],
                env={"TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
                capture_output=True,
                text=True,
                check=True,
            )
            told.append(done.stderr)
    finally:
        secret.unlink()
    assert told[0].endswith("from-a-file")
    assert told[1].endswith("nothing")


async def test_a_cost_limit_ends_an_attempt_by_the_price_that_was_given(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with Served({"grouper": [HOME, [{"wait": {"seconds": 1}}]]}) as served:
        (tmp_path / "bubench.toml").write_text(f"""
[models.dear]
id = "played"
base_url = "{served.url}"
usd_per_million = {{input = 100, cached = 10, output = 100}}
""")
        given = {"model": "dear", "cost_usd": 2.0, "gateway": False}
        folders = await run({"docs-default-1": []}, **given)
    trace = folders["docs-default-1"].trace
    assert (trace.outcome.status, trace.outcome.answer) == ("budget_limit", None)
    (usage,) = trace.usage
    tokens = 100 * usage.uncached_tokens + 10 * usage.cached_tokens + 100 * usage.output_tokens
    assert usage.cost_usd == pytest.approx(tokens / 1e6)
    assert usage.cost_usd >= 2.0
    assert usage.price_source == "bubench.toml: models.dear"
