"""Ask a server one real question over HTTP and judge the form of its answer.

Run as ``python - MARKER '{"ask": "get" | "chat", ...}'``; prints ``MARKER {json}``.
Python 3.8+, standard library only. Nothing that a server sends can make it raise or hang: one alarm
ends everything, and what was learnt until then is reported.
"""

import os
import sys

# Whatever lies in the folder we are started in, or in PYTHONPATH, shadows nothing of ours.
sys.path[:] = [entry for entry in sys.path if entry.startswith(os.path.dirname(os.__file__))]

import http.client  # noqa: E402
import ipaddress  # noqa: E402
import json  # noqa: E402
import signal  # noqa: E402
import time  # noqa: E402
import urllib.error  # noqa: E402
import urllib.parse  # noqa: E402
import urllib.request  # noqa: E402

HEAD = 2000
"""Characters of a body or an answer that are shown."""
MOST = 16 * 1024 * 1024
"""Bytes that are read of one answer."""
LINE = 1024 * 1024
REFUSED = (400, 404, 405, 422, 501)
"""Statuses by which servers refuse to stream, or refuse an option of streaming."""
WAYS = ({"stream": True, "stream_options": {"include_usage": True}}, {"stream": True}, {})
"""How to ask, best first; the last one does not stream."""
SSE_FIELDS = ("data:", "event:", "id:", "retry:", ":")


class OutOfTime(Exception):
    """The alarm rang. Not an OSError: the socket module tries the next address after those."""


class Malformed(Exception):
    """The answer is not what an OpenAI-compatible server sends; the text says why."""


class NotStreamed(Malformed):
    """The server answered, but not as server-sent events."""


class NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


def ring(*_):
    raise OutOfTime


def is_loopback(host):
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def open_url(url, body=None):
    """Return the response, whatever its status; redirects are not followed."""
    host = urllib.parse.urlsplit(url).hostname or ""
    proxies = {} if is_loopback(host) else None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler(proxies), NoRedirects)
    headers = {"Content-Type": "application/json", "User-Agent": "bringup"}
    data = None if body is None else json.dumps(body).encode("utf-8")
    try:
        return opener.open(urllib.request.Request(url, data, headers))
    except urllib.error.HTTPError as error:
        return error


def reason(error, seconds):
    if isinstance(error, OutOfTime):
        return "no complete answer within {:g} s".format(seconds)
    if isinstance(error, http.client.RemoteDisconnected):
        return "the server closed the connection without an answer"
    if isinstance(error, http.client.IncompleteRead):
        return "the server closed the connection in the middle of its answer"
    inner = getattr(error, "reason", None) or error
    return "{}: {}".format(type(inner).__name__, inner)


def one_line(text):
    text = " ".join(text.split())
    return text if len(text) <= 200 else "{} (+{} characters)".format(text[:200], len(text) - 200)


def get(payload):
    found = {"reachable": False, "status": None, "body_head": "", "body_more": False, "error": None}
    try:
        with open_url(payload["url"]) as response:
            found.update(reachable=True, status=response.status)
            body = response.read(4 * HEAD + 1).decode("utf-8", "replace")
            found.update(body_head=body[:HEAD], body_more=len(body) > HEAD)
    except (OutOfTime, OSError, http.client.HTTPException, ValueError) as error:
        found["error"] = reason(error, payload["timeout_s"])
    return found


def strict_json(text):
    """Read JSON that has no NaN or Infinity in it."""

    def refuse(word):
        raise Malformed("the answer holds {}, which is not JSON: {}".format(word, one_line(text)))

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise Malformed("not JSON: {}".format(one_line(text) or "an empty body")) from None


class Answer:
    """What one answer said so far, streamed or whole."""

    def __init__(self, clock):
        self.clock = clock
        self.pieces = []
        self.times = []
        self.finish_reason = None
        self.usage = None

    def take(self, text, part):
        """Take one JSON document; ``part`` is ``delta`` in a stream and else ``message``."""
        document = strict_json(text)
        if not isinstance(document, dict):
            raise Malformed("a JSON object was expected: {}".format(one_line(text)))
        if document.get("error"):
            raise Malformed("the server reports an error: {}".format(one_line(text)))
        if not isinstance(document.get("choices"), list):
            raise Malformed("no list of choices: {}".format(one_line(text)))
        usage = document.get("usage")
        count = usage.get("completion_tokens") if isinstance(usage, dict) else None
        self.usage = count if type(count) is int else self.usage
        for choice in document["choices"][:1]:
            said = choice.get(part) if isinstance(choice, dict) else None
            if not isinstance(said, dict):
                raise Malformed("a choice without {}: {}".format(part, one_line(text)))
            self.say(said, text)
            self.finish_reason = choice.get("finish_reason") or self.finish_reason

    def say(self, said, text):
        content = said.get("content")
        if content is not None and not isinstance(content, str):
            raise Malformed("content is not text: {}".format(one_line(text)))
        if (
            content
            or said.get("reasoning_content")
            or said.get("reasoning")
            or said.get("tool_calls")
        ):
            self.times.append(self.clock())
        self.pieces.append(content or "")

    def check(self):
        if not isinstance(self.finish_reason, str):
            raise Malformed("the answer ended without a finish_reason; was the connection cut?")

    def facts(self, streamed):
        whole, times = "".join(self.pieces), self.times
        total = self.clock()
        tokens = self.usage if self.usage is not None or not streamed else len(times)
        rate = tokens / total if tokens and total > 0 else None
        if streamed and tokens and tokens > 1 and len(times) > 1 and times[-1] > times[0]:
            rate = (tokens - 1) / (times[-1] - times[0])
        return {
            "content": whole[:HEAD],
            "content_omitted": max(0, len(whole) - HEAD),
            "finish_reason": self.finish_reason if isinstance(self.finish_reason, str) else None,
            "completion_tokens": tokens,
            "ttft_s": round(times[0], 4) if streamed and times else None,
            "tokens_per_s": None if rate is None else round(rate, 2),
            "total_s": round(total, 4),
            "streamed": streamed,
        }


def read_stream(response, answer):
    size, first = 0, True
    while size <= MOST:
        raw = response.readline(LINE)
        size += len(raw)
        line = raw.decode("utf-8", "replace").strip()
        if not raw and first:
            raise NotStreamed("an empty body")
        if not raw or line.replace(" ", "") == "data:[DONE]":
            return
        if line and not line.startswith(SSE_FIELDS):
            known = NotStreamed if first else Malformed
            raise known("a line is no server-sent event: {}".format(one_line(line)))
        first = first and not line
        if line.startswith("data:"):
            answer.take(line[len("data:") :].strip(), "delta")
    raise Malformed("the stream did not end after {} bytes".format(size))


def ask(url, body, answer, found):
    """Send one request and read its answer into ``answer``."""
    with open_url(url, body) as response:
        found["status"] = response.status
        if response.status != 200:
            text = one_line(response.read(LINE).decode("utf-8", "replace"))
            raise Malformed("HTTP {}: {}".format(response.status, text))
        if "stream" in body:
            read_stream(response, answer)
        else:
            body = response.read(MOST)
            if response.length:  # what is still to come by Content-Length
                raise http.client.IncompleteRead(body, response.length)
            answer.take(body.decode("utf-8", "replace"), "message")
    answer.check()


def chat(payload):
    url = payload["base_url"].rstrip("/")
    url += "/chat/completions" if url.endswith("/v1") else "/v1/chat/completions"
    question = {
        "model": payload["model"],
        "messages": [{"role": "user", "content": payload["prompt"]}],
        "max_tokens": payload["max_tokens"],
    }
    found = {}
    for way in WAYS:
        began = time.monotonic()
        answer = Answer(lambda began=began: time.monotonic() - began)
        found.update(status=None, problem=None)
        try:
            ask(url, dict(question, **way), answer, found)
        except NotStreamed as error:
            found["problem"] = str(error)
            continue
        except Malformed as error:
            found["problem"] = str(error)
            if found["status"] in REFUSED:
                continue
        except (OutOfTime, OSError, http.client.HTTPException, ValueError) as error:
            found["problem"] = reason(error, payload["timeout_s"])
        break
    found.update(answer.facts("stream" in way), well_formed=found["problem"] is None)
    return found


def printable(value):
    """Return text without lone surrogates, which JSON can carry and no file can."""
    return value.encode("utf-8", "replace").decode("utf-8") if isinstance(value, str) else value


def main():
    marker, payload = sys.argv[1], json.loads(sys.argv[2])
    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, payload["timeout_s"])
    began = time.monotonic()
    facts = chat(payload) if payload["ask"] == "chat" else get(payload)
    signal.setitimer(signal.ITIMER_REAL, 0)
    if payload["ask"] == "get":
        facts["elapsed_s"] = round(time.monotonic() - began, 4)
    facts = {key: printable(value) for key, value in facts.items()}
    print("\n" + marker + " " + json.dumps(facts, allow_nan=False), flush=True)


if __name__ == "__main__":
    main()
