"""Say whether a folder holds a model's weights, all and whole. Run: PYTHON - MARKER PAYLOAD."""

import os
import sys

MARKER, PAYLOAD = sys.argv[1:3]
# Our own imports come from the standard library alone, whatever shadows it.
STDLIB = os.path.dirname(os.__file__)
sys.path[:] = [entry for entry in sys.path if entry.startswith(STDLIB) and "-packages" not in entry]

import json  # noqa: E402
import struct  # noqa: E402

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "tekken.json", "tiktoken.model")
OTHER_FORMATS = (".bin", ".gguf", ".pth", ".pt", ".safetensors")
POINTER = b"version https://git-lfs"
MAX_HEADER = 100 * 1000 * 1000
"""The format's own limit."""
NAMED = 20
"""So many files are named; the counts are exact."""


def size_of(path):
    """Bytes of a file, links followed, or None where there is none."""
    try:
        return os.stat(path).st_size if os.path.isfile(path) else None
    except OSError:
        return None


def read_json(path):
    """An object and an empty text, or an empty object and what is wrong with the file."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except OSError as error:
        return {}, "cannot be read: %s" % (error.strerror or error)
    except ValueError as error:
        return {}, "is no JSON: %s" % error
    return (found, "") if isinstance(found, dict) else ({}, "holds no object")


def whole_size(path):
    """Bytes that a safetensors file has by its own header; raises ValueError with a reason."""
    with open(path, "rb") as file:
        begin = file.read(8)
        if begin + file.read(len(POINTER) - 8) == POINTER:
            raise ValueError("a Git LFS pointer, not the file itself")
        if len(begin) < 8:
            raise ValueError("shorter than any header")
        length = struct.unpack("<Q", begin)[0]
        if length > MAX_HEADER:
            raise ValueError("does not begin with a safetensors header")
        file.seek(8)
        text = file.read(length)
    if len(text) < length:
        raise ValueError("ends within its header")
    try:
        tensors = json.loads(text.decode("utf-8"))
        ends = [it["data_offsets"][1] for name, it in tensors.items() if name != "__metadata__"]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise ValueError("its header cannot be read") from None
    return 8 + length + max(ends or [0])


def fault_of(path, size):
    """What is wrong with a shard, or None."""
    expected = None
    try:
        expected = whole_size(path)
        why = "" if size == expected else "shorter" if size < expected else "longer"
        why = why and "%s than its header says" % why
    except OSError as error:
        why = "cannot be read: %s" % (error.strerror or error)
    except ValueError as error:
        why = str(error)
    if not why:
        return None
    return {"name": os.path.basename(path), "bytes": size, "expected": expected, "why": why}


def named_shards(folder):
    """The shards that there should be, the size of their tensors, and what is wrong."""
    path = os.path.join(folder, INDEX)
    if size_of(path) is None:
        single = size_of(os.path.join(folder, SINGLE)) is not None
        return ([SINGLE] if single else []), None, "", False
    index, problem = read_json(path)
    shards = index.get("weight_map")
    if problem or not isinstance(shards, dict):
        return [], None, "%s %s" % (INDEX, problem or "has no weight_map"), False
    metadata = index.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    names = sorted({str(name) for name in shards.values()})
    return names, (int(total) if isinstance(total, (int, float)) else None), "", True


def unfinished(folder):
    """Unfinished downloads, as the hub's library keeps them: beside the files or in its cache."""
    places = [folder, os.path.join(folder, ".cache", "huggingface", "download")]
    blobs = os.path.join(folder, "..", "..", "blobs")
    if os.path.basename(os.path.dirname(os.path.normpath(folder))) == "snapshots":
        places.append(blobs)
    found = []
    for place in places:
        try:
            found += [name for name in os.listdir(place) if name.endswith(".incomplete")]
        except OSError:
            continue
    return sorted(found)


def nothing_named(folder):
    """Why there is no weight to look for."""
    others = [name for name in sorted(os.listdir(folder)) if name.endswith(OTHER_FORMATS)]
    found = ", but there is %s" % ", ".join(others[:3]) if others else ""
    return "there is neither %s nor %s%s" % (INDEX, SINGLE, found)


def free_mib(path):
    while not os.path.isdir(path) and os.path.dirname(path) != path:
        path = os.path.dirname(path)
    numbers = os.statvfs(path)
    return numbers.f_bavail * numbers.f_frsize // (1024 * 1024)


def look(folder):
    answer = {"folder_found": os.path.isdir(folder), "free_mib": free_mib(folder)}
    if not answer["folder_found"]:
        return dict(answer, problem="there is no folder %s" % folder)
    shards, total, index_problem, has_index = named_shards(folder)
    sizes = {name: size_of(os.path.join(folder, name)) for name in shards}
    missing = [name for name, size in sizes.items() if size is None]
    faults = [fault_of(os.path.join(folder, name), size) for name, size in sizes.items() if size]
    faults += [
        {"name": name, "bytes": 0, "expected": None, "why": "empty"}
        for name, size in sizes.items()
        if size == 0
    ]
    short = [fault for fault in faults if fault]
    _, config_problem = read_json(os.path.join(folder, "config.json"))
    tokenizer = any(size_of(os.path.join(folder, name)) for name in TOKENIZERS)
    problems = ["config.json " + config_problem] if config_problem else []
    problems += [index_problem or nothing_named(folder)] if not shards else []
    problems += ["%d of %d weight files missing" % (len(missing), len(shards))] if missing else []
    problems += ["%(name)s is not whole: %(why)s" % fault for fault in short[:1]]
    problems += [] if tokenizer else ["there is no tokenizer"]
    return dict(
        answer,
        config=not config_problem,
        index=has_index,
        shards=len(shards),
        present=len(shards) - len(missing) - len(short),
        missing=missing[:NAMED],
        short=short[:NAMED],
        bytes_present=sum(size or 0 for size in sizes.values()),
        bytes_expected=total,
        tokenizer=tokenizer,
        incomplete=unfinished(folder)[:NAMED],
        complete=not problems,
        problem="; ".join(problems),
    )


def main():
    answer = look(json.loads(PAYLOAD)["folder"])
    print("\n%s %s" % (MARKER, json.dumps(answer)), flush=True)


main()
