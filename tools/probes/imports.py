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
import importlib.util  # noqa: E402
import json  # noqa: E402
import re  # noqa: E402
import site  # noqa: E402

sys.path[:] = PATH
SITE = site.getsitepackages()
OWN = [sys.prefix, STDLIB, *SITE]  # where an environment's modules lie


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


def raised_at(error):
    """File and line that raised it, the import system itself left out."""
    place, trace = None, error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(("<", os.path.join(STDLIB, "importlib"))):
            place = "%s:%d" % (file, trace.tb_lineno)
        trace = trace.tb_next
    return place


def version_of(name, module):
    """What the module says of itself, else what its metadata says, and what that says otherwise."""
    try:
        version = getattr(module, "__version__", None)
        if not isinstance(version, str):
            return importlib.metadata.version(name), None
        version, installed = str(version), installed_version(name)  # torch's is of its own kind
    except BaseException:  # a lazy module may do anything when asked for an attribute
        return None, None
    differs = installed is not None and plain(installed) != plain(version)
    return version, installed if differs else None


def installed_version(name):
    """What the metadata in the environment's own folders says, before any other folder's."""
    top, path = name.partition(".")[0], SITE + PATH
    for dist in importlib.metadata.distributions(name=top, path=path):
        return dist.version
    for dist in importlib.metadata.distributions(path=SITE):
        if top in (dist.read_text("top_level.txt") or "").split():
            return dist.version
    return None


def plain(version):
    """A version without what the same release may have or lack: local part and last zeros."""
    return re.sub(r"(\.0)+$", "", version.partition("+")[0].lower())


def place_of(module):
    """The file a module was imported from, or the first folder of a namespace package."""
    try:
        file = getattr(module, "__file__", None) or next(iter(module.__path__), None)
    except BaseException:  # built in, or made by hand
        return {}
    return placed(file) if isinstance(file, str) else {}


def where(name):
    """The file from which a module that failed would come."""
    try:
        spec = importlib.util.find_spec(name.partition(".")[0])
    except BaseException:  # whoever has refused the import may refuse this too
        return {}
    return placed(spec.origin) if spec is not None and spec.has_location else {}


def placed(file):
    inside = any(below(file, folder) for folder in OWN)
    return {"file": file, "elsewhere": None if inside else True}


def below(path, folder):
    """Whether a path lies in a folder, as it is written or after all links."""
    pairs = ((path, folder), (os.path.realpath(path), os.path.realpath(folder)))
    return any(one.startswith(os.path.join(other, "")) for one, other in pairs)


def look(name):
    """Import one module; whatever it raises is part of the answer."""
    try:
        module = importlib.import_module(name)
    except BaseException as error:  # SystemExit and KeyboardInterrupt of a bad module too
        answer = {
            "ok": False,
            "error_type": type(error).__name__,
            "error": last_line(error),
            "missing": missing_module(error),
            "raised_at": raised_at(error),
        }
        return dict(answer, **where(name))
    version, installed = version_of(name, module)
    return dict({"ok": True, "version": version, "installed": installed}, **place_of(module))


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
