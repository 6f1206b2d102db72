"""Each export is read by the library that it is for, in an environment of that library's own."""

import json
import socket
import subprocess
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
