"""What both sides of a transfer share: words, lines, pieces of bytes, and the greeting of a link.

It stands before ``transfer_source.py`` or ``transfer_sink.py`` in the one text that a host's Python
gets. Python 3.8+, standard library only.

Each side is told ``idle`` now and then while it waits for the other one, and says so itself while
it works without bytes: it ends by itself when it hears nothing for too long.

A line is words between blanks. A word is a name as bytes; all but plain characters are ``\\0ooo``,
so a name with blanks, line breaks or bytes that are no UTF-8 is one word, and ``printf %b`` of any
shell reads it. ``data N`` is followed by N bytes.
"""

import hashlib
import hmac
import os
import re
import select
import socket
import sys
import time

PIECE = 1 << 20
GREET_S = 5.0
EVERY_S = 0.5
PIPE_SIZE = 1031  # F_SETPIPE_SZ of Linux
LONGEST = 1 << 20


class Refused(Exception):
    """What was asked for cannot be done; the text is for people."""


class Cut(Exception):
    """The other side is gone, or silent for too long."""


def word(name):
    safe = re.sub(rb"[^A-Za-z0-9._/+=@,:-]", lambda m: b"\\0%03o" % ord(m.group()), name)
    return safe.decode("ascii")


def name_of(text):
    return re.sub(rb"\\0([0-7]{3})", lambda m: bytes([int(m.group(1), 8)]), text.encode("ascii"))


def reason_of(error):
    return word(str(getattr(error, "strerror", None) or error).encode("utf-8", "replace"))


def fast(fd):
    os.set_blocking(fd, False)
    try:
        import fcntl

        fcntl.fcntl(fd, PIPE_SIZE, PIECE)
    except (ImportError, OSError, ValueError):
        pass


class Input:
    """Lines and pieces of bytes out of a pipe or a socket; silence has a limit."""

    def __init__(self, fd, quiet_s):
        self.fd, self.quiet_s, self.held, self.at = fd, quiet_s, b"", 0
        fast(fd)

    def more(self):
        ready = select.select([self.fd], [], [], self.quiet_s)[0]
        if not ready:
            raise Cut("nothing came for %d s" % self.quiet_s)
        try:
            data = os.read(self.fd, PIECE)
        except BlockingIOError:
            return b""
        except OSError as error:
            raise Cut(error.strerror) from error
        if not data:
            raise Cut("it ended in the middle")
        return data

    def line(self):
        while True:
            end = self.held.find(b"\n", self.at)
            if end >= 0:
                text = self.held[self.at : end].decode("ascii", "replace")
                self.at = end + 1
                if text != "idle":
                    return text.split(" ")
                continue
            rest = self.held[self.at :]
            if len(rest) > LONGEST:
                raise Refused("a line is too long")
            self.held, self.at = rest + self.more(), 0

    def gone(self):
        """Whether whoever watches us has let go of this pipe; what it says is dropped."""
        try:
            return not os.read(self.fd, PIECE)
        except BlockingIOError:
            return False

    def pieces(self, count):
        while count:
            if self.at == len(self.held):
                self.held, self.at = self.more(), 0
            piece = memoryview(self.held)[self.at : self.at + count]
            self.at += len(piece)
            count -= len(piece)
            if piece:
                yield piece


class Output:
    """Writes to a pipe or a socket; a peer that takes nothing has a limit.

    There is none while whoever ``watches`` us, an ``Input``, says that it still works.
    """

    def __init__(self, fd, quiet_s, watches=None):
        self.fd, self.quiet_s, self.watches = fd, quiet_s, watches
        fast(fd)

    def write(self, data):
        rest = memoryview(data)
        while rest:
            heard = [self.watches.fd] if self.watches else []
            said, ready, _ = select.select(heard, [self.fd], [], self.quiet_s)
            if said and self.watches.gone():
                raise Cut("whoever watched this is gone")
            if not ready:
                if not said:
                    raise Cut("nothing was taken for %d s" % self.quiet_s)
                continue
            try:
                rest = rest[os.write(self.fd, rest) :]
            except BlockingIOError:
                continue
            except OSError as error:
                raise Cut(error.strerror) from error

    def say(self, *words):
        self.write((" ".join(str(it) for it in words) + "\n").encode("ascii"))


class Beat:
    """Says something at most every half second, so that work without bytes is seen."""

    def __init__(self):
        self.next = 0.0

    def due(self):
        now = time.monotonic()
        if now < self.next:
            return False
        self.next = now + EVERY_S
        return True


def hash_of(file, size, beat=lambda: None):
    """Hash the first bytes of an open file, from where it stands."""
    found = hashlib.sha256()
    while size > 0:
        data = file.read(min(PIECE, size))
        if not data:
            break
        found.update(data)
        size -= len(data)
        beat()
    return found


def mac(key, *words):
    """The seal of what is said on a link that others may write to; ``-`` on a pipe of our own."""
    if not key:
        return "-"
    text = " ".join(str(it) for it in words).encode("ascii")
    return hmac.new(key, text, hashlib.sha256).hexdigest()


def greet(link, token, ours):
    """Prove to the other side that we know the token, and have it prove the same.

    ``ours`` is ``source`` or ``sink``. Returns the key of this link.
    """
    link.settimeout(GREET_S)
    other = "sink" if ours == "source" else "source"
    mine = os.urandom(32).hex()
    link.sendall(("%s\n" % mine).encode())
    theirs = _line(link)
    pair = (mine, theirs) if ours == "source" else (theirs, mine)
    link.sendall(("%s\n" % mac(token, ours, *pair)).encode())
    if not hmac.compare_digest(_line(link), mac(token, other, *pair)):
        raise Cut("the other side of the link does not know the token")
    return hmac.new(token, ("stream %s %s" % pair).encode(), hashlib.sha256).digest()


def _line(link):
    seen = b""
    while not seen.endswith(b"\n"):
        byte = link.recv(1)
        if not byte or len(seen) > 64:
            raise Cut("the other side of the link says something else")
        seen += byte
    return seen[:-1].decode("ascii", "replace")


def listen(address, limit_s, token, told):
    """Take the one connection that knows the token; others are closed."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    end = time.monotonic() + limit_s
    with socket.socket(family, socket.SOCK_STREAM) as door:
        door.bind((address, 0))
        door.listen(4)
        told(door.getsockname()[1])
        while True:
            door.settimeout(max(0.01, end - time.monotonic()))
            try:
                link = door.accept()[0]
            except socket.timeout as error:
                raise Refused("nobody connected within %d s" % limit_s) from error
            try:
                return link, greet(link, token, "sink")
            except (Cut, OSError):
                link.close()


def connect(address, port, token):
    """Connect to the sink's listener, and greet it."""
    try:
        link = socket.create_connection((address, port), GREET_S)
        return link, greet(link, token, "source")
    except (Cut, OSError) as error:
        why = getattr(error, "strerror", "") or error
        raise Refused("cannot reach %s: %s" % (address, why)) from error


def main(side):
    """Run one side: the words after the script are QUIET_S TAG ROOT."""
    quiet_s, tag, root = float(sys.argv[1]), sys.argv[2], os.fsencode(sys.argv[3])
    out = Output(1, quiet_s)
    try:
        out.say("transfer", 1)
        side(Input(0, quiet_s), out, root, tag)
    except Refused as error:
        out.say("refused", reason_of(error))
        sys.exit(4)
    except OSError as error:
        place = os.fsencode(error.filename or b"")
        out.say("refused", word((b"%s: " % place if place else b"") + name_of(reason_of(error))))
        sys.exit(4)
    except Cut as error:
        sys.stderr.write("%s\n" % error)
        sys.exit(3)
