"""Say whether an environment can read a model's config.json. Run: PYTHON - MARKER PAYLOAD.

The file itself is judged first. Then the engine's own registry is imported, because some engines
know configs that the installed transformers does not know.
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
import shutil  # noqa: E402
import tempfile  # noqa: E402

sys.path[:] = PATH


def first_paragraph(error):
    return str(error).strip().split("\n\n")[0][:1000]


def config_path(model):
    """The config file that `model` means, or None."""
    path = os.path.join(model, "config.json") if os.path.isdir(model) else model
    return path if os.path.isfile(path) else None


def read(path):
    """The config as a dict and an empty text, or an empty dict and what is wrong with the file."""
    try:
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
    except OSError as error:
        return {}, "cannot be read: %s" % (error.strerror or error)
    except UnicodeDecodeError as error:
        return {}, "is not UTF-8: %s" % error
    except json.JSONDecodeError as error:
        return {}, "%s (line %d, column %d)" % (error.msg, error.lineno, error.colno)
    if not isinstance(config, dict):
        return {}, "holds %s, not an object" % type(config).__name__
    return config, ""


def installed_transformers():
    try:
        return importlib.metadata.version("transformers")
    except importlib.metadata.PackageNotFoundError:
        return None


def load_registry(names):
    """Import the engine's modules; return those that came, and why the others did not."""
    modules, errors = [], {}
    for name in names:
        try:
            modules.append(importlib.import_module(name))
        except BaseException as error:  # SystemExit of a bad module too
            errors[name] = "%s: %s" % (type(error).__name__, first_paragraph(error))
    return modules, errors


def parse(folder, modules):
    """Read the config as the engine would: by its own reader where it has one."""
    for module in modules:
        reader = getattr(module, "get_config", None)
        if callable(reader):
            return reader(folder, trust_remote_code=False)
    from transformers import AutoConfig

    return AutoConfig.from_pretrained(folder, trust_remote_code=False)


def judge(path, registry):
    """Whether the config can be parsed, and by whom."""
    if not registry:
        sys.modules["torch"] = None  # no config needs it, and its import takes seconds
    modules, registry_errors = load_registry(registry)
    copy = None
    try:
        folder = os.path.dirname(os.path.abspath(path))
        if os.path.basename(path) != "config.json":
            folder = copy = tempfile.mkdtemp()
            shutil.copyfile(path, os.path.join(copy, "config.json"))
        config = parse(folder, modules)
        verdict = {
            "parses": True,
            "parsed_by": "registry" if modules else "bare",
            "config_class": type(config).__name__,
        }
    except BaseException as error:  # whatever a class does with this config is the answer
        verdict = {"error_type": type(error).__name__, "error": first_paragraph(error)}
    finally:
        if copy:
            shutil.rmtree(copy, ignore_errors=True)
    verdict["registry_errors"] = registry_errors
    return verdict


def texts(value):
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def text(value):
    return value if isinstance(value, str) else ""


def look(payload):
    answer = {"config_found": False, "transformers": installed_transformers()}
    path = config_path(payload["model"])
    if path is None:
        return answer
    config, problem = read(path)
    answer.update(config_found=True, json_error=problem)
    if problem:
        return answer
    answer["model_type"] = text(config.get("model_type"))
    answer["architectures"] = texts(config.get("architectures"))
    answer["written_by"] = text(config.get("transformers_version"))
    answer.update(judge(path, payload["registry"]))
    return answer


def main():
    # What follows never asks a hub: the answer must not depend on the network.
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")
    answer = look(json.loads(PAYLOAD))
    ANSWER.write(("\n%s %s\n" % (MARKER, json.dumps(answer))).encode("ascii"))
    ANSWER.flush()
    os._exit(0)  # threads that an import has started must not keep us


main()
