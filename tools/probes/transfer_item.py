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
WAIT_S = 0.5
HERE, NOREPLACE = -100, 1  # AT_FDCWD and RENAME_NOREPLACE of Linux


def bits(mode):
    """Return a mode's permission bits; what else it tells, such as setuid, never travels."""
    return int(mode, 8) & 0o777


class Item:
    """One file that is to come."""

    def __init__(self, top, text, size, mtime, mode):
        self.text, self.size, self.mtime, self.mode = text, int(size), int(mtime), bits(mode)
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
        old = self.replaces and os.path.lexists(self.path)
        if old and linked(self.path, self.backup(tag)):
            os.replace(self.part, self.path)
        else:
            if old:
                moved(self.path, self.backup(tag))
            if linked(self.part, self.path):
                os.unlink(self.part)
            else:
                moved(self.part, self.path)
        self.close()

    def backup(self, tag):
        folder, name = os.path.split(self.path)
        return os.path.join(folder, name[:KEPT] + b".before-" + tag.encode())

    def touch(self):
        dress(self.path, self.mtime, self.mode)

    def close(self):
        if self.easing:
            self.easing.join()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def dress(path, mtime, mode):
    """Give what is there a mode and a time, as far as we may: it can be another owner's."""
    try:
        os.chmod(path, mode)
        os.utime(path, ns=(mtime, mtime))
    except PermissionError:
        pass


def settle_all(items, beat):
    """Bring files to the disk, several at once: a disk takes them together."""
    shares = [items[start::THREADS] for start in range(min(THREADS, len(items)))]

    def settle(share):
        for item in share:
            item.settle()

    threads = [threading.Thread(target=settle, args=(share,)) for share in shares]
    for thread in threads:
        thread.start()
    for thread in threads:
        while thread.is_alive():
            thread.join(WAIT_S)
            beat()


def linked(path, other):
    """Give a file a second name, unless something has it; whether there are hard links here."""
    try:
        os.link(path, other, follow_symlinks=False)
    except FileExistsError as error:
        raise Refused("%s is there meanwhile" % os.fsdecode(other)) from error
    except (NotImplementedError, OSError):
        return False
    return True


def moved(path, other):
    """Give a file another name, unless something has it."""
    try:
        import ctypes

        if not ctypes.CDLL(None).renameat2(HERE, path, HERE, other, NOREPLACE):
            return
    except (ImportError, AttributeError, OSError):
        pass
    # The kernel or the file system cannot: we take the name first, so that nobody else does.
    try:
        os.close(os.open(other, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError as error:
        raise Refused("%s is there meanwhile" % os.fsdecode(other)) from error
    try:
        os.replace(path, other)
    except OSError:
        os.unlink(other)
        raise


def inside(top, path):
    """Whether the folder of a path, all links followed, is within the folder of the transfer."""
    real = os.path.realpath(os.path.dirname(path))
    return real == top or real.startswith(top + b"/")


def standing(top, single, item, beat):
    """Return how a file stands here: a word and what belongs to it."""
    if not single and not inside(top, item.path):
        return ("clash", word(b"a link there leads out of the folder"))
    try:
        status = os.lstat(item.path)
    except (FileNotFoundError, NotADirectoryError):
        return unfinished(item, beat)
    if not stat.S_ISREG(status.st_mode):
        return ("clash", word(b"something that is no file is there"))
    if status.st_size != item.size:
        return ("other", "-")
    if same_time(status.st_mtime_ns, item.mtime):
        return ("same",)
    with open(item.path, "rb") as file:
        return ("other", hash_of(file, item.size, beat).hexdigest())


def same_time(one, other):
    """Whether two times in nanoseconds are the same, as far as both of them tell it."""
    if one % SECOND and other % SECOND:
        return one // 1000 == other // 1000
    return one // SECOND == other // SECOND


def unfinished(item, beat):
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
        item.sum = hash_of(file, size, beat)
    item.at = size
    return ("part", item.at, item.sum.hexdigest())
