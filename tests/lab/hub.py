"""A small model hub on loopback: enough of the Hugging Face hub's HTTP for its real clients.

The paths, headers and error codes are those that ``huggingface_hub`` 0.36 and 1.x ask for and read
(``hf_api.py``, ``file_download.py``, ``utils/_http.py`` there): set ``HF_ENDPOINT`` to `Hub.url`.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

TOKEN = "hf_lab_token"  # noqa: S105
"""What a gated model asks for; it opens nothing else."""
BIG = (".safetensors", ".bin", ".gguf")
"""Files that the hub keeps by their sha256, as git-lfs does."""
_API = re.compile(r"^/api/models/([^/]+/[^/]+?)(?:/(revision|tree|paths-info)/([^/]+).*)?$")
_FILE = re.compile(r"^/([^/]+/[^/]+)/resolve/([^/]+)/(.+)$")
_RANGE = re.compile(r"^bytes=(\d+)-(\d*)$")


@dataclass(frozen=True)
class Asked:
    """One request for a file."""

    method: str
    model: str
    file: str
    status: int
    start: int = 0
    """First byte asked for."""


@dataclass
class Hub:
    """A running hub.

    ``models`` maps ``ORG/NAME`` to the folder of its files; ``gated`` names those that want
    `TOKEN`. Both may change while it runs.
    """

    url: str
    models: dict[str, Path]
    gated: set[str] = field(default_factory=set)
    asked: list[Asked] = field(default_factory=list)

    def fetched(self) -> list[str]:
        """Return the files whose content was sent, in the order of the requests."""
        return [one.file for one in self.asked if one.method == "GET" and one.status in (200, 206)]

    def count(self, file: str) -> int:
        """Return how often a file's content was sent."""
        return self.fetched().count(file)

    def commit(self, model: str) -> str:
        """Return the revision that ``main`` means: it changes with the files."""
        parts = [f"{name} {blob(path)}" for name, path in self.files(model).items()]
        return hashlib.sha1("\n".join([model, *parts]).encode()).hexdigest()  # noqa: S324

    def files(self, model: str) -> dict[str, Path]:
        """Return a model's files by their names in it; hidden ones are left out."""
        folder = self.models[model]
        found = sorted(path for path in folder.rglob("[!.]*") if path.is_file())
        return {path.relative_to(folder).as_posix(): path for path in found}


@contextmanager
def hub(models: dict[str, Path], *, gated: set[str] | None = None) -> Iterator[Hub]:
    """Run a hub while the block runs.

    Args:
        models: The folder of each ``ORG/NAME``.
        gated: Those that ask for `TOKEN`.
    """
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        url = f"http://127.0.0.1:{server.server_address[1]}"
        made = Hub(url, dict(models), set(gated or ()))
        server.hub = made  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()


def blob(path: Path) -> str:
    """Return the name of a file's content: its sha256 where it is big, else git's."""
    data = path.read_bytes()
    if path.name.endswith(BIG):
        return hashlib.sha256(data).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()  # noqa: S324


def _described(path: Path) -> dict[str, object]:
    size = path.stat().st_size
    if not path.name.endswith(BIG):
        return {"size": size, "oid": blob(path)}
    lfs = {"oid": blob(path), "sha256": blob(path), "size": size, "pointerSize": 134}
    return {"size": size, "oid": hashlib.sha1(path.name.encode()).hexdigest(), "lfs": lfs}  # noqa: S324


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""

    @property
    def hub(self) -> Hub:
        return self.server.hub  # type: ignore[attr-defined, no-any-return]

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _answer(self, body: bytes = b"") -> None:
        parts = urllib.parse.urlsplit(self.path)
        path, query = urllib.parse.unquote(parts.path), urllib.parse.parse_qs(parts.query)
        if path == "/api/whoami-v2":
            return self._whoami()
        if found := _FILE.match(path):
            return self._file(*found.groups())
        if found := _API.match(path):
            return self._api(*found.groups(), query=query, body=body)
        return self._refuse(404, "NotFound", "no such page")

    def _whoami(self) -> None:
        if self._token() != TOKEN:
            return self._refuse(401, "", "Invalid username or password.")
        return self._json({"type": "user", "name": "lab", "auth": {"type": "access_token"}})

    def _token(self) -> str:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ")

    def _missing(self, model: str, revision: str | None) -> bool:
        """Refuse a model or a revision that is not there; return whether that was done."""
        if model not in self.hub.models:
            self._refuse(401, "RepoNotFound", "Repository not found")
        elif revision not in (None, "main", self.hub.commit(model)):
            self._refuse(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        else:
            return False
        return True

    def _api(
        self,
        model: str,
        kind: str | None,
        revision: str | None,
        *,
        query: dict[str, list[str]],
        body: bytes,
    ) -> None:
        if self._missing(model, revision):
            return None
        files = {name: _described(path) for name, path in self.hub.files(model).items()}
        if kind in ("tree", "paths-info"):
            wanted = _paths(body) if kind == "paths-info" else list(files)
            listed = [name for name in wanted if name in files]
            return self._json([{"type": "file", "path": name, **files[name]} for name in listed])
        blobs = "blobs" in query
        siblings = [
            {"rfilename": name, **(_sibling(facts) if blobs else {})}
            for name, facts in files.items()
        ]
        gated = "auto" if model in self.hub.gated else False
        facts = {"id": model, "modelId": model, "sha": self.hub.commit(model), "gated": gated}
        more = {"private": False, "disabled": False, "downloads": 0, "likes": 0, "tags": []}
        return self._json({**facts, **more, "siblings": siblings})

    def _file(self, model: str, revision: str, name: str) -> None:
        if self._missing(model, revision):
            return None
        if model in self.hub.gated and self._token() != TOKEN:
            self._note(model, name, 401 if not self._token() else 403)
            words = f"Access to model {model} is restricted."
            return self._refuse(403 if self._token() else 401, "GatedRepo", words)
        path = self.hub.files(model).get(name)
        if path is None:
            self._note(model, name, 404)
            return self._refuse(404, "EntryNotFound", "Entry not found")
        return self._send(model, name, path.read_bytes(), blob(path))

    def _send(self, model: str, name: str, data: bytes, etag: str) -> None:
        asked = _RANGE.match(self.headers.get("Range") or "")
        start = int(asked[1]) if asked else 0
        end = min(int(asked[2]) + 1 if asked and asked[2] else len(data), len(data))
        status = 206 if asked else 200
        if start > len(data) or (asked and start == len(data)):
            status, start, end = 416, len(data), len(data)
        headers = {
            "Content-Type": "application/octet-stream",
            "ETag": f'"{etag}"',
            "X-Repo-Commit": self.hub.commit(model),
            "X-Linked-Size": str(len(data)),
            "X-Linked-ETag": f'"{etag}"',
            "Accept-Ranges": "bytes",
        }
        if asked:
            shown = f"{start}-{end - 1}" if status == 206 else "*"
            headers["Content-Range"] = f"bytes {shown}/{len(data)}"
        self._note(model, name, status, start)
        self._reply(status, data[start:end], headers)

    def _note(self, model: str, name: str, status: int, start: int = 0) -> None:
        self.hub.asked.append(Asked(self.command, model, name, status, start))

    def _json(self, value: object) -> None:
        headers = {"Content-Type": "application/json; charset=utf-8"}
        self._reply(200, json.dumps(value).encode(), headers)

    def _refuse(self, status: int, code: str, words: str) -> None:
        headers = {"Content-Type": "application/json; charset=utf-8", "X-Error-Message": words}
        if code:
            headers["X-Error-Code"] = code
        self._reply(status, json.dumps({"error": words}).encode(), headers)

    def _reply(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _sibling(facts: dict[str, object]) -> dict[str, object]:
    kept = {"size": facts["size"], "blobId": facts["oid"]}
    return {**kept, "lfs": facts["lfs"]} if "lfs" in facts else kept


def _paths(body: bytes) -> list[str]:
    """Return the paths that a request names, as JSON or as a form."""
    if body.startswith(b"{"):
        return [str(path) for path in json.loads(body)["paths"]]
    return urllib.parse.parse_qs(body.decode()).get("paths", [])
