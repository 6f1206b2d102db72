"""Each export is read by the library that it is for, in an environment of that library's own."""

import json
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from click.testing import CliRunner

from browseruse_bench.benchmarks.load import load_benchmark
from browseruse_bench.cli.root import bubench
from tests.export import foreign
from tests.report.made_run import MadeRun

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


@pytest.fixture(scope="module", autouse=True)
def _environments():
    yield
    foreign.remove_all()


def export(*arguments):
    done = CliRunner().invoke(bubench, ["export", *map(str, arguments)])
    assert done.exit_code == 0, done.output


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def told_by(url, seconds=60):
    """What a server says once it is there."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return answer.read().decode()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


DATASETS = """
import json, sys
from datasets import load_dataset
import mlcroissant
folder = sys.argv[1]
rows = load_dataset(folder, "easy")["test"]
default = load_dataset(folder)["test"]
described = mlcroissant.Dataset(jsonld=folder + "/croissant.json")
records = [r["easy/task_id"].decode() for r in described.records("easy")]
print(json.dumps({"easy": rows["task_id"][:], "default": default.num_rows, "records": records,
                  "rubric": rows[0]["rubric"],
                  "errors": list(described.metadata.ctx.issues.errors)}))
"""


def test_datasets_and_mlcroissant_read_the_data_set(tmp_path):
    python = foreign.environment("datasets==5.2.0", "mlcroissant==1.1.1")
    export("parquet", "LocalSites", tmp_path / "out", "--answers")
    found = foreign.run(python, DATASETS, tmp_path / "out")
    easy = load_benchmark("LocalSites", "Easy")
    assert found["easy"] == found["records"] == [task.task_id for task in easy.tasks]
    assert found["default"] == len(load_benchmark("LocalSites").tasks)
    assert json.loads(found["rubric"]) == easy.rubric(easy.tasks[0].task_id).as_json()
    assert found["errors"] == []


INSPECT = """
import json, sys
from inspect_ai.log import read_eval_log, read_eval_log_sample_summaries, list_eval_logs
log = read_eval_log(sys.argv[1])
summaries = read_eval_log_sample_summaries(sys.argv[1])
print(json.dumps({
    "status": log.status,
    "ids": [s.id for s in log.samples],
    "points": [s.scores["points"].value if s.scores else None for s in log.samples],
    "messages": [[m.role for m in s.messages] for s in log.samples],
    "mean": log.results.scores[0].metrics["mean"].value,
    "summaries": len(summaries),
    "header": read_eval_log(sys.argv[1], header_only=True).eval.model,
}))
"""


def test_inspect_reads_the_log_of_a_run_and_its_viewer_opens_it(tmp_path):
    python = foreign.environment("inspect-ai==0.3.285")
    loaded = load_benchmark("LocalSites")
    made = MadeRun.of(tmp_path / "x", loaded, task_ids=["flights-count-1", "shop-orders-1"])
    for task in ("flights-count-1", "shop-orders-1"):
        if task in {t.task_id for t in loaded.tasks}:
            made.settle(loaded, task, "55", urls=("http://flights.test/nyc/flights",))
    experiments = ["--experiments", str(tmp_path / "x")]
    CliRunner().invoke(
        bubench, ["eval", "--agent", "scripted", "--benchmark", "LocalSites", *experiments]
    )
    (tmp_path / "logs").mkdir()
    out = tmp_path / "logs" / "run.eval"
    export("inspect", made.folder.path, out)
    found = foreign.run(python, INSPECT, out)
    assert found["status"] == "success"
    assert found["ids"][0] == "flights-count-1"
    assert found["points"][0] == found["mean"]
    assert found["messages"][0][0] == "user"
    assert found["summaries"] == len(found["ids"])
    assert found["header"] == "scripted"
    port = free_port()
    viewer = subprocess.Popen(
        [python.parent / "inspect", "view", "start", "--log-dir", out.parent, "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        listed = json.loads(told_by(f"http://127.0.0.1:{port}/api/logs"))
        assert "run.eval" in json.dumps(listed)
        name = (listed.get("files") or listed.get("logs"))[0]["name"]
        shown = told_by(f"http://127.0.0.1:{port}/api/logs/{name}?header-only=0")
        assert "flights-count-1" in shown
    finally:
        viewer.terminate()
        viewer.wait(20)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory):
    """A served reward for LocalSites; its address and token as variables."""
    folder = tmp_path_factory.mktemp("reward")
    command = (sys.executable, "-m", "browseruse_bench", "serve-reward", "--json")
    with subprocess.Popen(
        [*command, "--benchmark", "LocalSites"], stdout=subprocess.PIPE, text=True, cwd=folder
    ) as process:
        told = json.loads(process.stdout.readline())
        yield {"REWARD_URL": told["url"], "REWARD_TOKEN": told["token"]}
        process.terminate()


SEEN = "55 rows where dep_delay > 180"
URL = "http://flights.test/nyc/flights?dep_delay__gt=180"

VERIFIERS = """
import asyncio, json, os, sys
import verifiers.v1 as vf
sys.path.insert(0, sys.argv[1])
taskset = vf.load_taskset(vf.TasksetConfig(id="bubench-localsites"))
tasks = list(taskset)
task = tasks[0]
say = vf.AssistantMessage
call = vf.ToolCall(id="1", name="look", arguments='{"at": "x"}')
seen = vf.ToolMessage(tool_call_id="1", content=sys.argv[2])
made = [vf.UserMessage(content=task.data.prompt), say(tool_calls=[call]), seen, say(content="55")]
nodes = [
    vf.MessageNode(message=m, parent=n - 1 if n else None, sampled=m.role == "assistant")
    for n, m in enumerate(made)
]
def trace():
    about = {"type": "BrowserTask", "data": task.data, "key": task.key}
    return vf.Trace.model_construct(task=about, nodes=nodes, rewards={}, metrics={}, info={},
                                    root_reply=None, calls=[])
good = trace()
asyncio.run(task.score(good))
os.environ["REWARD_TOKEN"] = "x" * 20
bad = trace()
try:
    asyncio.run(task.score(bad))
    failed = ""
except vf.TaskError as error:
    failed = repr(error.__cause__ or error)
print(json.dumps({"n": len(tasks), "ids": [t.data.id for t in tasks][:2], "key": task.key,
                  "reward": good.rewards["reward"].score, "failed": failed,
                  "policy": good.info["grading"]["evidence_policy"],
                  "unscored": bad.rewards.get("reward")}))
"""


def test_verifiers_loads_the_taskset_and_our_endpoint_scores_it(tmp_path, endpoint):
    python = foreign.environment("verifiers==0.4.0")
    export("verifiers", "LocalSites", tmp_path / "out")
    found = foreign.run(python, VERIFIERS, tmp_path / "out", SEEN, **endpoint)
    loaded = load_benchmark("LocalSites")
    assert found["n"] == len(loaded.tasks)
    assert found["key"] == loaded.tasks[0].view.key
    assert found["policy"] == "agent_reported"
    assert 0 < found["reward"] < 1
    assert "401" in found["failed"]
    assert found["unscored"] is None


OPENENV = """
import json, sys, urllib.request
sys.path.insert(0, sys.argv[1])
from bubench_localsites import BrowserAction, BrowserEnv
with BrowserEnv(base_url=sys.argv[2]).sync() as env:
    first = env.reset(task_id="flights-count-1")
    seen = env.step(BrowserAction(saw=sys.argv[3], call="navigate", url=sys.argv[4]))
    state = env.state()
    last = env.step(BrowserAction(answer="55"))
    again = env.reset(seed=1).observation.task_id == env.reset(seed=1).observation.task_id
print(json.dumps({"task": first.observation.task, "start": [first.reward, first.done],
                  "middle": [seen.reward, seen.done], "steps": state.step_count,
                  "end": [last.reward, last.done],
                  "policy": last.observation.grading["evidence_policy"], "again": again}))
"""


def test_openenv_resets_steps_and_rewards_through_its_own_client(tmp_path, endpoint):
    python = foreign.environment("openenv-core==0.3.0")
    export("openenv", "LocalSites", tmp_path / "out")
    port = free_port()
    server = subprocess.Popen(
        [python, "-m", "bubench_localsites.app", "--port", str(port)],
        cwd=tmp_path / "out",
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), **endpoint},
    )
    url = f"http://127.0.0.1:{port}"
    try:
        told_by(f"{url}/health", 240)  # it imports gradio, uncompiled
        found = foreign.run(python, OPENENV, tmp_path / "out", url, SEEN, URL)
    finally:
        server.terminate()
        server.wait(20)
    assert found["task"] == load_benchmark("LocalSites").task("flights-count-1").task
    assert found["start"] == found["middle"] == [None, False]
    assert found["steps"] == 1
    assert found["end"] == [1.0, True]
    assert found["policy"] == "agent_reported"
    assert found["again"]


HARBOR = """
import json, sys
from pathlib import Path
from harbor.models.task.task import Task
folders = sorted(Path(sys.argv[1]).iterdir())
tasks = [Task(folder) for folder in folders]
print(json.dumps({"valid": [Task.is_valid_dir(folder) for folder in folders],
                  "ids": [task.config.metadata["task_id"] for task in tasks],
                  "instructions": [task.instruction for task in tasks]}))
"""


def test_harbor_parses_every_task_folder(tmp_path):
    python = foreign.environment("harbor==0.25.0", python="3.12")
    export("harbor", "LocalSites", tmp_path / "out", "--answers")
    found = foreign.run(python, HARBOR, tmp_path / "out")
    loaded = load_benchmark("LocalSites")
    assert all(found["valid"])
    assert sorted(found["ids"]) == sorted(task.task_id for task in loaded.tasks)
    for task_id, instruction in zip(found["ids"], found["instructions"], strict=True):
        assert loaded.task(task_id).task in instruction
        assert "CANARY" not in instruction
