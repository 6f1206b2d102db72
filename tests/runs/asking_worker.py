"""A worker that asks its model with nothing but the standard library, and does what its task
says: "ask 3", "ask 9 stubborn", "ask 1 crash", "environment", "hang"."""

import json
import os
import sys
import urllib.error
import urllib.request

OUT = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)


def say(**message):
    OUT.write(json.dumps(message) + "\n")
    OUT.flush()


def hear():
    line = sys.stdin.readline()
    if not line:
        os._exit(0)
    return json.loads(line)


def ask(model, key):
    body = {"model": model["name"], "messages": [{"role": "user", "content": "Hi."}]}
    request = urllib.request.Request(
        f"{model['base_url']}/chat/completions",
        json.dumps({**body, "max_tokens": 20}).encode(),
        {"authorization": f"Bearer {key}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def work(order):
    words = order["task"]["text"].split()
    model = order["settings"]["model"]
    key = os.environ.get("ASKING_KEY", "")
    if words[0] == "environment":
        return say(type="end", status="finished", answer=json.dumps({**os.environ, "order": order}))
    n_wanted, how = int(words[1]), words[2:]
    for n in range(n_wanted):
        try:
            ask(model, key)
        except urllib.error.HTTPError as error:
            print(error.code, error.read(), file=sys.stderr)
            if "stubborn" not in how:
                sys.exit(3)
        say(type="usage", usage={"model": "mine", "output_tokens": 1, "cost_usd": 0.0})
        say(type="action", n=n + 1, call={"name": "click"}, index=n + 1)
        if "stop" in hear():
            return say(type="end", status="gave_up")
    if "crash" in how:
        sys.exit(4)
    return say(type="end", status="finished", answer="done")


say(type="ready", protocol=1, agent="asking")
work(hear())
while hear()["type"] != "exit":
    pass
