"""How much memory is free: of this machine, and of each NVIDIA GPU.

Run as ``python - MARKER '{}'``; prints ``MARKER {json}``. Python 3.8+, standard library only.
"""

import os
import sys

# Whatever lies in the folder we are started in, or in PYTHONPATH, shadows nothing of ours.
sys.path[:] = [entry for entry in sys.path if entry.startswith(os.path.dirname(os.__file__))]

import csv  # noqa: E402
import json  # noqa: E402
import subprocess  # noqa: E402

LIMIT_S = 20


def host_memory():
    """Return total and available MiB; zeros where the system does not say."""
    kib = {}
    try:
        with open("/proc/meminfo", encoding="ascii", errors="replace") as file:
            for line in file:
                words = line.split()
                if len(words) >= 2 and words[1].isdigit():
                    kib[words[0].rstrip(":")] = int(words[1])
    except OSError:
        return 0, 0
    return kib.get("MemTotal", 0) // 1024, kib.get("MemAvailable", 0) // 1024


def query(what, fields):
    """Ask nvidia-smi for rows of fields."""
    answer = subprocess.run(
        ["nvidia-smi", "--query-%s=%s" % (what, ",".join(fields)), "--format=csv,noheader,nounits"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        timeout=LIMIT_S,
    )
    text = answer.stdout.decode("utf-8", "replace")
    if answer.returncode != 0:
        raise OSError(text.strip()[:300] or "exit code %d" % answer.returncode)
    return [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if row]


def number(text):
    """Return a number of MiB, or None for ``[N/A]`` and the like."""
    return int(text) if text.isdigit() else None


def gpus():
    rows = query("gpu", ["index", "uuid", "name", "memory.total", "memory.free"])
    users = {}
    for uuid, pid, name, used in query(
        "compute-apps", ["gpu_uuid", "pid", "process_name", "used_memory"]
    ):
        users.setdefault(uuid, []).append("%s %s %s" % (pid, name, used))
    return [
        {
            "index": int(index),
            "name": name,
            "total_mib": number(total),
            "free_mib": number(free),
            "users": users.get(uuid, []),
        }
        for index, uuid, name, total, free in rows
    ]


def main():
    total, available = host_memory()
    found, problem = [], ""
    try:
        found = gpus()
    except FileNotFoundError:
        pass
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        problem = "nvidia-smi: %s" % error
    answer = {
        "total_mib": total,
        "available_mib": available,
        "gpus": found,
        "gpu_problem": problem,
    }
    print(sys.argv[1], json.dumps(answer))


main()
