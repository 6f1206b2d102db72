"""`bubench gateway` as it is typed, with a client outside of it."""

import json
import signal
import stat
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner

from browseruse_bench.cli.root import bubench
from tests.models.gateway.pretend_provider import KEY, Served

BODY = {"model": "small", "messages": [{"role": "user", "content": "Hi."}], "max_tokens": 20}


@pytest.fixture
def provider(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SMALL_KEY", KEY)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with Served() as served:
        (tmp_path / "bubench.toml").write_text(f"""
[models.small]
id = "gpt-test"
base_url = "{served.url}/v1"
api_key_env = "SMALL_KEY"
usd_per_million = {{input = 10.0, output = 100.0}}
""")
        yield served


class Started:
    """The command while it runs."""

    def __init__(self, *options):
        command = [sys.executable, "-m", "browseruse_bench", "gateway", "--json", *options]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = subprocess.Popen(command, text=True, **pipes)

    def __enter__(self):
        self.told = json.loads(self.process.stdout.readline())
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def post(self, body, token=None):
        request = urllib.request.Request(
            f"{self.told['base_url']}/chat/completions",
            json.dumps(body).encode(),
            {"authorization": f"Bearer {token or self.told['token']}"},
        )
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err


def run(*options):
    return CliRunner().invoke(bubench, ["gateway", *options])


def test_it_forwards_until_ctrl_c_and_says_what_that_came_to(provider, tmp_path):
    with Started("--model", "small") as gateway:
        assert gateway.told["base_url"] == f"{gateway.told['url']}/v1"
        assert gateway.post(BODY)[0] == 200
        assert gateway.post({**BODY, "model": "gpt-test"})[0] == 200
        assert gateway.post(BODY, token="sk-bubench-guess")[0] == 401
        status, lines, err = gateway.end()
    assert status == 0
    (ended,) = lines
    assert ended["ended"]["calls"] == 2
    assert ended["ended"]["usage"][0]["cost_usd"] == pytest.approx(2 * (100 * 10 + 20 * 100) / 1e6)
    assert len(err.splitlines()) == 2
    assert {got.header("authorization")[0] for got in provider.got} == {f"Bearer {KEY}"}
    kept = [path for path in (tmp_path / "experiments" / "calls").rglob("*") if path.is_file()]
    assert [path for path in kept if KEY.encode() in path.read_bytes()] == []
    assert KEY not in json.dumps(gateway.told) + json.dumps(lines) + err
    with pytest.raises(urllib.error.URLError):
        gateway.post(BODY)


def test_a_limit_refuses_and_is_the_status_and_a_file_keeps_the_token_to_its_user(
    provider, tmp_path
):
    with Started("--model", "small", "--budget-usd", "0.02", "--token-file", "t") as gateway:
        file = tmp_path / "t"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        token = file.read_text().strip()
        assert "token" not in gateway.told
        statuses = [gateway.post(BODY, token)[0] for _ in range(5)]
        status, lines, _ = gateway.end(signal.SIGTERM)
    assert statuses[0] == 200
    assert statuses[-1] == 402
    assert status == 5
    assert "--budget-usd 0.02 would be passed" in lines[-1]["ended"]["refused"]
    assert not file.exists()
    assert len(provider.got) * 0.003 <= 0.02


def test_what_was_asked_is_replayed_without_a_key_and_nothing_else_is(
    provider, tmp_path, monkeypatch
):
    with Started("--model", "small") as gateway:
        provider.answers = []
        first = gateway.post(BODY)[1]
        gateway.end()
    monkeypatch.delenv("SMALL_KEY")
    n_asked = len(provider.got)
    with Started("--model", "small", "--replay") as gateway:
        assert gateway.post(BODY) == (200, first)
        status, said = gateway.post(BODY)
        assert (status, said["error"]["code"]) == (404, "not_recorded")
        assert gateway.post({**BODY, "n": 2})[0] == 404
        status, lines, _ = gateway.end()
    assert (status, lines[-1]["ended"]["replayed"], lines[-1]["ended"]["calls"]) == (0, 1, 0)
    assert len(provider.got) == n_asked


def test_in_plain_words_it_says_where_to_ask_and_with_what(provider):
    command = [sys.executable, "-m", "browseruse_bench", "gateway", "--model", "small"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        lines = [process.stdout.readline() for _ in range(6)]
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    finally:
        process.kill()
    assert lines[0].startswith("small: base URL http://127.0.0.1:")
    assert lines[1].startswith("token: sk-bubench-")
    assert "export OPENAI_BASE_URL=http://127.0.0.1:" in lines[4]
    assert out.startswith("ended: 0 calls")


def test_what_cannot_be_served_is_refused_with_status_2_in_one_line(provider, tmp_path):
    (tmp_path / "answers.json").write_text("[]")
    unpriced = f"openai-compatible:x@{provider.url}/v1"
    for options, said in (
        (("--model", "scripted:answers.json"), "over no wire"),
        (("--model", "openai:gpt-5"), "OPENAI_API_KEY is not set"),
        (("--model", unpriced, "--budget-usd", "1"), "no price is known"),
        (("--model", "small", "--replay"), "holds no calls"),
        (("--model", "small", "--port", "70000"), "70000"),
    ):
        done = run(*options)
        assert done.exit_code == 2, options
        assert said in done.stderr
        assert "Traceback" not in done.stderr
    with Started("--model", "small") as gateway:
        port = gateway.told["url"].rpartition(":")[2]
        done = run("--model", "small", "--port", port)
        assert done.exit_code == 2
        assert f"--port {port}: Address already in use" in done.stderr
