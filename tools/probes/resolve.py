"""Ask pip what it would install, without installing. Run: PYTHON - MARKER PAYLOAD.

pip runs in this process, as ``python -m pip`` would; its report is a hundred times larger than
what is needed of it, so only that comes back.
"""

import os
import sys

MARKER, PAYLOAD = sys.argv[1:3]
del sys.argv[1:]
sys.dont_write_bytecode = True
ANSWER = os.fdopen(os.dup(1), "wb")
# Our own imports come from the standard library alone, whatever shadows it. What we are asked about
# comes from the environment's whole path, without the folder that we happen to be started in.
PATH = [entry for entry in sys.path if entry]
STDLIB = os.path.dirname(os.__file__)
sys.path[:] = [entry for entry in PATH if entry.startswith(STDLIB) and "-packages" not in entry]

import contextlib  # noqa: E402
import importlib.metadata  # noqa: E402
import io  # noqa: E402
import json  # noqa: E402
import runpy  # noqa: E402
import shutil  # noqa: E402
import tempfile  # noqa: E402
from urllib.parse import unquote  # noqa: E402

sys.path[:] = PATH
KEPT_LINES = 40


def arguments(payload, folder, report):
    """pip's command line; constraints go through a file in `folder`."""
    words = ["install", "--dry-run", "--report", report, "--no-input", "--progress-bar", "off"]
    words.append("--disable-pip-version-check")
    if payload["constraints"]:
        path = os.path.join(folder, "constraints.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(payload["constraints"]) + "\n")
        words += ["-c", path]
    for url in payload["extra_index"]:
        words += ["--extra-index-url", url]
    return words + ["--"] + payload["requirements"]


def run_pip(words):
    """Run pip; return its exit code and what it printed on standard output."""
    printed = io.StringIO()
    sys.argv = ["pip", *words]
    code = 0
    with contextlib.redirect_stdout(printed):
        try:
            runpy.run_module("pip", run_name="__main__", alter_sys=True)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return code, printed.getvalue()


def installed_version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def moves(report):
    """What would be installed, from which version to which."""
    found = []
    with open(report, encoding="utf-8") as file:
        for item in json.load(file)["install"]:
            name = item["metadata"]["name"]
            found.append(
                {
                    "name": name,
                    "from_version": installed_version(name),
                    "to_version": item["metadata"]["version"],
                    "file": unquote(item["download_info"]["url"].rpartition("/")[2]),
                }
            )
    return found


def look(payload):
    folder = tempfile.mkdtemp()
    report = os.path.join(folder, "report.json")
    try:
        code, printed = run_pip(arguments(payload, folder, report))
        if code == 0:
            return {"ok": True, "moves": moves(report)}
        print("\n".join(printed.splitlines()[-KEPT_LINES:]))  # a conflict is explained there
        return {"ok": False, "error": "pip ended with exit code %d" % code}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main():
    try:
        answer = look(json.loads(PAYLOAD))
    except (ImportError, OSError) as error:  # no pip or a broken one; no place for temporary files
        answer = {"ok": False, "error": "%s: %s" % (type(error).__name__, error)}
    sys.stdout.flush()
    ANSWER.write(("\n%s %s\n" % (MARKER, json.dumps(answer))).encode("ascii"))
    ANSWER.flush()


main()
