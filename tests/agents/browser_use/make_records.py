"""Write tests/agents/browser_use/records/ anew, with the real library and scripted models.

    python -m tests.agents.browser_use.make_records [NAME ...]

Needs the environment of browser-use and Chromium. What is stored is what an attempt leaves in
native/, without the library's description of each page, which is long.
"""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

from browseruse_bench.records.trace import Limits
from browseruse_bench.runs.execute import execute
from browseruse_bench.runs.plan import RunRequest, plan

RECORDS = Path(__file__).with_name("records")
START = [{"navigate": {"url": "http://docs.test/"}}]
WAIT = [START, [{"wait": {"seconds": 30}}]]
DONE = [START, [{"click": {"index": {"role": "link", "name": "Grouping"}}}]]

# name -> script, limits
SCENES = {
    "finished": ([*DONE, [{"done": {"text": "There are 17.", "success": True}}]], {}),
    "failed": ([*DONE, [{"done": {"text": "Too many for me.", "success": False}}]], {}),
    "stuck": ([START, [{"upload_file": {"index": 1, "path": "/no/such/file"}}]], {}),
    "vanished": ([START, [{"click": {"index": 999999}}]], {"max_steps": 4}),
    "model_error": ([START, [{"fail": "the account has no credit"}]], {}),
    "timed_out": (WAIT, {"timeout_s": 20}),
    "crashed": (WAIT, {}),
}


async def play(script: list, limits: dict, kill: bool) -> Path:
    """The attempt's try folder."""
    folder = Path(tempfile.mkdtemp(prefix="records-"))
    (folder / "script.json").write_text(json.dumps(script))
    request = RunRequest(
        agent="browser-use",
        benchmark="LocalSites",
        mode="ids",
        task_ids=("docs-default-1",),
        model=f"scripted:{folder / 'script.json'}",
        limits=Limits(**limits),
        experiments=folder / "experiments",
        retries=0,
    )
    planned = plan(request)
    stop = asyncio.Event()
    running = asyncio.ensure_future(execute(planned, on_settled=lambda _: None, stop=stop))
    if kill:
        await kill_worker(planned.folder.path)
    await running
    return planned.folder.try_path("docs-default-1", 1, 1)


async def kill_worker(run: Path) -> None:
    """Kill the worker once it has ended its first turn."""
    while not list(run.glob("tasks/*/1/try-1/native/steps.jsonl")):
        await asyncio.sleep(0.2)
    for line in (run / "processes.jsonl").read_text().splitlines():
        entry = json.loads(line)
        if entry["event"] == "start" and entry["kind"] == "worker":
            with contextlib.suppress(ProcessLookupError):
                os.killpg(entry["pgid"], signal.SIGKILL)


def record_of(path: Path) -> dict:
    whole = path / "native" / "history.json"
    trace = json.loads((path / "trace.json").read_text())
    if whole.exists():
        record = json.loads(whole.read_text())
        for item in record["history"]:
            item["state_message"] = None
    else:
        lines = (path / "native" / "steps.jsonl").read_text().splitlines()
        record = {"history": [json.loads(line) for line in lines]}
    return {**record, "outcome": trace["outcome"], "limits": trace["limits"]}


def main(names: list[str]) -> None:
    RECORDS.mkdir(exist_ok=True)
    for name in names or SCENES:
        script, limits = SCENES[name]
        record = record_of(asyncio.run(play(script, limits, kill=name == "crashed")))
        text = json.dumps(record, indent=1, ensure_ascii=False, sort_keys=True)
        (RECORDS / f"{name}.json").write_text(text + "\n")
        print(name, record["outcome"], len(text))


if __name__ == "__main__":
    main(sys.argv[1:])
