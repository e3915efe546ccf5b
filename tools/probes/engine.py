"""Say which serving engine is installed and what it knows. Run: PYTHON - MARKER PAYLOAD.

Nothing of the engine is imported: its metadata and its files are read as text, so an engine whose
import fails, or takes minutes, is described as well.
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

import ast  # noqa: E402
import difflib  # noqa: E402
import importlib  # noqa: E402
import importlib.metadata  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import re  # noqa: E402
import urllib.parse  # noqa: E402

sys.path[:] = PATH

VERSION_FILES = ("_version.py", "version.py", "__init__.py")
ROLES = ("moe", "text")
"""Last parts of a model type that have no model file of their own in some engines."""
PARTS = ("moe", "text", "mtp", "nextn", "vl")
"""What stands behind a family's name in the names of its further model files."""
SECRET = r"(?i)(api[-_]?key|token|passw|secret|credential)(?!iz)"
VALUES = r"(?:hf_|sk-)[\w-]{8,}|(?<=://)[^/@\s]+(?=@)"
"""Words that are secrets by their own form."""


def normalized(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def text_of(*parts):
    """A file's text, or an empty text where it cannot be read."""
    try:
        with open(os.path.join(*parts), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def names_in(folder):
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def package_folder(module):
    """Where a top package lies, or an empty text; it is found and not imported."""
    try:
        spec = importlib.util.find_spec(module.partition(".")[0])
    except (ImportError, ValueError, AttributeError):
        return ""
    if spec is None or not spec.origin or not spec.submodule_search_locations:
        return ""  # a folder without __init__.py may be anything
    return next(iter(spec.submodule_search_locations))


def distribution(names):
    for name in names:
        try:
            return importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def assigned(text, name):
    """The text that a module assigns to a name, or an empty one."""
    found = re.search(r"(?m)^%s\b[^=\n]*=(?:\s*\w+\s*=)?\s*['\"]([^'\"\n]+)" % name, text)
    return found.group(1) if found else ""


def file_version(folder):
    texts = (text_of(folder, name) for name in VERSION_FILES)
    return next((found for found in (assigned(it, "__version__") for it in texts) if found), "")


def editable(dist):
    """The folder that the distribution is installed from in place, or an empty text."""
    try:
        origin = json.loads(dist.read_text("direct_url.json") or "{}")
        if origin["dir_info"]["editable"]:
            return urllib.parse.unquote(urllib.parse.urlsplit(origin["url"]).path)
    except (KeyError, TypeError, ValueError):
        pass
    return ""


def requirement_reader():
    """The class that reads requirements, from packaging or from pip's copy of it."""
    for module in ("packaging.requirements", "pip._vendor.packaging.requirements"):
        try:
            return importlib.import_module(module).Requirement
        except ImportError:
            continue
    return None


def requirements(dist):
    """What the distribution asks of others on this machine, without its extras."""
    reader, found = requirement_reader(), []
    for text in dist.requires or ():
        bare, _, marker = (part.strip() for part in text.partition(";"))
        try:
            applies = reader is None or not marker or reader(text).marker.evaluate({"extra": ""})
        except (ValueError, AttributeError):  # not valid by today's rules
            applies = True
        name = re.match(r"[A-Za-z0-9._-]+", bare)
        if name and applies and not (reader is None and "extra" in marker):
            found.append({"name": normalized(name.group(0)), "requirement": bare})
    return found


def identity(layout):
    """Which distribution and folder an engine has here; both may be missing."""
    dist = distribution(layout["distributions"] or [layout["module"]])
    folder = package_folder(layout["module"])
    if dist is None and not folder:
        return None
    version = str(dist.version or "") if dist else ""
    source = editable(dist) if dist else ""
    nothing = not version or version.startswith("0.0.0") or "unknown" in version
    return {
        "module": layout["module"],
        "distribution": str(dist.metadata["Name"]) if dist else "",
        "version": version,
        "version_known": not nothing and not source,
        "file_version": file_version(folder) if folder else "",
        "location": folder,
        "editable": source,
        "requirements": requirements(dist) if dist else [],
    }


def nodes(text):
    """All parts of a source; none of one that is newer than this Python can read."""
    try:
        return list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return []


def pairs_in(text):
    """All literal ``key: (text, text)`` of a registry's source."""
    for node in nodes(text):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values):  # noqa: B905 - always of one length
                if isinstance(key, ast.Constant) and isinstance(value, ast.Tuple):
                    yield key.value, [getattr(item, "value", None) for item in value.elts]


def entry_classes(text):
    """The classes that a model file registers by ``EntryClass = ...``, its last statement."""
    begin = re.search(r"(?m)^EntryClass\b", text)
    if begin is None:
        return []
    statement = next((it for it in nodes(text[begin.start() :]) if hasattr(it, "targets")), None)
    value = getattr(statement, "value", None)
    items = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
    return [item.id for item in items if isinstance(item, ast.Name)]


def mapped_classes(text):
    """The class names in ``OrderedDict([(model type, class or classes), ...])`` tables."""
    for node in nodes(text):
        if isinstance(node, ast.Tuple) and len(node.elts) == 2:
            name = node.elts[1]
            for item in name.elts if isinstance(name, ast.Tuple) else [name]:
                if isinstance(item, ast.Constant) and re.match(r"[A-Z]\w+$", str(item.value)):
                    yield item.value


def registered(folder):
    """All architectures that the engine's own files register, each with its model file."""
    found = {}
    for name in names_in(folder):
        if name.endswith(".py"):
            for architecture in entry_classes(text_of(folder, name)):
                found[architecture] = name
    for key, value in pairs_in(text_of(folder, "registry.py")):
        if len(value) == 2 and all(isinstance(item, str) for item in value):
            found.setdefault(key, value[0] + ".py")
    for name in mapped_classes(text_of(folder, "auto", "modeling_auto.py")):
        found.setdefault(name, "")
    return found


def family(model_type):
    head, _, role = model_type.rpartition("_")
    return family(head) if head and role in ROLES else model_type


def files_for(model_type, folder):
    """The model files (or folders) whose names say that they are for the model type."""
    base = family(model_type)
    wanted = {model_type, base} | {"%s_%s" % (base, part) for part in PARTS}
    return [name for name in names_in(folder) if name.partition(".")[0].lower() in wanted]


def has_config(model_type, folder):
    """Whether a class of the folder declares the model type; None where there is no folder."""
    if not os.path.isdir(folder):
        return None
    declares = re.compile(r"(?m)^\s+model_type\b[^=\n]*=\s*['\"]%s['\"]" % re.escape(model_type))
    for root, _, files in os.walk(folder):
        for name in files:
            wanted = name.endswith(".py") and (root == folder or name.startswith("config"))
            if wanted and declares.search(text_of(root, name)):
                return True
    return False


def knowledge(layout, folder, architecture, model_type):
    """What the engine's files say of an architecture and of a model type."""
    models = os.path.join(folder, layout["models"])
    known = registered(models) if layout["models"] else {}
    answer = {"architecture": architecture, "model_type": model_type, "architectures": len(known)}
    files = files_for(model_type, models) if layout["models"] and model_type else []
    if architecture and known:
        answer["knows_architecture"] = architecture in known
        if architecture not in known:
            answer["near"] = difflib.get_close_matches(architecture, sorted(known), 5, 0.7)
        elif known[architecture] and known[architecture] not in files:
            files.insert(0, known[architecture])
    if model_type and layout["configs"]:
        answer["own_config"] = has_config(model_type, os.path.join(folder, layout["configs"]))
    answer["model_files"] = files[:20]
    return answer


def without_secrets(words):
    """The words of a command line, with everything that may be a secret cut out."""
    shown, hide = [], False
    for word in words:
        if hide and not word.startswith("-"):
            word = "***"
        named = re.search(SECRET, word)
        hide = bool(named) and word.startswith("-") and "=" not in word
        if named:
            word = re.sub(SECRET + r"([\w-]*)([=:\s]+)\S+", r"\1\2\3***", word)
        shown.append(re.sub(VALUES, "***", word)[:500])
    return shown[:200]


def server(module):
    """The command line of process 1, where that runs the engine and is not our own."""
    words = text_of("/proc/1/cmdline").rstrip("\0").split("\0")
    runs = any(re.search(r"(?<!\w)%s(?!\w)" % re.escape(module), word) for word in words)
    return without_secrets(words) if runs and MARKER not in words else []


def torch():
    text = text_of(package_folder("torch") or os.devnull, "version.py")
    hip = assigned(text, "hip")
    cuda = assigned(text, "cuda") or (hip and "hip " + hip)
    return {"torch": assigned(text, "__version__"), "torch_cuda": cuda}


def main():
    payload = json.loads(PAYLOAD)
    answer = {"found": False, "machine": os.uname().machine}
    for layout in payload["engines"]:
        found = identity(layout)
        if found:
            asked = payload["architecture"], payload["model_type"]
            answer.update(found, found=True, server=server(layout["module"]))
            if found["location"]:
                answer.update(knowledge(layout, found["location"], *asked))
            break
    answer.update(torch())
    ANSWER.write(("\n%s %s\n" % (MARKER, json.dumps(answer))).encode("ascii"))
    ANSWER.flush()


main()
