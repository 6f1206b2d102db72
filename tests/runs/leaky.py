"""A worker that tells its secrets wherever it can; found as tests.runs.leaky:Leaky."""

import json
import os
import sys
from pathlib import Path

from browseruse_bench.agents.worker import WorkerAgent
from browseruse_bench.records.trace import AgentId

KEY = "LEAKY_MODEL_KEY"


class Leaky(WorkerAgent):
    name = "leaky"
    needs_browser = False

    def identity(self):
        return AgentId(name=self.name, version="1", parameters={"api_key": os.environ[KEY]})

    def command(self):
        return (sys.executable, __file__, f"--key={os.environ[KEY]}")

    def secrets(self):
        return {KEY: os.environ[KEY]}


def _leak():
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(**message):
        out.write(json.dumps(message) + "\n")

    def hear():
        return json.loads(sys.stdin.readline())

    say(type="ready", protocol=1, agent="leaky")
    order = hear()
    key, shape = os.environ[KEY], "sk-shape0123456789abcdefghij"
    leak = f"Bearer {key} and {shape} at ws://127.0.0.1:9/devtools/browser/planted-endpoint"
    print(f"calling with {leak}")
    call = {"name": leak, "arguments": {"url": f"http://planted-user:{key}@x.test", leak: [leak]}}
    call |= {"result": leak, "error": leak, "target": leak}
    say(type="action", n=1, call=call, index=1)
    hear()
    say(type="step", n=2, index=1, thought=leak, native={"headers": {"Authorization": leak}})
    hear()
    for folder in (order["files"], order["native"]):
        (Path(folder) / f"{key}.txt").write_text(f"{leak}\n")
        (Path(folder) / "raw.bin").write_bytes(b"\xff\x00" + key.encode() + b"\xfe")
    if order["task"]["text"] == "falls over":
        raise RuntimeError(leak)
    say(type="end", status="finished", answer=f"the key is {key}", reason=leak, errors=[leak])
    hear()


if __name__ == "__main__":
    _leak()
