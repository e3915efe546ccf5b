"""Fetch a model's config or all its files with huggingface_hub. Run: PYTHON - MARKER PAYLOAD.

Works with the library's releases 0.3x to 2.x. Everything is fetched into one folder; where it runs
as root (in a container), what it made is given to the owner of that folder at the end.
"""

import os
import sys

MARKER, PAYLOAD = sys.argv[1:3]
del sys.argv[1:]
ANSWER = os.fdopen(os.dup(1), "w", encoding="ascii")  # ours even if a module uses standard output
sys.path[:] = [entry for entry in sys.path if entry]

import concurrent.futures  # noqa: E402
import contextlib  # noqa: E402
import json  # noqa: E402
import re  # noqa: E402
import shutil  # noqa: E402
import signal  # noqa: E402
import tempfile  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

WORKERS = 4
PROGRESS_S = 2.0
SPARE_BYTES = 500 * 1000 * 1000
"""What has to stay free on the disk."""
UNLIKE_SAFETENSORS = (".bin", ".pth", ".pt", ".msgpack", ".h5", ".ckpt", ".ot")
NEVER = (".gguf", ".onnx", ".onnx_data", ".tflite", ".mlmodel", ".gitattributes")
FOLDERS = ("original/", "onnx/", "metal/", "openvino/", "coreml/")
"""Folders that hold the same weights in another format."""
UNIQUE = re.compile(r"\.[0-9a-f]{8}\.incomplete$")
"""Unfinished files of newer releases: each is one process's own, and no other goes on from it."""
OLD_S = 3600.0
"""Such a file that nobody has written to for so long was left by a process that was killed."""


class Refused(Exception):
    """We do not do it ourselves; the first argument is the kind."""


def say(answer):
    ANSWER.write("\n%s %s\n" % (MARKER, json.dumps(answer)))
    ANSWER.flush()


def failure(error):
    """An exception as it is, with those that it came from."""
    if isinstance(error, Refused):
        return {"error": {"kind": error.args[0], "text": error.args[1]}}
    seen = []
    while error is not None and error not in seen:
        seen.append(error)
        error = error.__cause__ or error.__context__
    texts = ["%s: %s" % (type(one).__name__, " ".join(str(one).split())) for one in seen]
    numbers = [getattr(one, "errno", None) for one in seen]
    return {
        "error": {
            "classes": sorted({cls.__name__ for one in seen for cls in type(one).__mro__}),
            "numbers": [number for number in numbers if isinstance(number, int)],
            "text": texts[0][:800] if len(texts) < 2 else texts[0][:800] + " < " + texts[-1][:300],
        }
    }


def library(payload):
    """The hub's library, free of the image's settings that would keep it from the network."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_ENABLE_HF_TRANSFER"):
        os.environ.pop(name, None)
    own = tempfile.mkdtemp(prefix="bringup-")
    settings = {
        "HF_HOME": own,
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DOWNLOAD_TIMEOUT": "30",
        "HF_HUB_ETAG_TIMEOUT": "30",
        "HF_XET_CHUNK_CACHE_SIZE_BYTES": "0",
    }
    os.environ.update(settings)
    if payload["endpoint"]:
        os.environ["HF_ENDPOINT"] = payload["endpoint"]
    try:
        import huggingface_hub
    except BaseException as error:  # a broken library may raise anything
        raise Refused("no_library", "%s: %s" % (type(error).__name__, error)) from error
    return huggingface_hub


def wanted(sizes):
    """The files that a server needs, by name with their sizes; no weights twice."""
    kept = {
        name: size
        for name, size in sizes.items()
        if not name.endswith(NEVER) and not name.startswith(FOLDERS)
    }
    weights = [name for name in kept if name.endswith(".safetensors")]
    if weights:
        kept = {name: kept[name] for name in kept if not name.endswith(UNLIKE_SAFETENSORS)}
    if any(name.startswith("model") for name in weights):
        kept = {name: kept[name] for name in kept if not name.startswith("consolidated")}
    return kept


def is_weight(name):
    return name.endswith((".safetensors", *UNLIKE_SAFETENSORS))


class Fetch:
    """One fetch of files of one commit into one folder."""

    def __init__(self, payload):
        self.hub = library(payload)
        self.repo, self.out = payload["repo"], payload["out"]
        self.most_gb = payload.get("most_gb") or 0.0
        info = self.hub.HfApi().model_info(
            self.repo, revision=payload["revision"], files_metadata=True
        )
        self.commit = info.sha
        sizes = {item.rfilename: item.size or 0 for item in info.siblings or ()}
        self.sizes = wanted(sizes)
        for path, changed in self.partial().items():
            if UNIQUE.search(path) and time.time() - changed[1] > OLD_S:
                remove(path)
        self.of_others = {path for path in self.partial() if UNIQUE.search(path)}

    def one(self, name):
        self.hub.hf_hub_download(self.repo, name, revision=self.commit, local_dir=self.out)

    def size(self, name):
        """Bytes of a file that are there, or None."""
        try:
            return os.stat(os.path.join(self.out, name)).st_size
        except OSError:
            return None

    def done(self):
        return [name for name, size in self.sizes.items() if self.size(name) == size]

    def whole(self):
        """Bytes of the files that are there, whole."""
        return sum(self.sizes[name] for name in self.done())

    def partial(self):
        """Size and time of the last change of each unfinished file."""
        found = {}
        for folder, _, names in os.walk(os.path.join(self.out, ".cache", "huggingface")):
            for path in (os.path.join(folder, name) for name in names):
                try:
                    numbers = os.stat(path)
                except OSError:
                    continue  # finished since
                if path.endswith(".incomplete"):
                    found[path] = numbers.st_size, numbers.st_mtime
        return found

    def tidy(self):
        """Remove our unfinished files that no next fetch could go on from."""
        for path in set(self.partial()) - self.of_others:
            if UNIQUE.search(path):
                remove(path)

    def answer(self):
        weights = {name: size for name, size in self.sizes.items() if is_weight(name)}
        return {
            "repo": self.repo,
            "commit": self.commit,
            "files": len(self.sizes),
            "bytes": sum(self.sizes.values()),
            "weights_files": len(weights),
            "weights_bytes": sum(weights.values()),
            "free_mib": shutil.disk_usage(self.out).free // (1024 * 1024),
        }

    def config(self):
        self.one("config.json")
        return self.answer()

    def weights(self):
        """Fetch all; the numbers of the disk are compared before the first byte comes."""
        total, here = sum(self.sizes.values()), self.whole()
        if not any(is_weight(name) for name in self.sizes):
            raise Refused("no_weights", "neither safetensors nor PyTorch files")
        if self.most_gb and total > self.most_gb * 1e9:
            raise Refused("too_large", "%.1f of %.1f GB" % (total / 1e9, self.most_gb))
        free = shutil.disk_usage(self.out).free
        if total - here > 0 and total - here + SPARE_BYTES > free:
            numbers = "%.1f GB to come, %.1f GB free" % ((total - here) / 1e9, free / 1e9)
            raise Refused("no_room", numbers)
        over = threading.Event()
        threading.Thread(target=self.tell, args=(over,), daemon=True).start()
        self.all()
        over.set()
        self.progress()
        bad = [name for name in self.sizes if self.size(name) != self.sizes[name]]
        if bad:
            raise Refused("sizes", ", ".join(sorted(bad)[:5]))
        return dict(self.answer(), fetched_bytes=max(0, total - here))

    def all(self):
        """Fetch all files, small ones first; the first failure ends it, whatever else runs."""
        pool = concurrent.futures.ThreadPoolExecutor(WORKERS)
        jobs = [pool.submit(self.one, name) for name in sorted(self.sizes, key=self.sizes.get)]
        for job in concurrent.futures.as_completed(jobs):
            job.result()

    def tell(self, over):
        while not over.wait(PROGRESS_S):
            self.progress()

    def progress(self):
        sizes = [size for path, (size, _) in self.partial().items() if path not in self.of_others]
        total, here = sum(self.sizes.values()), self.whole() + sum(sizes)
        numbers = len(self.done()), len(self.sizes), here / 1e9, total / 1e9
        ANSWER.write("weights: %d of %d files, %.2f of %.2f GB\n" % numbers)
        ANSWER.flush()


def remove(path):
    with contextlib.suppress(OSError):  # finished since, or not ours
        os.unlink(path)


def give_away(folder):
    """Let the folder's owner own what we made in it as root."""
    us, owner = os.geteuid(), os.stat(folder)
    if us != 0 or owner.st_uid == 0:
        return
    for root, folders, names in os.walk(folder):
        for path in (os.path.join(root, name) for name in folders + names):
            try:
                if os.lstat(path).st_uid == us:
                    os.lchown(path, owner.st_uid, owner.st_gid)
            except OSError:
                continue


def main():
    payload, fetches = json.loads(PAYLOAD), []

    def end(answer):
        for fetch in fetches:
            fetch.tidy()
        give_away(payload["out"])
        say(answer)
        os._exit(0)  # threads of the library must not keep us

    signal.signal(signal.SIGTERM, lambda *_: end(failure(Refused("time_over", "SIGTERM came"))))
    try:
        fetches.append(Fetch(payload))
        answer = fetches[0].config() if payload["what"] == "config" else fetches[0].weights()
    except BaseException as error:  # whatever the library raises is the answer
        answer = failure(error)
    end(answer)


main()
