"""What a machine is: system, memory, user and disks.

Run as ``python - MARKER '{"paths": [...]}'``; prints ``MARKER {json}``.
Python 3.8+, standard library only.
"""

import os
import sys

# Whatever lies in the folder we are started in, or in PYTHONPATH, shadows nothing of ours.
sys.path[:] = [entry for entry in sys.path if entry.startswith(os.path.dirname(os.__file__))]

import json  # noqa: E402
import platform  # noqa: E402
import pwd  # noqa: E402
import re  # noqa: E402
import shlex  # noqa: E402
import subprocess  # noqa: E402

MIB = 1024 * 1024
CONTAINER_FILES = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")
CONTAINER_GROUPS = ("docker", "lxc", "kubepods", "containerd", "podman")


def text_of(path):
    """Return a file's text, or "" where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def os_release():
    if platform.system() == "Darwin":
        return "macOS " + platform.mac_ver()[0]
    for line in text_of("/etc/os-release").splitlines():
        if line.startswith("PRETTY_NAME="):
            return " ".join(shlex.split(line[len("PRETTY_NAME=") :]))
    return ""


def cpu_count():
    """Return how many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory():
    """Return total and available MiB; ``None`` where the system does not say."""
    kib = {}
    for line in text_of("/proc/meminfo").splitlines():
        words = line.split()
        if len(words) >= 2 and words[1].isdigit():
            kib[words[0].rstrip(":")] = int(words[1])
    if "MemTotal" in kib:
        available = kib.get("MemAvailable")
        return kib["MemTotal"] // 1024, None if available is None else available // 1024
    try:
        answer = subprocess.run(
            ["sysctl", "-n", "hw.memsize"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=5,
        )
        return int(answer.stdout) // MIB, None
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None, None


def in_container():
    if any(os.path.exists(path) for path in CONTAINER_FILES) or "container" in os.environ:
        return True
    if "container=" in text_of("/proc/1/environ"):
        return True
    return any(word in text_of("/proc/1/cgroup") for word in CONTAINER_GROUPS)


def user():
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def mounts():
    """Return (mount point, file system type) pairs, longest mount point first."""
    found = []
    for line in text_of("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        words = left.split()
        if len(words) > 4 and right:
            point = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code.group(1), 8)), words[4])
            found.append((point, right.split()[0]))
    found.reverse()  # the last mount on a place hides the earlier ones
    return sorted(found, key=lambda mount: len(mount[0]), reverse=True)


def file_system(path):
    for point, kind in mounts():
        if path == point or path.startswith(point.rstrip("/") + "/"):
            return kind
    return None


def disk(path):
    """Describe where ``path`` is or would be, with the numbers of its nearest existing parent."""
    real = os.path.realpath(path)
    exists = os.path.exists(real)
    while not os.path.exists(real):
        real = os.path.dirname(real)
    found = {"path": path, "exists": exists, "filesystem": file_system(real)}
    try:
        stats = os.statvfs(real)
    except OSError:
        return dict(found, free_mib=None, total_mib=None, read_only=None)
    return dict(
        found,
        free_mib=stats.f_bavail * stats.f_frsize // MIB,
        total_mib=stats.f_blocks * stats.f_frsize // MIB,
        read_only=bool(stats.f_flag & os.ST_RDONLY),
    )


def main():
    marker, payload = sys.argv[1], json.loads(sys.argv[2])
    total, available = memory()
    facts = {
        "system": platform.system(),
        "machine": platform.machine(),
        "os_release": os_release(),
        "kernel": platform.release(),
        "cpu_count": cpu_count(),
        "memory_mib": total,
        "memory_available_mib": available,
        "in_container": in_container(),
        "user": user(),
        "disks": [disk(path) for path in payload["paths"]],
    }
    print("\n" + marker + " " + json.dumps(facts, allow_nan=False), flush=True)


if __name__ == "__main__":
    main()
