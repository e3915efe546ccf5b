"""Who holds a TCP port, and which other one is free.

Run as ``python - MARKER '{"host": ..., "port": ..., "spare": [...]}'``; prints ``MARKER {json}``.
Python 3.8+, standard library only. Linux is read from /proc; elsewhere ``lsof`` and ``ps`` tell.
"""

import os
import sys

# Whatever lies in the folder we are started in, or in PYTHONPATH, shadows nothing of ours.
sys.path[:] = [entry for entry in sys.path if entry.startswith(os.path.dirname(os.__file__))]

import errno  # noqa: E402
import json  # noqa: E402
import pwd  # noqa: E402
import shlex  # noqa: E402
import socket  # noqa: E402
import subprocess  # noqa: E402

LISTEN = "0A"
NOT_HERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
HELD = ("EADDRINUSE", "EACCES")
"""Errors behind which there may be an owner."""
ANSWER_S = 2.0
NOBODY = {"pid": None, "command": None, "user": None, "start": None}


def bind_error(host, port):
    """Bind as servers do, on every address of ``host``; return "" or why it does not work."""
    try:
        places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        return "{}: {}".format(host, error)
    bound, absent = False, ""
    for family, kind, protocol, _, address in places:
        try:
            with socket.socket(family, kind, protocol) as server:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                server.bind(address)
                bound = True
        except OSError as error:
            text = "{}: {}".format(errno.errorcode.get(error.errno, error.errno), error.strerror)
            if error.errno not in NOT_HERE:
                return text
            absent = text
    return "" if bound else absent


def sockets(port):
    """Return the sockets on ``port`` as (not listening, inode, uid), listening ones first."""
    found = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            with open(table, encoding="ascii") as file:
                rows = [line.split() for line in file][1:]
        except OSError:
            continue
        for row in rows:
            if int(row[1].rpartition(":")[2], 16) == port:
                found.append((row[3] != LISTEN, row[9], int(row[7])))
    return sorted(found)


def processes_by_socket(inode):
    """Return the pids that hold a socket, as far as this user may see."""
    wanted, found = "socket:[{}]".format(inode), []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        folder = "/proc/{}/fd".format(name)
        try:
            links = [os.readlink(os.path.join(folder, fd)) for fd in os.listdir(folder)]
        except OSError:
            continue
        if wanted in links:
            found.append(int(name))
    return found


def start_ticks(pid):
    """Return when a process began, in clock ticks since boot (field 22 of its stat)."""
    try:
        with open("/proc/{}/stat".format(pid), encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[19])
    except (OSError, IndexError):
        return None


def command_of(pid):
    try:
        with open("/proc/{}/cmdline".format(pid), encoding="utf-8", errors="replace") as file:
            return " ".join(shlex.quote(word) for word in file.read().rstrip("\0").split("\0"))
    except OSError:
        return None


def user_name(uid):
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def owner_by_proc(port):
    """Return the oldest process that holds the port; its user is known even when it is not ours."""
    for _, inode, uid in sockets(port):
        ages = [(start_ticks(pid), pid) for pid in processes_by_socket(inode)]
        ages = sorted(age for age in ages if age[0] is not None)
        if ages:
            start, pid = ages[0]
            command = command_of(pid)
            return {"pid": pid, "command": command, "user": user_name(uid), "start": str(start)}
        return dict(NOBODY, user=user_name(uid))
    return dict(NOBODY)


def output_of(*argv):
    """Return what a program prints, or "" where there is none or it says nothing in time."""
    try:
        done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace").strip()


def owner_by_lsof(port):
    listed = output_of("lsof", "-nP", "-iTCP:{}".format(port), "-sTCP:LISTEN", "-Fp")
    pids = sorted(int(line[1:]) for line in listed.splitlines() if line[:1] == "p")
    if not pids:
        return dict(NOBODY)

    def field(name):
        return output_of("ps", "-o", name + "=", "-p", str(pids[0])) or None

    return {
        "pid": pids[0],
        "command": field("args"),
        "user": field("user"),
        "start": field("lstart"),
    }


def owner(port):
    return owner_by_proc(port) if os.path.exists("/proc/net/tcp") else owner_by_lsof(port)


def answers_http(host, port):
    """Ask for ``/`` in plain HTTP and look at the first bytes only."""
    place = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    try:
        with socket.create_connection((place, port), timeout=ANSWER_S) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return connection.recv(5).startswith(b"HTTP")
    except (OSError, UnicodeError):
        return False


def main():
    marker, payload = sys.argv[1], json.loads(sys.argv[2])
    host, port = payload["host"], payload["port"]
    error = bind_error(host, port)
    held = error.startswith(HELD)
    holder = owner(port) if held else NOBODY
    facts = {
        "free": not error,
        "bind_error": error or None,
        "answers_http": held and answers_http(host, port),
        "next_free": next(
            (spare for spare in payload["spare"] if not bind_error(host, spare)), None
        ),
    }
    facts.update(("owner_" + key, value) for key, value in holder.items())
    print("\n" + marker + " " + json.dumps(facts, allow_nan=False), flush=True)


if __name__ == "__main__":
    main()
