"""Import modules one by one and say what happened. Run: PYTHON - MARKER PAYLOAD.

An answer is printed before each import and after the last: when a module ends or hangs the
interpreter, the last answer still tells which one it was.
"""

import os
import sys

MARKER, PAYLOAD = sys.argv[1:3]
del sys.argv[1:]  # modules that read arguments when they are imported must not see ours
sys.dont_write_bytecode = True
ANSWER = os.fdopen(os.dup(1), "wb")  # ours even if a module replaces or closes standard output
# Our own imports come from the standard library alone, whatever shadows it. What we are asked about
# comes from the environment's whole path, without the folder that we happen to be started in.
PATH = [entry for entry in sys.path if entry]
STDLIB = os.path.dirname(os.__file__)
sys.path[:] = [entry for entry in PATH if entry.startswith(STDLIB) and "-packages" not in entry]

import importlib  # noqa: E402
import importlib.metadata  # noqa: E402
import json  # noqa: E402

sys.path[:] = PATH


def last_line(error):
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:500] if lines else ""


def missing_module(error):
    """The module that was not found, also where the error was raised again as another one."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name:
            return error.name
        error = error.__cause__
    return None


def version_of(name, module):
    try:
        version = getattr(module, "__version__", None)
        if isinstance(version, str):  # torch's is a str of its own kind
            return str(version)
        return importlib.metadata.version(name)
    except BaseException:  # a lazy module may do anything when asked for an attribute
        return None


def look(name):
    """Import one module; whatever it raises is part of the answer."""
    try:
        module = importlib.import_module(name)
    except BaseException as error:  # SystemExit and KeyboardInterrupt of a bad module too
        return {
            "ok": False,
            "error_type": type(error).__name__,
            "error": last_line(error),
            "missing": missing_module(error),
        }
    return {"ok": True, "version": version_of(name, module)}


def say(answer):
    ANSWER.write(("\n%s %s\n" % (MARKER, json.dumps(answer))).encode("ascii"))
    ANSWER.flush()


def main():
    found = {}
    for name in json.loads(PAYLOAD)["modules"]:
        say({"modules": found, "importing": name})
        found[name] = look(name)
    say({"modules": found, "importing": None})
    os._exit(0)  # threads that an import has started must not keep us


main()
