"""Run other probes inside an image, each in a process of its own. Run: PYTHON - MARKER PAYLOAD.

The caller appends ``main(SCRIPTS)`` with the texts of the other probes. Each answer is printed on a
line of its own as soon as it is there, as the result of a command: when the time of all is over,
those before it are not lost.
"""

import os
import sys

MARKER, PAYLOAD = sys.argv[1:3]
# Our own imports come from the standard library alone, whatever shadows it; the probes take what
# they need from the whole path themselves.
STDLIB = os.path.dirname(os.__file__)
sys.path[:] = [entry for entry in sys.path if entry.startswith(STDLIB) and "-packages" not in entry]

import contextlib  # noqa: E402
import json  # noqa: E402
import re  # noqa: E402
import signal  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402

CONFIG = "/bringup/model/config.json"
KEPT = {"stdout": 100000, "stderr": 3000}
"""So many bytes of a program's output are passed on: the start of the first, the end of the other.
"""


def say(answer):
    print("\n%s %s" % (MARKER, json.dumps(answer)), flush=True)


def end(process):
    """End a process and all that it started in its session."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def run(argv, script, limit_s):
    """Run a program; return what a connector would say of it."""
    begun = time.monotonic()
    with contextlib.ExitStack() as stack:
        # Files, not pipes: what it leaves running may hold a pipe open for ever.
        streams = ("stdin", "stdout", "stderr")
        files = {it: stack.enter_context(tempfile.TemporaryFile()) for it in streams}
        files["stdin"].write(script.encode("utf-8"))
        files["stdin"].seek(0)
        env = dict(os.environ, COLUMNS="120", NO_COLOR="1", TERM="dumb")
        try:
            process = subprocess.Popen(argv, start_new_session=True, env=env, **files)
        except OSError as error:
            reason = "%s: %s" % (argv[0], error.strerror)
            return {"ending": "exited", "code": 127, "stderr": reason}
        try:
            answer = ending_of(process.wait(limit_s))
        except subprocess.TimeoutExpired:
            answer = {"ending": "timed_out"}
        end(process)
        answer.update((it, text_of(files[it], it)) for it in KEPT)
    answer["duration_s"] = round(time.monotonic() - begun, 3)
    return answer


def ending_of(code):
    if code >= 0:
        return {"ending": "exited", "code": code}
    try:
        return {"ending": "signaled", "signal": signal.Signals(-code).name}
    except ValueError:
        return {"ending": "signaled", "signal": "SIG%d" % -code}


def text_of(file, stream):
    """The lines behind our marker where there are any, else the kept part of the output."""
    size, kept = file.seek(0, os.SEEK_END), KEPT[stream]
    file.seek(max(0, size - 2 * kept))
    marked = [line for line in file.read().splitlines() if line.startswith(MARKER.encode() + b" ")]
    if marked:
        return marked[-1].decode("utf-8", "replace")
    file.seek(0 if stream == "stdout" else max(0, size - kept))
    return file.read(kept).decode("utf-8", "replace")


def asked_of(payload):
    """Architecture and model type, from the config where the caller did not name them."""
    config = {}
    try:
        with open(CONFIG, encoding="utf-8") as file:
            config = json.load(file)
    except (OSError, ValueError):
        pass
    found = config if isinstance(config, dict) else {}
    listed = found.get("architectures")
    first = listed[0] if isinstance(listed, list) and listed else ""
    return {
        "architecture": payload["architecture"] or name_of(first),
        "model_type": payload["model_type"] or name_of(found.get("model_type")),
    }


def name_of(value):
    """A value of the config if it can be a name, else an empty text."""
    return value if isinstance(value, str) and re.match(r"[\w.-]+$", value) else ""


class Asking:
    """Asks one question after the other, each within its own limit and that of all."""

    def __init__(self, scripts, payload):
        self.scripts = scripts
        self.limit_s = payload["probe_limit_s"]
        self.deadline = time.monotonic() + payload["limit_s"]

    def probe(self, name, question):
        argv = [sys.executable, "-", MARKER, json.dumps(question)]
        return self.ask(name, question, argv, self.scripts[name])

    def ask(self, name, question, argv, script=""):
        left = min(self.limit_s, self.deadline - time.monotonic())
        answer = {"ending": "timed_out", "stderr": "not asked: the time of all answers was over"}
        if left > 0:
            answer = run(argv, script, left)
        say(dict(answer, name=name, question=question))
        return answer


def found_layout(payload, answer):
    """The layout of the engine that was found, or an empty one."""
    text = answer.get("stdout", "")[len(MARKER) + 1 :]
    try:
        module = json.loads(text).get("module")
    except ValueError:
        module = None
    layouts = [layout for layout in payload["engines"] if layout["module"] == module]
    return layouts[0] if layouts else {"registry": [], "modules": [], "help_argv": []}


def main(scripts):
    signal.signal(signal.SIGTERM, lambda *_: os._exit(143))
    payload = json.loads(PAYLOAD)
    say({"name": "python", "ending": "exited", "code": 0, "stdout": sys.executable})
    asking = Asking(scripts, payload)
    asking.probe("environment", {"pins_of": payload["pins_of"]})
    layout = found_layout(payload, {})
    if payload["engines"]:
        question = dict(asked_of(payload), engines=payload["engines"])
        layout = found_layout(payload, asking.probe("engine", question))
    if payload["config"]:
        asking.probe("config", {"model": CONFIG, "registry": layout["registry"]})
    modules = list(dict.fromkeys(payload["modules"] + layout["modules"]))
    if modules:
        asking.probe("imports", {"modules": modules})
    if layout["help_argv"]:
        words = [word.replace("{python}", sys.executable) for word in layout["help_argv"]]
        last = [] if words[-1].startswith("--help") else ["--help"]
        asking.ask("options", {"argv": words}, words + last)
    say({"name": "end", "ending": "exited", "code": 0})
