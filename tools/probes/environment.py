"""Say what a Python environment is and whether it can be changed. Run: PYTHON - MARKER PAYLOAD."""

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

import importlib.metadata  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import re  # noqa: E402
import site  # noqa: E402
import sysconfig  # noqa: E402
import tempfile  # noqa: E402

sys.path[:] = PATH
SITE = site.getsitepackages() + ([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])
INSIDE = [os.path.realpath(folder) for folder in [sys.prefix, STDLIB, *SITE]]
VARIABLES = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "LD_PRELOAD", "LD_LIBRARY_PATH")
USUAL = re.compile(
    r"_virtualenv\.pth: import _virtualenv"
    r"|distutils-precedence\.pth: import os; var = 'SETUPTOOLS_USE_DISTUTILS'; "
    r"enabled = os\.environ\.get\(var, '\w+'\) == 'local'; "
    r"enabled and __import__\('_distutils_hack'\)(\.\w+\(\))?;?"
    r"|__editable__[^:]*\.pth: (/[^\n]*|import __editable__\w+; __editable__\w+\.install\(\))"
    r"|sitecustomize\.py: try:\n    import apport_python_hook\nexcept ImportError:\n    pass\n"
    r"else:\n    apport_python_hook\.install\(\)"  # Debian's own
)
MOST_LINES, MOST_CHARACTERS, MOST_BYTES = 10, 300, 65536  # of one source that are told or read


def reason(error):
    """The operating system's words for an error."""
    return error.strerror or str(error)


def normalized(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def nearest_folder(path):
    """The path itself, or the nearest folder above it that exists."""
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    return path


def try_writing(folder):
    """Why nothing can be written to the folder, or an empty text. Leaves nothing behind."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".bringup-") as trial:
            trial.write(b"\0" * 4096)
            trial.flush()
    except OSError as error:
        return reason(error)
    return ""


def storage(folder):
    """Whether the folder can be written, and what its file system says."""
    error = try_writing(folder)
    found = {"writable": not error, "write_error": error, "read_only": False, "free_mib": 0}
    try:
        numbers = os.statvfs(folder)
    except OSError:
        return found
    found["read_only"] = bool(numbers.f_flag & os.ST_RDONLY)
    found["free_mib"] = numbers.f_bavail * numbers.f_frsize // (1024 * 1024)
    return found


def pip_state():
    """pip's version if pip can really be started here, else why not."""
    try:
        import pip
        import pip._internal.cli.main  # most broken pips fail here
    except BaseException as error:
        return {"pip_version": None, "pip_error": "%s: %s" % (type(error).__name__, error)}
    return {"pip_version": pip.__version__, "pip_error": None}


def installed():
    """All distributions by normalized name; the first on the path counts, as for imports."""
    found = {}
    for dist in importlib.metadata.distributions():
        folder = os.path.basename(str(getattr(dist, "_path", "")))
        name = dist.metadata["Name"]
        if name and not folder.startswith("~"):  # ~ marks what an interrupted pip left
            found.setdefault(normalized(name), dist)
    return found


def requirement_reader():
    """The class that reads requirements, from packaging or from pip's copy of it."""
    for module in ("packaging.requirements", "pip._vendor.packaging.requirements"):
        try:
            return importlib.import_module(module).Requirement
        except ImportError:
            continue
    return None


def required_name(text, reader):
    """The normalized name that a requirement is about, or None where it does not apply here."""
    bare = re.match(r"[A-Za-z0-9._-]+", text)
    name = normalized(bare.group(0)) if bare else None
    if reader is None:
        return None if re.search(r";.*\bextra\s*==", text) else name
    try:
        marker = reader(text).marker
    except ValueError:  # not a valid requirement by today's rules
        return name
    return name if marker is None or marker.evaluate({"extra": ""}) else None


def pins(distributions, wanted):
    """What installed distributions ask of each of the wanted names."""
    names = {normalized(name) for name in wanted}
    reader = requirement_reader() if names else None
    found = []
    for by, dist in sorted(distributions.items()) if names else ():
        for text in dist.requires or ():
            name = required_name(text, reader)
            if name in names:
                pin = {"name": name, "by": by, "by_version": dist.version, "requirement": text}
                found.append(pin)
    return found


def at_start():
    """What changes the module path, or runs, whenever this Python starts."""
    found = [source(name, [os.environ[name]]) for name in VARIABLES if os.environ.get(name)]
    if sys.prefix != sys.base_prefix and sys.base_prefix in site.PREFIXES:
        settings = os.path.join(sys.prefix, "pyvenv.cfg")
        found.append(source(settings, ["include-system-site-packages = true"]))
    for path in path_files():
        lines = [line for line in lines_of(path) if not is_own(path, line)]
        if lines:
            found.append(source(path, lines))
    for name in ("sitecustomize", "usercustomize")[: 2 if site.ENABLE_USER_SITE else 1]:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):  # the module that stands there was made by hand
            continue
        if spec is not None and spec.origin:
            lines = lines_of(spec.origin) if spec.origin.endswith(".py") else []
            found.append(source(spec.origin, lines))
    return found


def source(name, lines):
    if USUAL.fullmatch("%s: %s" % (os.path.basename(name), "\n".join(lines))):
        return {"source": name, "lines": [], "usual": True}
    kept = [line[:MOST_CHARACTERS] for line in lines[:MOST_LINES]]
    left = len(lines) - len(kept)
    return {"source": name, "lines": kept + ["(%d more lines)" % left] * (left > 0)}


def path_files():
    """The .pth files that are read at the start."""
    for folder in SITE:
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            continue
        for name in names:
            if name.endswith(".pth"):
                yield os.path.join(folder, name)


def lines_of(path):
    """The lines of a file that are neither empty nor a comment."""
    try:
        with open(path, "rb") as file:
            text = file.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError as error:
        return ["(%s)" % reason(error)]
    return [line.rstrip() for line in text.splitlines() if line.strip() and line[0] != "#"]


def is_own(path, line):
    """Whether a line of a .pth file is a path that exists and lies in this environment."""
    place = os.path.join(os.path.dirname(path), line)
    if not os.path.exists(place):
        return False
    real = os.path.join(os.path.realpath(place), "")
    return any(real.startswith(os.path.join(folder, "")) for folder in INSIDE)


def main():
    payload = json.loads(PAYLOAD)
    distributions = installed()
    managed = os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED")
    is_venv = sys.prefix != sys.base_prefix
    externally_managed = os.path.exists(managed) and not is_venv
    answer = {
        "exists": True,
        "python_version": "%d.%d.%d" % sys.version_info[:3],
        "executable": sys.executable,
        "prefix": sys.prefix,
        "is_venv": is_venv,
        "system": os.uname().sysname,
        "machine": os.uname().machine,
        "externally_managed": externally_managed,
        "ensurepip": importlib.util.find_spec("ensurepip") is not None and not externally_managed,
        "versions": {name: str(dist.version) for name, dist in sorted(distributions.items())},
        "pins": pins(distributions, payload["pins_of"]),
        "startup": at_start(),
    }
    answer.update(storage(nearest_folder(sysconfig.get_path("purelib"))))
    answer.update(pip_state())
    ANSWER.write(("\n%s %s\n" % (MARKER, json.dumps(answer))).encode("ascii"))
    ANSWER.flush()


main()
