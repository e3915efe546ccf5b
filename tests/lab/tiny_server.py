"""Serves well-formed answers, in a second at most: ``tiny_server.py PORT [SECONDS_TO_LOAD]``."""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

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
    """Answers everything alike."""

    def do_GET(self) -> None:
        data = json.dumps(ANSWER).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()


def load(seconds: float) -> None:
    """Take so long, and say how far it is."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        sys.stdout.write(f"Loading weights: {1 - left / seconds:.0%}\n")
        sys.stdout.flush()
        time.sleep(min(left, 0.2))


if __name__ == "__main__":
    load(float(sys.argv[2]) if len(sys.argv) > 2 else 0.0)
    HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
