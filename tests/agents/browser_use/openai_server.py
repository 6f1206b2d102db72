"""An OpenAI-compatible endpoint that plays scripts, for the library's own wire: no key is checked.

with Served({"words of the task": script}) as served: served.url
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from browseruse_bench.agents.browser_use.scripted import GIVE_UP, Player, ScriptError, page_of


class Served:
    """The endpoint. A script is chosen by words of its task, and each task plays its own."""

    def __init__(self, scripts):
        self.requests = []
        self.headers = []
        self._players = {words: Player(script) for words, script in scripts.items()}
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def answer(self, body):
        """The model's text for a request.

        Raises:
            ScriptError: the script does not fit the page.
        """
        if body.get("response_format", {}).get("type") != "json_schema":
            return "A scripted model extracts nothing."
        texts = [text_of(message) for message in body["messages"]]
        page = page_of(texts)
        task = page.partition("<user_request>")[2].partition("</user_request>")[0]
        player = next((p for words, p in self._players.items() if words in task), None)
        said = {
            "thinking": "I play.",
            "evaluation_previous_goal": "",
            "memory": "",
            "next_goal": "",
        }
        said["action"] = (player or Player(GIVE_UP)).actions(page)
        return json.dumps(said)

    def reply(self, path, body):
        """What a request to `path` gets; the wire of OpenAI, whatever the path."""
        del path
        return completion(body, self.answer(body))

    def _handler(self):
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                with served._lock:
                    served.requests.append((self.headers.get("authorization"), body))
                    served.headers.append(dict(self.headers))
                    try:
                        self._send(200, served.reply(self.path, body))
                    except ScriptError as error:
                        self._send(400, {"error": {"message": str(error), "type": "script"}})

            def _send(self, status, value):
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_args):
                pass

        return Handler


def text_of(message):
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content if part.get("type") == "text")


def completion(body, text):
    n_in = len(json.dumps(body)) // 4
    return {
        "id": "scripted",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        ],
        "usage": {
            "prompt_tokens": n_in,
            "completion_tokens": len(text) // 4,
            "total_tokens": n_in + len(text) // 4,
            "prompt_tokens_details": {"cached_tokens": n_in // 2},
        },
    }
