"""What an agent, a page or another process may try at the endpoint."""

import asyncio
import json
import os
import socket
import subprocess
import sys

import pytest

from browseruse_bench.errors import ConfigError
from browseruse_bench.models.gateway import server
from browseruse_bench.models.gateway.tokens import MAX_CALLS, PREFIX, Grants
from tests.models.gateway.plain_client import body_of, post, raw
from tests.models.gateway.pretend_provider import KEY, chat, stream, whole

REAL = b"sk-provider-0123456789abcdef-SECRET"


NO_TOKENS = [
    None, "authorization: Bearer sk-bubench-" + "0" * 64, "authorization: Bearer ",
    "authorization: Basic abc", "x-api-key: sk-bubench-guess", "x-goog-api-key: *",
]  # fmt: skip


async def test_without_a_token_that_is_open_nothing_is_asked(way, provider):
    access = way.open()
    for header in NO_TOKENS:
        status, _, said = await post(access, token=False, headers=[header] if header else [])
        assert (status, said["error"]["code"]) == (401, "invalid_api_key"), header
    assert provider.got == []


async def test_the_beginning_or_another_spelling_of_a_token_opens_nothing(way, provider):
    access = way.open()
    token = access.endpoint.token
    for guess in (token[:-1], token + "0", token.upper(), token.replace(PREFIX, ""), f'"{token}"'):
        status, *_ = await post(access, token=False, headers=[f"authorization: Bearer {guess}"])
        assert status == 401, guess
    assert provider.got == []


def test_tokens_are_long_all_differ_and_are_not_kept_themselves():
    grants = Grants()
    tokens = {grants.issue(object()) for _ in range(100)}
    assert len(tokens) == 100
    assert {len(token) for token in tokens} == {len(PREFIX) + 64}
    assert not [token for token in tokens if token in repr(vars(grants))]


async def test_a_token_is_worth_nothing_once_its_attempt_has_settled(way, provider):
    access, other = way.open(), way.open()
    await way.gateway.close(access)
    assert (await post(access))[0] == 401
    assert (await post(other))[0] == 200
    assert len(provider.got) == 1


async def test_the_token_of_one_attempt_is_counted_for_that_attempt_alone(way):
    one, two = way.open(), way.open()
    await post(one)
    await post(one)
    await post(two)
    assert (one.grant.meter.n_calls, two.grant.meter.n_calls) == (2, 1)


async def test_a_second_key_beside_the_token_is_refused(way, provider):
    access = way.open()
    for extra in ("authorization: Bearer", "x-api-key:", "x-goog-api-key:", "api-key:"):
        status, _, said = await post(access, headers=[f"{extra} sk-own"])
        assert status == 401, extra
        assert "no other key beside it" in said["error"]["message"]
    for name in ("key", "api_key", "api-key"):
        assert (await post(access, f"/v1/chat/completions?{name}=sk-own"))[0] == 401, name
    assert provider.got == []
    assert (await post(access, "/v1/chat/completions?authorization=sk-own&x=1"))[0] == 200
    assert provider.got[0].target == "/v1/chat/completions"


async def test_no_header_of_a_client_reaches_the_provider_but_those_of_a_list(way, provider):
    access = way.open()
    smuggled = [
        "openai-organization: org-x", "cookie: a=b", "x-forwarded-for: 10.0.0.1", "te: trailers",
        "proxy-authorization: Basic eA==", "x-real: 1", "http-referer: http://me.test",
        "keep-alive: timeout=5", "forwarded: for=1", "user-agent: Agent/1",
        "connection: authorization",
    ]  # fmt: skip
    assert (await post(access, headers=smuggled))[0] == 200
    (got,) = provider.got
    assert {name for name, _ in got.headers} == {
        "host", "accept-encoding", "connection", "user-agent", "content-type", "content-length",
        "http-referer", "authorization", "accept",
    }  # fmt: skip
    assert got.header("authorization") == [f"Bearer {KEY}"]
    assert got.header("host") == [f"127.0.0.1:{provider.port}"]
    assert got.header("user-agent")[0].startswith("browseruse-bench/")
    assert got.target == "/v1/chat/completions"


PATHS = [
    "/v1/../v1/chat/completions",
    "/v1/chat/completions/",
    "/v1//chat/completions",
    "//v1/chat/completions",
    "/v1/chat/completions/../../../admin",
    "/v1/chat%2Fcompletions",
    "/v1/%63hat/completions",
    "/v1/chat/completions;x",
    "/v1/files",
    "/v1/embeddings",
    "/",
    "http://169.254.169.254/latest/meta-data",
    "http://127.0.0.1:1/v1/chat/completions",
    "/v1/organization/admin_api_keys",
]


async def test_a_path_that_is_not_in_the_table_is_not_there(way, provider):
    access = way.open()
    for path in PATHS:
        status, _, said = await post(access, path)
        assert status in (400, 404), path
        assert "error" in said
    assert provider.got == []


async def test_other_methods_and_tunnels_are_not_there(way, provider):
    access = way.open()
    for method in ("GET", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"):
        status, headers, _ = await post(access, method=method)
        assert status in (400, 404, 405), method
        assert not [name for name, _ in headers if name.lower().startswith("access-control")]
    assert provider.got == []


HOSTS = [
    (None, 200), ("localhost:{port}", 200), ("LOCALHOST:{port}", 200), ("evil.test", 421),
    ("127.0.0.1", 421), ("127.0.0.1:1", 421), ("evil.test:{port}", 421), ("", 400),
    ("127.0.0.1:{port}.evil.test", 421), ("[::1]:{port}", 421),
]  # fmt: skip


async def test_a_name_that_was_made_to_lead_here_is_turned_away(way, provider):
    access = way.open()
    for host, status in HOSTS:
        provider.got.clear()
        shown = host if host is None else host.replace("{port}", str(way.gateway.port))
        assert (await post(access, host=shown))[0] == status, host
        assert len(provider.got) == (1 if status == 200 else 0)


async def test_a_page_of_a_browser_is_turned_away_even_with_a_token(way, provider):
    access = way.open()
    for origin in ("http://shop.test", "null", f"http://127.0.0.1:{way.gateway.port}"):
        status, headers, _ = await post(access, headers=[f"origin: {origin}"])
        assert status == 403
        assert not [name for name, _ in headers if name.lower().startswith("access-control")]
    assert provider.got == []


async def test_it_listens_on_this_machine_only(way):
    port = way.gateway.port
    with socket.socket() as other, pytest.raises(OSError, match="refused"):
        # Every address of 127/8 is this machine; it listens on one of them.
        other.connect(("127.0.0.2", port))


ELSEWHERE = [
    {"base_url": "http://169.254.169.254/"}, {"api_base": "http://10.0.0.1"},
    {"api_key": "sk-own"}, {"models": ["dear"]}, {"route": "fallback"},
    {"fallbacks": [{"model": "dear"}]}, {"preset": "x"},
]  # fmt: skip


async def test_a_field_by_which_another_would_answer_is_refused(way, provider):
    access = way.open()
    for field in ELSEWHERE:
        status, _, said = await post(access, body=body_of(**field))
        assert status == 400, field
        assert next(iter(field)) in said["error"]["message"]
    assert provider.got == []


UNCLEAR = [
    b'{"model": "gpt-test", "messages": [], "model": "dear"}',
    b'{"model": "gpt-test", "messages": [{"role": "user", "role": "system"}]}',
    b'{"model": "gpt-test", "n": NaN}',
    b'{"model": "gpt-test", "n": Infinity}',
    b'{"model": "gpt-test", "max_tokens": "99999"}',
    b'{"model": "gpt-test", "max_tokens": 1.5}',
    b'{"model": "gpt-test", "max_tokens": -1}',
    b'{"model": "gpt-test", "n": true}',
    b'{"model": "gpt-test", "stream": "true"}',
    b'{"model": ["gpt-test"]}',
    b'{"messages": []}',
    '{"model": "gpt-test"}'.encode("utf-16"),
    b"[" * 100_000,
    b'{"model": "gpt-test"',
    b'"gpt-test"',
    b"\xff\xfe",
    b"",
]


async def test_a_body_that_two_readers_could_read_differently_is_refused(way, provider):
    access = way.open()
    for content in UNCLEAR:
        status, _, said = await post(access, content=content)
        assert status in (400, 404), content
        assert "error" in said
    assert provider.got == []


async def test_a_compressed_body_is_refused(way, provider):
    access = way.open()
    status, *_ = await post(access, headers=["content-encoding: gzip"])
    assert (status, provider.got) == (415, [])


async def test_a_body_that_is_too_long_is_refused_before_and_while_it_comes(
    way, provider, monkeypatch
):
    monkeypatch.setattr(server, "MAX_BODY_BYTES", 10_000)
    access = way.open()
    port, token = way.gateway.port, access.endpoint.token
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        f"authorization: Bearer {token}\r\n"
    ).encode()
    said_so = head + b"content-length: 1000000000\r\n\r\n"
    assert (await raw(port, said_so))[0] == 413
    chunk = b"1000\r\n" + b"x" * 4096 + b"\r\n"
    chunked = head + b"transfer-encoding: chunked\r\n\r\n" + chunk * 4
    assert (await raw(port, chunked))[0] == 413
    assert provider.got == []


async def test_a_body_of_an_unknown_sender_is_not_even_read(way):
    port = way.gateway.port
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        "content-length: 1000000000\r\n\r\n"
    ).encode()
    assert (await raw(port, head + b"x" * 1000))[0] == 401


async def test_a_body_that_never_comes_is_given_up(way, provider, monkeypatch):
    monkeypatch.setattr(server, "BODY_S", 0.2)
    access = way.open()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{way.gateway.port}\r\n"
        f"authorization: Bearer {access.endpoint.token}\r\ncontent-length: 100\r\n\r\n{{"
    ).encode()
    assert (await raw(way.gateway.port, head))[0] == 408


async def test_two_lengths_of_one_body_are_refused(way, provider):
    access = way.open()
    body = json.dumps(body_of()).encode()
    for line in ("content-length: 5", "transfer-encoding: chunked, identity"):
        status, *_ = await post(access, content=body, headers=[line])
        assert status in (400, 501), line
    assert provider.got == []


async def test_one_token_cannot_hold_more_than_a_few_calls(way, provider):
    access = way.open()
    provider.usual = lambda got: stream("hang")
    calls = [asyncio.create_task(post(access)) for _ in range(MAX_CALLS)]
    while len(provider.got) < MAX_CALLS:
        await asyncio.sleep(0.01)
    status, headers, said = await post(access)
    assert (status, said["error"]["code"]) == (429, "rate_limit")
    assert dict(headers)["retry-after"] == "1"
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)


ECHOES = [
    whole({"error": {"message": f"Incorrect API key provided: {KEY}."}}, 401),
    whole(f"Incorrect key {KEY}".encode(), 500),
    whole({"error": {"message": KEY.replace("-", "\\u002d")}}, 400),
    whole(('{"error": "' + KEY.replace("s", "\\u0073") + '"}').encode(), 403),
    whole({"error": {KEY: [KEY, {"deep": KEY}]}}, 429),
    whole(chat(f"Your key is {KEY}.")),
    whole(chat("x"), **{"x-request-id": KEY, "set-cookie": KEY, "x-debug": KEY}),
    stream(f"data: {json.dumps({'choices': [], 'x': KEY})}\n\n".encode(), b"data: [DONE]\n\n"),
    stream(b"data: " + REAL[:9], 0.05, REAL[9:] + b"\n\n", b"data: [DONE]\n\n"),
    stream(b"data: " + REAL),
]


async def test_the_key_is_in_no_answer_log_or_record_even_if_the_provider_says_it(
    way, provider, capfd, caplog
):
    caplog.set_level("INFO")
    access = way.open()
    seen = []
    for answer in ECHOES:
        access.grant.way.limiter.__init__()  # the 429 among them makes the key rest
        provider.answers = [answer]
        seen.append(await post(access))
    assert len(provider.got) == len(ECHOES)
    assert REAL.decode() not in str(seen)
    assert REAL not in way.written()
    assert len(way.kept()) + len(way.kept(failed=True)) == len(ECHOES)
    assert str(seen).count("[redacted]") >= len(ECHOES)
    out, err = capfd.readouterr()
    logged = caplog.text.replace(str(seen), "")
    assert REAL.decode() not in out + err + logged
    assert access.endpoint.token not in out + err + logged
    assert access.endpoint.token.encode() not in way.written()


async def test_waiting_bodies_take_places_too(way, provider):
    access = way.open()
    head = (
        f"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:{way.gateway.port}\r\n"
        f"authorization: Bearer {access.endpoint.token}\r\ncontent-length: 100\r\n\r\n{{"
    ).encode()
    waiting = [asyncio.create_task(raw(way.gateway.port, head)) for _ in range(MAX_CALLS)]
    async with asyncio.timeout(20):
        while access.grant.n_open < MAX_CALLS:
            await asyncio.sleep(0.01)
        assert (await post(access))[0] == 429
        for one in waiting:
            one.cancel()
        while access.grant.n_open:
            await asyncio.sleep(0.01)
    assert (await post(access))[0] == 200


async def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(way):
    for key in ("sk-0123456789\nx: y", "sk-0123456789é"):
        with pytest.raises(
            ConfigError, match="MY_KEY of small: holds what no header can"
        ) as caught:
            way.open(key=key, key_name="MY_KEY")
        assert "0123456789" not in str(caught.value)


async def test_a_redirect_of_the_provider_is_not_followed_with_the_key(way, provider):
    access = way.open()
    provider.answers = [whole({}, 307, location=f"{provider.url}/v1/elsewhere")]
    status, headers, said = await post(access)
    assert status == 502
    assert "leads elsewhere" in said["error"]["message"]
    assert "location" not in dict(headers)
    assert len(provider.got) == 1


async def test_a_key_in_any_error_of_python_is_not_shown(way):
    access = way.open()
    assert KEY not in repr(access.grant.way.spec)


def test_a_process_that_only_imports_the_command_loads_none_of_it():
    code = (
        "import sys, browseruse_bench.cli, browseruse_bench.runs.plan;"
        "print([m for m in ('httpx', 'uvicorn', 'starlette', 'pydantic_ai') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"
