"""A piece of one text file, cut between characters.

Run as ``python - MARKER '{"path": ..., "offset": ..., "limit": ...}'``; prints ``MARKER {json}``.
Python 3.8+, standard library only.
"""

import os
import sys

# Whatever lies in the folder we are started in, or in PYTHONPATH, shadows nothing of ours.
sys.path[:] = [entry for entry in sys.path if entry.startswith(os.path.dirname(os.__file__))]

import json  # noqa: E402
import stat  # noqa: E402


class Unreadable(Exception):
    """The file is there and is not for reading as text; the text says why."""


def is_inside(byte):
    """Whether a byte continues a UTF-8 character that began before it."""
    return 0x80 <= byte < 0xC0


def trimmed(data, at_start, at_end):
    """Return how many bytes to drop at each end, so that no UTF-8 character is cut."""
    head = 0
    while not at_start and head < min(3, len(data)) and is_inside(data[head]):
        head += 1
    if at_end:
        return head, 0
    for tail in range(1, min(4, len(data) - head) + 1):
        byte = data[-tail]
        if not is_inside(byte):
            size = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return head, tail if size > tail else 0
    return head, 0


def read(path, offset, limit):
    status = os.stat(path)  # before opening: to open a device can be an act
    if stat.S_ISDIR(status.st_mode):
        raise Unreadable("is a directory; name a file in it")
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable("is a device, pipe or socket, not a file")
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        file.seek(offset)
        data = file.read(limit) or b""  # None: nothing to read without waiting
    size = max(status.st_size, offset + len(data) if data else 0)  # files in /proc say 0
    if b"\0" in data:
        raise Unreadable("is binary (it holds NUL bytes), not text")
    head, tail = trimmed(data, offset == 0, offset + len(data) >= size)
    if not head and tail == len(data):
        tail = 0  # the limit is below one character: show what is there, and go on
    text = data[head : len(data) - tail].decode("utf-8", "replace")
    end = offset + len(data) - tail
    return {
        "text": text,
        "size_bytes": size,
        "offset_bytes": offset + head,
        "end_bytes": end,
        "left_out_bytes": max(0, size - (len(data) - head - tail)),
        "real_path": os.fsencode(os.path.realpath(path)).decode("utf-8", "replace"),
    }


def main():
    marker, payload = sys.argv[1], json.loads(sys.argv[2])
    try:
        answer = {"piece": read(payload["path"], payload["offset"], payload["limit"])}
    except Unreadable as error:
        answer = {"error": str(error)}
    except OSError as error:
        answer = {"error": error.strerror or str(error)}
    print("\n" + marker + " " + json.dumps(answer, allow_nan=False), flush=True)


if __name__ == "__main__":
    main()
