"""Requests as bytes: what no client library would send."""

import asyncio
import json


def body_of(model="gpt-test", **more):
    return {"model": model, "messages": [{"role": "user", "content": "Hi."}], **more}


async def raw(port, data, *, read=True):
    """Send bytes and read until the server closes; (status, headers, body)."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        await writer.drain()
        if not read:
            return None
        answer = await asyncio.wait_for(reader.read(), 20)
    finally:
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.split(":", 1) for line in lines)
    headers = [(name.strip().lower(), value.strip()) for name, value in pairs]
    if dict(headers).get("transfer-encoding") == "chunked":
        body = b"".join(unchunked(body))
    return int(first.split(" ")[1]), headers, body


def unchunked(body):
    """The chunks of a body, as far as it came."""
    while body:
        size, _, body = body.partition(b"\r\n")
        yield body[: int(size, 16)]
        body = body[int(size, 16) + 2 :]


async def post(
    access, path=None, body=None, *, method="POST", host=None, headers=(), token=True, content=None
):
    """One request, whose connection is closed after it; (status, JSON or bytes)."""
    url = access.endpoint.url.removeprefix("http://")
    port = int(url.partition(":")[2])
    data = json.dumps(body_of() if body is None else body).encode() if content is None else content
    lines = [f"{method} {path or '/v1/chat/completions'} HTTP/1.1"]
    lines += [f"host: {url if host is None else host}"] if host != "" else []
    lines += [f"authorization: Bearer {access.endpoint.token}"] if token else []
    lines += ["content-type: application/json", f"content-length: {len(data)}"]
    lines += ["connection: close", *headers]
    status, answered, content = await raw(
        port, ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + data
    )
    try:
        said = json.loads(content)
    except ValueError:
        said = content
    return status, answered, said
