"""A worker process that plays a script, also a bad one. Speaks the protocol by hand, so that a
change of our own records cannot hide a change of the protocol."""

import json
import os
import sys
import time

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


def act(n, name="click", **more):
    say(type="action", n=n, call={"name": name, "arguments": {}}, focus="T1", **more)
    return hear()


def honest(order):
    act(1, index=1)
    act(2, index=1)
    say(type="step", n=3, index=1, thought="two done", native={"raw": 1})
    assert hear() == {"type": "recorded", "n": 3}
    say(type="usage", usage={"model": "m", "uncached_tokens": 10, "cost_usd": 0.5})
    say(type="heartbeat")
    print("a library's print cannot tear a line")
    say(type="end", status="finished", answer="42", claimed_success=True)


def endless(order):
    n = 0
    while True:
        n += 1
        answer = act(n)
        if "stop" in answer:
            say(type="end", status="gave_up", answer="partial")
            return


def torn(order):
    OUT.write('{"type": "action", "n": 1, ')
    OUT.flush()
    sys.exit(3)


def unknown(order):
    say(type="dance")


def out_of_order(order):
    act(1)
    act(3)


def not_json(order):
    OUT.write("hello\n")


def silent(order):
    time.sleep(3600)


def leaves(order):
    print("RuntimeError: no key", file=sys.stderr)
    sys.exit(7)


def deaf_to_stop(order):
    n = 0
    while True:
        n += 1
        act(n)


def environment(order):
    say(type="end", status="finished", answer=json.dumps(dict(os.environ)))


def expensive(order):
    for n in range(1, 9):
        say(type="usage", usage={"model": "m", "cost_usd": 0.1 * n})
        if "stop" in act(n):
            break
    say(type="end", status="finished", answer="42")


def hoards(order):
    import subprocess

    hoard = "import time; kept = bytearray(400_000_000); kept[::4096] = b'x' * len(kept[::4096])"
    subprocess.run([sys.executable, "-c", f"{hoard}; time.sleep(3600)"], check=False)


def sees(order):
    say(type="end", status="finished", answer=json.dumps(order))


def child(order):
    import subprocess

    process = subprocess.Popen(["sleep", "3600"])
    say(type="end", status="finished", answer=str(process.pid))


if sys.argv[1] == "never_ready":
    time.sleep(3600)
if sys.argv[1] == "no_ready":
    say(type="heartbeat")
    time.sleep(3600)
say(type="ready", protocol=1, agent="scripted", versions={"scripted": "1"}, pid=os.getpid())
globals()[sys.argv[1]](hear())
while hear()["type"] != "exit":
    pass
