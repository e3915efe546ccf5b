"""Asks a model behind an OpenAI-compatible address, once: no retry happens here.

The body goes out as bytes that the caller has serialised: handing over messages would have the
SDK walk the whole history at each step. A stream's lines are read here for the same reason. So is
the body of a refusal: the SDK would read it whole, however long it is and however slowly it comes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent.brains.address import Address, root_of, shown
from agent.brains.bearer import Key
from agent.brains.failures import Failure, Kind, ModelFailed, classify, one_line
from agent.brains.model_names import with_names
from agent.brains.network_failures import of_exception
from agent.brains.reading import ReplyReader
from agent.problems import Problem

if TYPE_CHECKING:
    import httpx2

    from agent.brains.client import Client

__all__ = ["Address", "Answer", "Endpoint"]

LONGEST_TIMES = 4
"""A reply that keeps coming may take so many times the longest silence."""
_LOOK_S = 10.0
"""How long a server's own routes may be silent: they say what they know at once."""
_LARGEST_LOOK = 8 * 2**20
_SHORTEST_S = 0.001
"""A wait is no shorter, for none at all means something else to sockets."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply, in the shape of a completion that was not streamed."""

    response: dict[str, Any]
    seconds: float
    """From asking until the whole of it was here."""
    first_s: float | None
    """Until the first piece of a stream came; ``None`` where it came in one piece."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    """How long one request may take, in seconds."""

    silence_s: float
    total_s: float
    until: float
    """When ``total_s`` is over, by ``time.monotonic``."""

    @classmethod
    def of(cls, silence_s: float, total_s: float) -> _Bounds:
        return cls(silence_s, total_s, time.monotonic() + total_s)

    def wait_s(self) -> float:
        """Return how long may be waited now for whatever comes next."""
        return max(_SHORTEST_S, min(self.silence_s, self.until - time.monotonic()))


class Endpoint:
    """One model at one address; use it as a context manager, or close it."""

    def __init__(
        self,
        address: Address,
        key: str,
        *,
        timeout_s: float = 600,
        connect_s: float = 10,
        total_s: float | None = None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            address: where.
            key: sent as bearer token; empty where the server wants none.
            timeout_s: longest silence, before the first and between any two pieces.
            connect_s: longest wait for a connection.
            total_s: longest reply; by default ``LONGEST_TIMES`` times ``timeout_s``.

        Raises:
            Problem: the address is none, or the key cannot be one.
        """
        self.address = address
        self._bases = address.bases()
        self._key = Key(key)
        self._timeout_s, self._connect_s = timeout_s, connect_s
        self._total_s = total_s or timeout_s * LONGEST_TIMES
        self._opened: Client | None = None
        self._ends = True
        """Whether this server's streams end soon after their last event."""

    def __enter__(self) -> Endpoint:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; it may be called twice."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def ask(
        self,
        body: bytes,
        *,
        stream: bool,
        on_text: Callable[[str], None] | None = None,
        total_s: float | None = None,
    ) -> Answer:
        """Send one request and read its reply.

        Args:
            body: the request as JSON; ``stream`` in it says the same as the argument.
            stream: whether a stream is asked for; a server that answers otherwise is understood.
            on_text: is given what becomes visible of a stream, as it comes.
            total_s: longest reply to this request, where that is less than at other times. One
                that falls silent just before may take that long once more.

        Raises:
            ModelFailed: there is no reply; what the SDK or the network raised is its cause.
        """
        longest = self._total_s if total_s is None else min(self._total_s, total_s)
        if longest <= 0:
            text = f"{shown(self._bases[0])}: not asked, for no time is left"
            raise ModelFailed(Failure(Kind.TIMEOUT, text, final=True))
        bounds = _Bounds.of(self._timeout_s, longest)
        first: ModelFailed | None = None
        for base in self._bases:
            try:
                url = f"{base}/chat/completions"
                answer = self._ask(url, body, on_text if stream else None, bounds)
            except ModelFailed as error:
                absent = {Kind.NOT_FOUND} if first is None else {Kind.NOT_FOUND, Kind.NOT_A_REPLY}
                if error.failure.kind not in absent:
                    raise
                first = first or error
                continue
            self._bases = (base,)
            return answer
        if first is None:
            raise Problem(f"{shown(self.address.base_url)}: no address to ask")
        failure = with_names(first.failure, self.address.model, self.models())
        raise ModelFailed(failure) from first.__cause__

    def check(self) -> None:
        """Ask for the list of models only to see that the server is there and takes the key.

        Raises:
            ModelFailed: it answers otherwise; a server without such a list does so, too.
        """
        bounds = _Bounds.of(_LOOK_S, _LOOK_S)
        url = f"{self._bases[0]}/models"
        with closing(self._send(url, None, bounds)) as response:
            self._read(response, url, bounds)

    def models(self) -> list[dict[str, Any]]:
        """Return what the server lists at ``/models``; nothing where it does not say."""
        for base in self._bases:
            listed = self._look(f"{base}/models")
            rows = listed.get("data", listed.get("models")) if isinstance(listed, dict) else listed
            if isinstance(rows, list):
                return [row for row in rows if isinstance(row, dict)]
        return []

    def get(self, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return what one of the server's own routes says, as JSON; ``None`` where it is not there.

        Args:
            path: from the server's root, such as ``/props``; the base URL's version is left out.
            body: sent with POST where it is given.
        """
        content = None if body is None else json.dumps(body).encode()
        return self._look(f"{root_of(self._bases[0])}{path}", content)

    def _ask(
        self, url: str, body: bytes, on_text: Callable[[str], None] | None, bounds: _Bounds
    ) -> Answer:
        began = time.monotonic()
        reader = ReplyReader(on_text)
        from agent.brains.bodies import read_out

        with closing(self._send(url, body, bounds)) as response:
            pieces = self._pieces(response, url, bounds)
            try:
                reply = reader.read(pieces)
            except ModelFailed as error:
                failure = self._placed(error.failure, url)
                cause = self._key.cleaned(error.__cause__) if error.__cause__ else None
                raise ModelFailed(replace(failure, status=failure.status or 200)) from cause
            self._ends = self._ends and read_out(response)
        first_s = None if reader.first_at is None else reader.first_at - began
        return Answer(reply, time.monotonic() - began, first_s)

    def _look(self, url: str, content: bytes | None = None) -> Any:
        bounds = _Bounds.of(_LOOK_S, _LOOK_S)
        try:
            with closing(self._send(url, content, bounds)) as response:
                return json.loads(self._read(response, url, bounds))
        except (ModelFailed, ValueError, RecursionError):
            return None

    def _read(self, response: httpx2.Response, url: str, bounds: _Bounds) -> bytes:
        """Return a body; of one that is too long the beginning."""
        from agent.brains.bodies import beginning

        return beginning(self._pieces(response, url, bounds), _LARGEST_LOOK)

    def _send(self, url: str, content: bytes | None, bounds: _Bounds) -> httpx2.Response:
        """Return a response whose body is still to be read."""
        import httpx2
        import openai

        wait_s = bounds.wait_s()
        connect_s = min(self._connect_s, wait_s)
        try:
            return self._client().send(url, content, wait_s=wait_s, connect_s=connect_s)
        except openai.APIStatusError as error:
            body = self._key.clean(str(error.body))
            failure = classify(error.status_code, error.response.headers, body)
            raise ModelFailed(self._placed(failure, url)) from self._key.cleaned(error)
        except (openai.OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            raise self._broken(error, url, wait_s) from self._key.cleaned(error)

    def _pieces(self, response: httpx2.Response, url: str, bounds: _Bounds) -> Iterator[bytes]:
        from agent.brains import bodies

        wait_s = bounds.wait_s()
        try:
            yield from bodies.pieces(response, silence_s=wait_s, until=bounds.until)
        except bodies.TooLate:
            text = f"{shown(url)}: still not at its end after {bounds.total_s:g} s"
            raise ModelFailed(Failure(Kind.TIMEOUT, text)) from None
        except bodies.BROKEN as error:
            raise self._broken(error, url, wait_s) from self._key.cleaned(error)

    def _client(self) -> Client:
        if self._opened is None:
            from agent.brains.client import Client

            self._opened = Client(self.address, self._bases[0], self._key.sent)
        return self._opened

    def _broken(self, error: BaseException, url: str, timeout_s: float) -> ModelFailed:
        connect_s = min(self._connect_s, timeout_s)
        failure = of_exception(error, shown(url), timeout_s=timeout_s, connect_s=connect_s)
        return ModelFailed(replace(failure, text=self._key.clean(failure.text)))

    def _placed(self, failure: Failure, url: str) -> Failure:
        """Say of which model and where."""
        text = failure.text if shown(url) in failure.text else f"{shown(url)}: {failure.text}"
        return replace(failure, text=one_line(self._key.clean(text)))
