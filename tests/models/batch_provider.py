"""A provider's batch APIs on loopback: OpenAI's and Anthropic's, with jobs that end when told.

    with BatchProvider(answer) as provider:
        ... submit to provider.openai_url or provider.anthropic_url ...
        provider.end_all()

`answer(body)` says what comes back for one request: Say or Fail of the fake endpoint, "expired",
"canceled", or None for a request that is left out of the results.
"""

import json
import re
import threading
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.models.fake_endpoint import Asked, Fail, Say, _anthropic, _error, _openai

KEY = "planted-key-0a1b2c3d4e5f"


class BatchProvider:
    def __init__(self, answer, *, keeps_marks=True):
        self.answer = answer
        self.keeps_marks = keeps_marks
        self.files = {}
        self.jobs = {}
        """id -> {form, lines, status, created, metadata, results}."""
        self.log = []
        """(method, path) of every request."""
        self.lose_reply_of = set()
        """(method, path) whose next request is carried out and never answered."""
        self.fail_next = []
        """(method, path, status, headers): not carried out."""
        self.clock_ahead_s = 0.0
        self._lock = threading.Lock()

    def __enter__(self):
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):  # noqa: N802
                provider._serve(self, b"")

            def do_POST(self):  # noqa: N802
                provider._serve(self, self._body())

            def _body(self):
                if self.headers.get("transfer-encoding") == "chunked":
                    body = b""
                    while size := int(self.rfile.readline(), 16):
                        body += self.rfile.read(size)
                        self.rfile.readline()
                    self.rfile.readline()
                    return body
                return self.rfile.read(int(self.headers.get("content-length") or 0))

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.anthropic_url = f"http://127.0.0.1:{self._server.server_port}"
        self.openai_url = f"{self.anthropic_url}/v1"
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    # --- what happens on the provider's side

    def end_all(self):
        for id in list(self.jobs):
            self.end(id)

    def end(self, id):
        job = self.jobs[id]
        if job["status"] in ("ended", "completed", "failed"):
            return
        results = []
        for line in job["lines"]:
            body = line.get("body") or line.get("params")
            said = self.answer(body)
            if said is not None:
                results.append(_result(job["form"], line["custom_id"], body, said))
        job["results"] = results
        job["status"] = "completed" if job["form"] == "openai" else "ended"

    def fail(self, id, message, line=1):
        self.jobs[id].update(status="failed", errors=[{"message": message, "line": line}])

    # --- the wire

    def _serve(self, handler, body):
        path = handler.path.split("?")[0]
        query = dict(re.findall(r"[?&](\w+)=([^&]*)", handler.path))
        place = (handler.command, path)
        with self._lock:
            self.log.append(place)
            key = handler.headers.get("x-api-key") or handler.headers.get("authorization", "")
            if key.removeprefix("Bearer ") != KEY:
                _reply(handler, 401, {"error": {"message": f"no such key: {key}"}})
                return
            for number, (method, where, status, headers) in enumerate(self.fail_next):
                if (method, where) == place:
                    del self.fail_next[number]
                    _reply(handler, status, {"error": {"message": "made to fail"}}, headers)
                    return
            status, said = self._do(handler, path, query, body)
            if place in self.lose_reply_of:
                self.lose_reply_of.remove(place)
                handler.close_connection = True
                return
        _reply(handler, status, said)

    def _do(self, handler, path, query, body):
        if path == "/v1/files":
            content = re.search(rb'name="file".*?\r\n\r\n(.*)\r\n--', body, re.DOTALL)[1]
            assert b'name="purpose"\r\n\r\nbatch' in body
            id = f"file-{len(self.files)}"
            self.files[id] = content.split(b"\r\n--")[0]
            return 200, {"id": id, "object": "file"}
        if match := re.fullmatch(r"/v1/files/([\w-]+)/content", path):
            return 200, self._content(match[1])
        form = "anthropic" if path.startswith("/v1/messages/batches") else "openai"
        base = "/v1/messages/batches" if form == "anthropic" else "/v1/batches"
        id, _, what = path.removeprefix(base).removeprefix("/").partition("/")
        if not id and handler.command == "POST":
            return self._create(form, json.loads(body))
        if not id:
            return 200, self._page(form, query)
        if id not in self.jobs:
            return 404, {"error": {"message": "no such batch"}}
        if what == "cancel":
            self.jobs[id]["status"] = "cancelling" if form == "openai" else "canceling"
        if what == "results":
            return 200, _jsonl(self.jobs[id]["results"])
        return 200, self._shown(id)

    def _create(self, form, body):
        id = f"{'msgbatch_' if form == 'anthropic' else 'batch_'}{len(self.jobs)}"
        if form == "openai":
            assert body["completion_window"] == "24h"
            content = self.files[body["input_file_id"]]
            lines = [json.loads(line) for line in content.decode().splitlines()]
            assert {line["url"] for line in lines} == {body["endpoint"]}
            assert {line["method"] for line in lines} == {"POST"}
        else:
            lines = body["requests"]
        keys = [line["custom_id"] for line in lines]
        if len(set(keys)) != len(keys) or any(not re.fullmatch(r"[\w-]{1,64}", k) for k in keys):
            return 400, {"error": {"message": "custom_id"}}
        self.jobs[id] = {
            "form": form,
            "lines": lines,
            "status": "in_progress",
            "created": time.time() + self.clock_ahead_s,
            "metadata": body.get("metadata") if self.keeps_marks else None,
            "results": None,
            "errors": None,
        }
        return 200, self._shown(id)

    def _page(self, form, query):
        ids = [id for id, job in reversed(self.jobs.items()) if job["form"] == form]
        after = query.get("after") or query.get("after_id")
        if after:
            ids = ids[ids.index(after) + 1 :]
        # Pages smaller than what is asked for, as an API may give.
        page = ids[: min(2, int(query.get("limit", 20)))]
        return {"data": [self._shown(id) for id in page], "has_more": len(ids) > len(page)}

    def _shown(self, id):
        job = self.jobs[id]
        results = job["results"] or []
        good = sum(_is_good(result) for result in results)
        if job["form"] == "anthropic":
            counts = {"processing": 0, "succeeded": good, "errored": len(results) - good,
                      "canceled": 0, "expired": 0}  # fmt: skip
            if job["results"] is None:
                counts = {**counts, "processing": len(job["lines"])}
            created = datetime.fromtimestamp(job["created"], UTC).isoformat()
            return {"id": id, "type": "message_batch", "processing_status": job["status"],
                    "request_counts": counts, "created_at": created}  # fmt: skip
        ended = job["results"] is not None
        return {
            "id": id,
            "object": "batch",
            "status": job["status"],
            "created_at": int(job["created"]),
            "metadata": job["metadata"],
            "request_counts": {
                "total": len(job["lines"]), "completed": good, "failed": len(results) - good,
            },
            "output_file_id": f"output-{id}" if ended and good else None,
            "error_file_id": f"errors-{id}" if ended and good < len(results) else None,
            "errors": {"data": job["errors"]} if job["errors"] else None,
        }  # fmt: skip

    def _content(self, file):
        which, _, id = file.partition("-")
        results = self.jobs[id]["results"]
        return _jsonl(r for r in results if _is_good(r) == (which == "output"))


def _result(form, key, body, said):
    asked = Asked("POST", "/messages" if form == "anthropic" else "/chat", {}, body, 0.0)
    if form == "anthropic":
        if isinstance(said, str):
            return {"custom_id": key, "result": {"type": said}}
        if isinstance(said, Fail):
            result = {"type": "errored", "error": said.body or _error("anthropic", said)}
        else:
            result = {"type": "succeeded", "message": _anthropic(asked, said)}
        return {"custom_id": key, "result": result}
    if isinstance(said, str):
        error = {"code": f"batch_{said}", "message": "This request could not be executed."}
        return {"id": "batch_req_1", "custom_id": key, "response": None, "error": error}
    assert isinstance(said, Say | Fail)
    good = isinstance(said, Say)
    response = {
        "status_code": 200 if good else said.status,
        "request_id": "r",
        "body": _openai(asked, said) if good else said.body or _error("openai", said),
    }
    return {"id": "batch_req_1", "custom_id": key, "response": response, "error": None}


def _is_good(result):
    if "result" in result:
        return result["result"]["type"] == "succeeded"
    return result["response"] is not None and result["response"]["status_code"] == 200


def _jsonl(values):
    return "".join(json.dumps(value) + "\n" for value in values)


def _reply(handler, status, said, headers=None):
    content = (said if isinstance(said, str) else json.dumps(said)).encode()
    try:
        handler.send_response(status)
        handler.send_header("content-length", str(len(content)))
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)
    except ConnectionError:
        pass  # the client was killed
