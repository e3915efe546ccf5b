"""A file that is to come, on the side of a transfer that takes it.

It stands between ``transfer_lines.py`` and ``transfer_sink.py`` in the one text that a host's
Python gets. Python 3.8+, standard library only.
"""

import fcntl
import hashlib
import os
import stat
import threading

from tools.probes.transfer_lines import Refused, hash_of, name_of, word

BLOCK = 65536
SECOND = 10**9
THREADS = 16
EASED = 1 << 28  # bytes
KEPT = 200  # bytes of a name; the rest of the 255 is for what is added


class Item:
    """One file that is to come."""

    def __init__(self, top, text, size, mtime, mode):
        self.text, self.size, self.mtime, self.mode = text, int(size), int(mtime), int(mode, 8)
        self.top = top
        path = name_of(text)
        self.path = top if path == b"." else os.path.join(top, path)
        folder, name = os.path.split(self.path)
        sign = hashlib.sha256(b"%d %d " % (self.size, self.mtime) + name).hexdigest()[:12]
        self.part = os.path.join(folder, name[:KEPT] + b".part-" + sign.encode())
        self.replaces, self.error = False, None
        self.eased, self.easing = 0, None
        self.fd, self.at, self.sum = -1, 0, hashlib.sha256()

    def open(self):
        if self.path != self.top and not inside(self.top, self.path):
            raise Refused("a link there leads out of the folder")
        os.makedirs(os.path.dirname(self.part), exist_ok=True)
        if self.fd < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self.fd = os.open(self.part, flags, 0o600)
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def begin(self, start):
        try:
            self.open()
        except BlockingIOError as error:
            raise Refused("another transfer is writing %s" % os.fsdecode(self.part)) from error
        if start != self.at:
            if start:
                raise Refused("the source begins at another byte")
            self.at, self.sum = 0, hashlib.sha256()
        os.ftruncate(self.fd, self.at)
        os.lseek(self.fd, self.at, os.SEEK_SET)

    def take(self, data):
        self.sum.update(data)
        self.at += len(data)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.fd, rest) :]
        if self.at - self.eased > EASED and not (self.easing and self.easing.is_alive()):
            self.eased = self.at
            self.easing = threading.Thread(target=self.ease)
            self.easing.start()

    def ease(self):
        """Bring what has come to the disk meanwhile, so that the end need not wait for all."""
        try:
            os.fdatasync(self.fd)
        except OSError as error:
            self.error = error

    def settle(self):
        """Bring all of it to the disk; what goes wrong is kept in ``error``."""
        if self.easing:
            self.easing.join()
        try:
            os.fchmod(self.fd, self.mode)
            os.utime(self.fd, ns=(self.mtime, self.mtime))
            os.fsync(self.fd)
        except OSError as error:
            self.error = error

    def finish(self, tag):
        """Give the file its name; never over what came there meanwhile."""
        if self.error:
            raise self.error
        if self.replaces and os.path.lexists(self.path):
            linked(self.path, self.backup(tag))
            os.replace(self.part, self.path)
        else:
            linked(self.part, self.path)
            os.unlink(self.part)
        self.close()

    def backup(self, tag):
        folder, name = os.path.split(self.path)
        return os.path.join(folder, name[:KEPT] + b".before-" + tag.encode())

    def touch(self):
        os.chmod(self.path, self.mode)
        os.utime(self.path, ns=(self.mtime, self.mtime))

    def close(self):
        if self.easing:
            self.easing.join()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def settle_all(items):
    """Bring files to the disk, several at once: a disk takes them together."""
    shares = [items[start::THREADS] for start in range(min(THREADS, len(items)))]

    def settle(share):
        for item in share:
            item.settle()

    threads = [threading.Thread(target=settle, args=(share,)) for share in shares[1:]]
    for thread in threads:
        thread.start()
    settle(shares[0])
    for thread in threads:
        thread.join()


def linked(path, other):
    """Give a file a second name, unless something has it."""
    try:
        os.link(path, other, follow_symlinks=False)
    except (NotImplementedError, OSError) as error:
        if os.path.lexists(other):
            raise Refused("%s is there meanwhile" % os.fsdecode(other)) from error
        import shutil  # a file system without hard links

        shutil.copy2(path, other, follow_symlinks=False)


def inside(top, path):
    """Whether the folder of a path, all links followed, is within the folder of the transfer."""
    real = os.path.realpath(os.path.dirname(path))
    return real == top or real.startswith(top + b"/")


def standing(top, single, item):
    """Return how a file stands here: a word and what belongs to it."""
    if not single and not inside(top, item.path):
        return ("clash", word(b"a link there leads out of the folder"))
    try:
        status = os.lstat(item.path)
    except (FileNotFoundError, NotADirectoryError):
        return unfinished(item)
    if not stat.S_ISREG(status.st_mode):
        return ("clash", word(b"something that is no file is there"))
    if status.st_size != item.size:
        return ("other", "-")
    if same_time(status.st_mtime_ns, item.mtime):
        return ("same",)
    with open(item.path, "rb") as file:
        return ("other", hash_of(file, item.size).hexdigest())


def same_time(one, other):
    """Whether two times in nanoseconds are the same, as far as both of them tell it."""
    if one % SECOND and other % SECOND:
        return one // 1000 == other // 1000
    return one // SECOND == other // SECOND


def unfinished(item):
    if not os.path.lexists(item.part):
        return ("need",)
    try:
        item.open()
    except BlockingIOError:
        item.close()
        return ("busy",)
    size = min(os.fstat(item.fd).st_size, item.size) // BLOCK * BLOCK
    with os.fdopen(os.dup(item.fd), "rb") as file:
        file.seek(0)
        item.sum = hash_of(file, size)
    item.at = size
    return ("part", item.at, item.sum.hexdigest())
