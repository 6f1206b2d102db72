"""The worker of the survival test. It needs nothing but the standard library: a worker that is
confined reads its own file, and not the package.
"""

import json
import os
import sys
import time
import urllib.request


def play():
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def say(**message):
        out.write(json.dumps(message) + "\n")

    def hear():
        line = sys.stdin.readline()
        if not line:
            os._exit(0)
        return json.loads(line)

    say(type="ready", protocol=1, agent="player")
    order = hear()
    for n in (1, 2):
        request = urllib.request.Request(
            f"{order['cdp_url']}/json/new?http://notes.test/{n}", method="PUT"
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            target = json.load(answer)["id"]
        time.sleep(0.3)  # else a worker would hardly ever be there to be killed
        say(type="action", n=n, call={"name": "navigate", "arguments": {"n": n}}, focus=target)
        hear()
    say(type="end", status="finished", answer=order["task"]["text"])
    while hear()["type"] != "exit":
        pass


if __name__ == "__main__":
    play()
