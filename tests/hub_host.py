"""A model hub on loopback that can misbehave, and the files of a small model for it."""

from __future__ import annotations

import hashlib
import json
import ssl
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

MB = 10**6


def shard(size: int, fill: bytes = b"\1") -> bytes:
    """A safetensors file of one tensor of so many bytes."""
    offsets = {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}
    header = json.dumps({"__metadata__": {"format": "pt"}, "a": offsets}).encode()
    return struct.pack("<Q", len(header)) + header + fill * size


def index(*names: str) -> bytes:
    weight_map = {f"layer.{number}": name for number, name in enumerate(names)}
    return json.dumps({"metadata": {"total_size": 300}, "weight_map": weight_map}).encode()


ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"
WHOLE = {
    "config.json": b"{}",
    "tokenizer.json": b"{}",
    "model.safetensors.index.json": index(ONE, TWO, TWO),
    ONE: shard(100),
    TWO: shard(200),
}


@dataclass
class Hub:
    """What the hub holds, and how it behaves."""

    repo: str = "org/tiny"
    files: dict[str, bytes] = field(default_factory=dict)
    gated: bool = False
    claims: dict[str, int] = field(default_factory=dict)
    """Sizes that it names for files instead of the true ones."""
    status: int = 0
    """Answers everything with this status, where it is one."""
    stalls_after: int | None = None
    """So many bytes of a large file are sent; then nothing more comes."""
    when_stalled: Callable[[], object] = int
    """Called then."""
    before_file: Callable[[], object] = int
    """Called before a file is sent, for one request at a time."""
    sent: list[tuple[str, str]] = field(default_factory=list)
    """File and asked range of every download."""
    tokens: set[str] = field(default_factory=set)
    address: str = ""

    @property
    def commit(self) -> str:
        """The hash of all that it holds."""
        return etag(repr(sorted(self.files.items())).encode())[:40]

    def info(self) -> dict[str, object]:
        """What it says of the repository."""
        rows = [
            {"rfilename": name, "size": self.claims.get(name, len(data)), "blobId": etag(data)}
            for name, data in self.files.items()
        ]
        return {"id": self.repo, "modelId": self.repo, "sha": self.commit, "siblings": rows}


def etag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves one hub; says nothing of clients that went away."""

    daemon_threads = True

    def __init__(self, hub: Hub) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.hub = hub
        self.over = threading.Event()
        self.one_by_one = threading.Lock()

    def handle_error(self, *_: object) -> None:
        """Say nothing."""


class Handler(BaseHTTPRequestHandler):
    """Answers for the hub of its server."""

    server: Server
    protocol_version = "HTTP/1.1"

    @property
    def hub(self) -> Hub:
        return self.server.hub

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        self.hub.tokens.add(self.headers.get("Authorization", ""))
        path = unquote(urlsplit(self.path).path)
        api, files = f"/api/models/{self.hub.repo}", f"/{self.hub.repo}/resolve/"
        if self.hub.status:
            self.refuse(self.hub.status, "")
        elif path in (api, f"{api}/revision/main", f"{api}/revision/{self.hub.commit}"):
            self.send(json.dumps(self.hub.info()).encode(), {"Content-Type": "application/json"})
        elif path.startswith(f"{api}/revision/"):
            self.refuse(404, "RevisionNotFound")
        elif not path.startswith(files):
            self.refuse(401, "RepoNotFound")
        elif self.hub.gated:
            self.refuse(403, "GatedRepo")
        else:
            self.send_file(path[len(files) :].partition("/")[2])

    def refuse(self, status: int, code: str) -> None:
        self.send(b"", {"X-Error-Code": code, "X-Error-Message": code} if code else {}, status)

    def send_file(self, name: str) -> None:
        if name not in self.hub.files:
            return self.refuse(404, "EntryNotFound")
        data, status = self.hub.files[name], 200
        headers = {"ETag": f'"{etag(data)}"', "X-Repo-Commit": self.hub.commit}
        asked = self.headers.get("Range", "")
        if asked:
            begin = int(asked.removeprefix("bytes=").partition("-")[0])
            headers["Content-Range"] = f"bytes {begin}-{len(data) - 1}/{len(data)}"
            data, status = data[begin:], 206
        if self.command == "GET":
            with self.server.one_by_one:
                self.hub.before_file()
            self.hub.sent.append((name, asked))
        self.send(data, headers, status)

    def send(self, data: bytes, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(data[: self.hub.stalls_after])
        if self.hub.stalls_after is not None and len(data) > self.hub.stalls_after:
            self.hub.when_stalled()
            self.server.over.wait(60)


def tls_context(folder: Path) -> ssl.SSLContext:
    """A server's context with a certificate of its own, made for this."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    words = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", *words, *files], check=True, capture_output=True, timeout=60)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context


@contextmanager
def serving(hub: Hub, tls: Path | None = None) -> Iterator[Hub]:
    """Serve a hub; its address is set while it runs.

    Args:
        hub: what it holds.
        tls: a folder for a certificate that nobody knows; without it plain HTTP is spoken.
    """
    server = Server(hub)
    if tls is not None:
        server.socket = tls_context(tls).wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    hub.address = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
