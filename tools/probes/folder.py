"""List what lies in a folder. Run: PYTHON -I -S - MARKER PAYLOAD, which prints ``MARKER {json}``.

Python 3.8+, standard library only. Links are not followed, but for the folder that was asked about.
"""

import datetime
import fnmatch
import heapq
import json
import os
import stat
import sys

MOST_SEEN = 100000
KINDS = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))


def text(name):
    return os.fsencode(name).decode("utf-8", "replace")


def walk(folder, depth, problems, inner=""):
    """Yield the names of all entries, those of inner folders with their place."""
    try:
        entries = list(os.scandir(os.path.join(folder, inner)))
    except OSError as error:
        if not inner:
            raise
        problems.append("%s: %s" % (text(inner), error.strerror or error))
        return
    for entry in entries:
        name = os.path.join(inner, entry.name)
        yield name
        if depth > 1 and entry.is_dir(follow_symlinks=False):
            yield from walk(folder, depth - 1, problems, name)


def described(folder, name):
    path = os.path.join(folder, name)
    try:
        status = os.lstat(path)
        target = text(os.readlink(path)) if stat.S_ISLNK(status.st_mode) else ""
    except OSError:  # it went away meanwhile
        return None
    when = datetime.datetime.fromtimestamp(int(status.st_mtime), datetime.timezone.utc)
    kind = next((word for known, word in KINDS if known(status.st_mode)), "other")
    return {
        "name": text(name),
        "kind": kind,
        "size_bytes": status.st_size if kind == "file" else None,
        "modified": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "target": target,
    }


def listed(path, pattern, most, depth):
    problems, names = [], []
    for seen, name in enumerate(walk(path, depth, problems)):
        if seen == MOST_SEEN:
            problems.append("there is more: only %d entries were looked at" % MOST_SEEN)
            break
        if not pattern or fnmatch.fnmatchcase(os.path.basename(name), pattern):
            names.append(name)
    rows = [described(path, name) for name in heapq.nsmallest(most, names)]
    return {
        "real_path": text(os.path.realpath(path)),
        "entries": [row for row in rows if row],
        "left_out": max(0, len(names) - most),
        "problems": problems[:20],
    }


def main():
    marker, payload = sys.argv[1], json.loads(sys.argv[2])
    try:
        answer = {"listing": listed(**payload)}
    except NotADirectoryError:
        answer = {"error": "is no folder; read_file reads a file"}
    except OSError as error:
        answer = {"error": error.strerror or str(error)}
    print("\n" + marker + " " + json.dumps(answer, allow_nan=False), flush=True)


main()
