"""Which TCP ports of other hosts answer from here, by which of our addresses, and how fast.

Run as ``python - MARKER '{"places": [[ADDRESS, PORT], ...], "limit_s": 3}'``; prints
``MARKER [{"ok": ..., "ms": ..., "source": ..., "error": ...}, ...]``, one for each place. Nothing
is sent on the connections. Python 3.8+, standard library only.
"""

import os
import sys

# Whatever lies in the folder we are started in, or in PYTHONPATH, shadows nothing of ours.
sys.path[:] = [entry for entry in sys.path if entry.startswith(os.path.dirname(os.__file__))]

import errno  # noqa: E402
import json  # noqa: E402
import select  # noqa: E402
import socket  # noqa: E402
import time  # noqa: E402

MOST = 512
"""So many are tried at once: a process may have few descriptors."""


def failed(why):
    return {"ok": False, "ms": None, "source": "", "error": why}


def begin(address, port):
    """Begin to connect; return the socket, or why it does not work."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        stream = socket.socket(family, socket.SOCK_STREAM)
        stream.setblocking(False)
        code = stream.connect_ex((address, port))
    except (OSError, OverflowError, UnicodeError) as error:
        return None, str(error)
    if code in (0, errno.EINPROGRESS):
        return stream, ""
    stream.close()
    return None, os.strerror(code)


def ended(stream, begun):
    """Say how one attempt ended."""
    took_ms = round((time.monotonic() - begun) * 1000, 2)
    code = stream.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        return failed(os.strerror(code))
    return {"ok": True, "ms": took_ms, "source": stream.getsockname()[0], "error": ""}


def wait(pending, deadline):
    """Yield attempts as they end, until the deadline."""
    while pending:
        left = deadline - time.monotonic()
        if left <= 0:
            return
        yield from select.select([], list(pending), [], left)[1]


def try_all(places, limit_s):
    """Connect to all places; what has not answered in time is told so."""
    found = [failed("no answer in time") for _ in places]
    pending = {}
    for number, (address, port) in enumerate(places):
        begun = time.monotonic()
        stream, why = begin(address, port)
        if stream is None:
            found[number] = failed(why)
        else:
            pending[stream] = (number, begun)
    for stream in wait(pending, time.monotonic() + limit_s):
        number, begun = pending.pop(stream)
        found[number] = ended(stream, begun)
        stream.close()
    for stream in pending:
        stream.close()
    return found


def main():
    asked = json.loads(sys.argv[2])
    places, found = asked["places"], []
    for first in range(0, len(places), MOST):
        found += try_all(places[first : first + MOST], asked["limit_s"])
    print(sys.argv[1], json.dumps(found), flush=True)


main()
