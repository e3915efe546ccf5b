"""Serves well-formed answers: ``python -m enginelike --model DIR --port PORT``."""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from transformers import AutoConfig

import enginelike.configs  # noqa: F401  (registers the class)

ANSWER = {
    "id": "1",
    "object": "chat.completion",
    "created": 0,
    "model": "m",
    "choices": [
        {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
    ],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}


class Handler(BaseHTTPRequestHandler):
    def answer(self, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.answer({"status": "ok"})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(ANSWER)


parser = argparse.ArgumentParser()
parser.add_argument("--model", required=True)
parser.add_argument("--port", type=int, required=True)
options = parser.parse_args()
print("loaded", type(AutoConfig.from_pretrained(options.model)).__name__, flush=True)
ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()
