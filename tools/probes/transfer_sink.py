"""The side of a transfer that takes. Behind ``transfer_lines.py`` and ``transfer_item.py``.

It is told what is to come (``file``, ``dir``, ``link``, then ``plan``), and says of each file how
it stands here: ``need``, ``part`` (so many bytes are here, with this sum), ``same``, ``other``,
``busy`` or ``clash``; then how much room there is. Then it is told which to ``get``, which may
``replace`` what is here, which only to ``touch``, and to ``go``. A file is written under another
name, and gets its own when all of it is on the disk with the sum that the source has told.
"""

import os

from tools.probes.transfer_item import Item, bits, dress, inside, settle_all, standing
from tools.probes.transfer_lines import (
    Beat,
    Cut,
    Input,
    Refused,
    listen,
    mac,
    main,
    name_of,
    reason_of,
    word,
)


def nearest(path):
    """Return the nearest folder that is there."""
    while not os.path.isdir(path):
        if os.path.lexists(path) or path == b"/":
            raise Refused("%s is no folder" % os.fsdecode(path))
        path = os.path.dirname(path) or b"/"
    return path


MANY, HEAVY = 256, 1 << 25  # files, and bytes, that are brought to the disk together


class Sink:
    """What is to come, and where to."""

    def __init__(self, given, out, root, tag):
        self.given, self.out, self.tag = given, out, tag
        self.items, self.dirs, self.links = {}, [], []
        self.single, self.key = False, b""
        self.item, self.count, self.beat = None, 0, Beat()
        self.whole, self.weight = [], 0
        parent, name = os.path.split(os.path.abspath(root))
        self.top = os.path.realpath(os.path.join(parent, name)) if name else b"/"

    def run(self):
        self.learn()
        self.answer()
        link = self.start()
        try:
            self.take(Input(link.fileno(), self.given.quiet_s) if link else self.given)
        finally:
            self.settle()
            if link:
                link.close()
        for path, mtime, mode in reversed(self.dirs):
            dress(path, mtime, mode)
            self.idle()
        self.out.say("bye")

    def idle(self):
        if self.beat.due():
            self.out.say("idle")

    def place(self, text):
        path = name_of(text)
        if path == b".":
            self.single = True
        elif path.startswith(b"/") or {b"", b".", b".."} & set(path.split(b"/")) or b"\0" in path:
            raise Refused("a path leads out of the folder: " + text)
        return os.path.join(self.top, path)

    def learn(self):
        while True:
            row = self.given.line()
            if row[0] == "plan":
                return
            path = self.place(row[1])
            if row[0] == "file":
                self.items[row[1]] = Item(self.top, *row[1:])
            elif row[0] == "dir":
                self.dirs.append((path, int(row[2]), bits(row[3])))
            elif row[0] == "link":
                self.links.append((path, name_of(row[2]), row[1]))

    def answer(self):
        near = nearest(os.path.dirname(self.top))
        if os.path.isdir(self.top) and not self.single:
            near = self.top
        for item in self.items.values():
            state = standing(self.top, self.single, item, self.idle)
            self.out.say(state[0], item.text, *state[1:])
        for path, target, text in self.links:
            if os.path.lexists(path) and not (os.path.islink(path) and os.readlink(path) == target):
                self.out.say("clash", text, word(b"something else than this link is there"))
        if not os.access(near, os.W_OK | os.X_OK):
            raise Refused("nothing may be written to %s" % os.fsdecode(near))
        room = os.statvfs(near)
        self.out.say("free", room.f_bavail * room.f_frsize)
        self.out.say("planned", "old" if os.path.lexists(self.top) else "new")

    def start(self):
        """Hear what to do and make folders and links; return the link of a direct transfer."""
        row = self.given.line()
        while row[0] != "go":
            if row[0] == "replace":
                self.items[row[1]].replaces = True
            elif row[0] == "touch":
                self.items[row[1]].touch()
            self.idle()
            row = self.given.line()
        for path, _, _ in self.dirs:
            if not inside(self.top, os.path.join(path, b"x")):
                raise Refused("a link there leads out of the folder")
            os.makedirs(path, exist_ok=True)
            self.idle()
        for path, target, _ in self.links:
            self.make_link(path, target)
        if len(row) == 1:
            return None
        token = bytes.fromhex(row[3])
        link, self.key = listen(row[1], float(row[2]), token, lambda n: self.out.say("port", n))
        return link

    def make_link(self, path, target):
        folder = os.path.realpath(os.path.dirname(path))
        aim = os.path.realpath(os.path.join(folder, target))
        if not aim.startswith(self.top + b"/") or not inside(self.top, path):
            raise Refused("a link leads out of the folder: " + os.fsdecode(path))
        os.makedirs(folder, exist_ok=True)
        if not os.path.lexists(path):
            os.symlink(target, path)

    def take(self, given):
        """Read the source's stream to its end."""
        row = given.line()
        while row[0] != "bye":
            if row[0] == "data":
                self.data(given, int(row[1]))
            elif row[0] == "file":
                self.item = self.items[row[1]]
                self.item.begin(int(row[2]))
            elif row[0] == "end":
                self.finish(self.item, row)
            elif row[0] == "fail":
                self.out.say("failed", row[1], row[2])
            row = given.line()
        self.out.say("at", self.count)
        if row[1] != mac(self.key, "bye"):
            raise Cut("the seal of the stream's end is wrong")

    def data(self, given, count):
        for piece in given.pieces(count):
            self.write(self.item, piece)
            self.count += len(piece)
        if self.beat.due():
            self.out.say("at", self.count)

    def write(self, item, piece):
        if item.at + len(piece) > item.size:
            raise Refused("the source sends more than it said")
        try:
            item.take(piece)
        except OSError as error:
            self.out.say("stopped", item.text, reason_of(error))
            raise Cut(error.strerror) from error

    def finish(self, item, row):
        digest = item.sum.hexdigest()
        good = item.at == item.size and digest == row[1]
        if not good or row[2] != mac(self.key, "end", item.text, digest):
            self.out.say("wrong", item.text)
            item.close()
            return
        self.whole.append((item, digest))
        self.weight += item.size
        if len(self.whole) >= MANY or self.weight >= HEAVY:
            self.settle()

    def settle(self):
        """Give the files that are whole their names, when they are on the disk."""
        ready, self.whole, self.weight = self.whole, [], 0
        if ready:
            settle_all([item for item, _ in ready], self.idle)
        said = []
        for item, digest in ready:
            try:
                item.finish(self.tag)
            except (OSError, Refused) as error:
                said.append(("failed", item.text, reason_of(error)))
                item.close()
            else:
                said.append(("done", item.text, digest))
        for row in said:
            self.out.say(*row)


def sink(given, out, root, tag):
    Sink(given, out, root, tag).run()


if __name__ == "__main__":
    main(sink)
