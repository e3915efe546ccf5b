"""Change one file, keeping what was there beside it. Run: PYTHON -I -S - MARKER PAYLOAD.

Prints ``MARKER {json}``. Python 3.8+, standard library only. Either the whole change happens, or
nothing: a new file takes the place of the old one in one step.
"""

import contextlib
import difflib
import json
import os
import re
import shutil
import stat
import sys

MOST_BYTES = 1000000
MOST_SHOWN = 4000  # characters of the difference
AROUND = 2  # lines shown around a change
BACKUPS = 100


class Refused(Exception):
    """Nothing was changed; the text says why."""


def text(data):
    return os.fsencode(data).decode("utf-8", "replace")


def shown(data):
    return data.decode("utf-8", "replace")


def content_of(path):
    """A text file's status and bytes."""
    status = os.lstat(path)  # before opening: to open a device can be an act
    if stat.S_ISLNK(status.st_mode):
        raise Refused("is a link to %s: name that file" % text(os.path.realpath(path)))
    if not stat.S_ISREG(status.st_mode):
        raise Refused("is no regular file")
    if status.st_size > MOST_BYTES:
        raise Refused("has %d bytes; more than %d are not changed" % (status.st_size, MOST_BYTES))
    with open(path, "rb") as file:
        data = file.read()
    if b"\0" in data:
        raise Refused("is binary (it holds NUL bytes), not text")
    return status, data


def replaced(data, old, new, count):
    found = [match.start() for match in re.finditer(re.escape(old), data)]
    if len(found) != count:
        lines = ", ".join(str(data.count(b"\n", 0, place) + 1) for place in found[:20])
        times = "that text %d times (lines %s)" % (len(found), lines) if found else "no such text"
        ends = "; its lines end with CR LF" if b"\r\n" in data and b"\n" in old else ""
        raise Refused("holds %s, and count is %d%s" % (times, count, ends))
    return data.replace(old, new)


def difference(before, after):
    """The changed lines as a unified diff; what is the same at both ends is not compared."""
    old, new = shown(before).split("\n"), shown(after).split("\n")
    first = shared(old, new)
    room = min(len(old), len(new)) - first
    last = shared(old[::-1][:room], new[::-1][:room])
    first, last = max(0, first - AROUND), max(0, last - AROUND)
    pieces = (rows[first : len(rows) - last] for rows in (old, new))
    rows = list(difflib.unified_diff(*pieces, n=AROUND, lineterm=""))[2:]
    whole = "\n".join(moved(row, first) if row.startswith("@@") else row for row in rows)
    left = len(whole) - MOST_SHOWN
    return whole if left <= 0 else "%s\n(%d more characters)" % (whole[:MOST_SHOWN], left)


def shared(one, other):
    """How many lines two texts have in common at their beginning."""
    return len(os.path.commonprefix([one, other]))  # noqa: RUF071, these are lists


def moved(head, lines):
    """The head of a piece of a diff, so many lines further down."""
    return re.sub(r"(?<=[-+])\d+", lambda found: str(int(found.group()) + lines), head)


def free_name(path, suffix):
    """An empty file beside a path that was not there before, for what is kept of it."""
    for number in range(1, BACKUPS):
        name = path + suffix + ("-%d" % number if number > 1 else "")
        with contextlib.suppress(FileExistsError):
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            return name
    raise Refused("has %d backups of this name: move them away" % (BACKUPS - 1))


def write(path, data, like, status):
    """Fill a file of ours, and give it the mode and owner of another one."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    own = os.stat(path)
    if (own.st_uid, own.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.chown(path, status.st_uid, status.st_gid)
        except OSError:
            words = "belongs to user %d, and only that user can change it"
            raise Refused(words % status.st_uid) from None
    shutil.copystat(like, path)


def sync(folder):
    with contextlib.suppress(OSError):  # some file systems cannot
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def replace(path, told):
    status, before = content_of(path)
    after = replaced(before, told["old"].encode(), told["new"].encode(), told["count"])
    shows = difference(before, after)
    ours = []
    try:
        ours.append(free_name(path, told["suffix"]))
        write(ours[0], before, path, status)
        ours.append(free_name(path, told["suffix"] + ".new"))
        write(ours[1], after, path, status)
        os.utime(ours[1])
        now = os.lstat(path)
        if (now.st_ino, now.st_mtime_ns, now.st_size) != (
            status.st_ino,
            status.st_mtime_ns,
            len(before),
        ):
            raise Refused("is being changed by somebody else: look again")
        os.replace(ours[1], path)
    except BaseException:
        for name in ours:
            with contextlib.suppress(OSError):
                os.unlink(name)
        raise
    sync(os.path.dirname(path))
    return {"path": text(path), "backup": text(ours[0]), "diff": shows}


def set_aside(path, told):
    status = os.lstat(path)
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode)):
        raise Refused("is no file")
    backup = free_name(path, told["suffix"])
    try:
        os.replace(path, backup)
    except BaseException:
        os.unlink(backup)
        raise
    sync(os.path.dirname(path))
    return {"path": text(path), "backup": text(backup)}


def main():
    marker, told = sys.argv[1], json.loads(sys.argv[2])
    folder, name = os.path.split(told["path"])
    path = os.path.join(os.path.realpath(folder), name)
    try:
        answer = {"done": (replace if "old" in told else set_aside)(path, told)}
    except Refused as error:
        answer = {"error": str(error)}
    except OSError as error:
        answer = {"error": error.strerror or str(error)}
    print("\n" + marker + " " + json.dumps(answer, allow_nan=False), flush=True)


main()
