"""The side of a transfer that gives. Behind ``transfer_lines.py``, in one text with it.

It first says what there is: ``root``, then ``file``, ``dir``, ``link`` or ``bad`` an entry, and
``listed``. Then it is asked: ``hash PATH`` is answered by ``sum PATH SHA``; ``get PATH FROM SHA``
is kept, and ``go`` sends all that was kept. Where the first FROM bytes of the file have that sum,
it is sent from there on, else from its beginning.
"""

import hashlib
import os
import re
import select
import stat

from tools.probes.transfer_lines import (
    PIECE,
    Beat,
    Cut,
    Output,
    Refused,
    connect,
    hash_of,
    mac,
    main,
    name_of,
    reason_of,
    word,
)

OURS = re.compile(rb".+\.part-[0-9a-f]{12}")
KINDS = ((stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"), (stat.S_ISBLK, "a device"))


def described(top, path):
    """Return the words about one entry; links that leave the folder become what they lead to."""
    if OURS.fullmatch(os.path.basename(path)):
        return ("part", "-")
    full = place(top, path)
    status = os.lstat(full)
    if stat.S_ISLNK(status.st_mode):
        return of_link(top, path, full)
    if stat.S_ISDIR(status.st_mode):
        return ("dir", word(path), status.st_mtime_ns, "%o" % (status.st_mode & 0o777))
    return of_file(path, full, status)


def of_file(path, full, status):
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for known, name in KINDS if known(status.st_mode)), "a device")
        return ("bad", word(path), word(kind.encode()))
    if not os.access(full, os.R_OK):
        return ("bad", word(path), word(b"it may not be read"))
    mode = "%o" % (status.st_mode & 0o777)
    return ("file", word(path), status.st_size, status.st_mtime_ns, mode)


def of_link(top, path, full):
    if not os.path.exists(full):
        return ("bad", word(path), word(b"a link that leads nowhere"))
    target = inner_link(top, path, full)
    if target:
        return ("link", word(path), word(target))
    if os.path.isdir(full):
        return ("bad", word(path), word(b"a link to a folder that is not part of this one"))
    return of_file(path, full, os.stat(full))


def inner_link(top, path, full):
    """Return where a link leads, relative to it, if that is inside; nothing where it is not."""
    target, real = os.readlink(full), os.path.realpath(full)
    if path == b"." or not real.startswith(top + b"/"):
        return b""
    if not os.path.isabs(target) and os.path.normpath(target) == target:
        lexical = os.path.normpath(os.path.join(os.path.dirname(path), target))
        if lexical != b".." and not lexical.startswith(b"../"):
            return target
    return os.path.relpath(real, os.path.dirname(full))


def walk(top, inner=b""):
    with os.scandir(os.path.join(top, inner)) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = os.path.join(inner, entry.name)
        yield path
        if entry.is_dir(follow_symlinks=False):
            yield from walk(top, path)


def tell(out, top):
    single = not os.path.isdir(top)
    out.say("root", "file" if single else "dir")
    count = 0
    for path in [b"."] if single else walk(top):
        try:
            row = described(top, path)
        except OSError as error:
            row = ("bad", word(path), reason_of(error))
        out.say(*row)
        count += 1
    out.say("listed", count)


def whole(top, path, out):
    beat = Beat()
    with open(place(top, path), "rb") as file:
        size = os.fstat(file.fileno()).st_size
        return hash_of(file, size, lambda: beat.due() and out.say("idle")).hexdigest()


def place(top, path):
    return top if path == b"." else os.path.join(top, path)


def send(top, row, out, key, moved):
    """Send one file; what happens to it meanwhile is said in its place."""
    text = row[0]
    try:
        with open(place(top, name_of(text)), "rb") as file:
            digest = send_open(file, row, out, moved)
    except OSError as error:
        out.say("fail", text, reason_of(error))
        return
    if digest:
        out.say("end", digest, mac(key, "end", text, digest))
    else:
        out.say("fail", text, word(b"it changed while it was read"))


def send_open(file, row, out, moved):
    """Send from the byte that the other side has it up to; return its sum if it held still."""
    text, start, known, beat = row[0], int(row[1]), row[2], Beat()
    before = os.fstat(file.fileno())

    def idle():
        if beat.due():
            out.say("idle")
            moved(0)

    found = hash_of(file, start, idle)
    if start and found.hexdigest() != known:
        file.seek(0)
        start, found = 0, hashlib.sha256()
    out.say(
        "file", text, start, before.st_size, before.st_mtime_ns, "%o" % (before.st_mode & 0o777)
    )
    left = before.st_size - start
    while left:
        data = file.read(min(PIECE, left))
        if not data:
            return ""
        found.update(data)
        out.write(b"data %d\n" % len(data))
        out.write(data)
        left -= len(data)
        moved(len(data))
    after = os.fstat(file.fileno())
    held = (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    return found.hexdigest() if held else ""


def source(given, out, root, tag):
    top = os.path.realpath(root)
    if not os.path.exists(top):
        raise Refused("there is no such file or folder")
    tell(out, top)
    wanted = []
    while True:
        row = given.line()
        if row[0] == "hash":
            out.say("sum", row[1], whole(top, name_of(row[1]), out))
        elif row[0] == "get":
            wanted.append(row[1:])
        elif row[0] == "go":
            break
        else:
            raise Refused("it was asked for " + row[0])
    if len(row) == 1:
        out.watches = given
        give(top, wanted, out, b"", lambda size: None)
    else:
        directly(top, wanted, given, out, row)


def give(top, wanted, out, key, moved):
    for row in wanted:
        send(top, row, out, key, moved)
    out.say("bye", mac(key, "bye"))


def directly(top, wanted, given, out, row):
    """Send to the sink's own address; what we say on our pipe is how far it is."""
    beat, sent = Beat(), [0]

    def moved(size):
        sent[0] += size
        if beat.due():
            if given.gone():
                raise Cut("whoever watched this is gone")
            out.say("at", sent[0])

    link, key = connect(row[1], int(row[2]), bytes.fromhex(row[3]))
    out.say("linked")
    with link:
        give(top, wanted, Output(link.fileno(), given.quiet_s, given), key, moved)
        out.say("bye", "-")
        closed(link, given)


def closed(link, given):
    """Wait until the sink has all on its disk, and closes the link."""
    while True:
        said = select.select([link, given.fd], [], [], given.quiet_s)[0]
        if link in said:
            return
        if not said or given.gone():
            raise Cut("the sink says nothing any more")


if __name__ == "__main__":
    main(source)
