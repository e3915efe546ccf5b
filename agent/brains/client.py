"""Sends requests through the SDK's client, the second to an address without building it anew.

It loads the SDK and its HTTP library, so it is itself loaded only once a model is asked.
"""

from __future__ import annotations

from typing import Any

import httpx2
import openai

from agent.brains.address import Address, is_loopback
from agent.brains.bodies import refuse


class Client:
    """One connection pool to one server, which is asked directly where it is this machine."""

    def __init__(self, address: Address, base_url: str, key: str) -> None:
        """Connect to nothing yet.

        Args:
            address: whose host and query are used.
            base_url: one of its bases.
            key: sent as bearer token.
        """
        host = address.host()
        bracketed = f"[{host}]" if ":" in host else host
        direct = {f"all://{bracketed}": None} if is_loopback(host) else None
        self._http = openai.DefaultHttpxClient(
            follow_redirects=False, mounts=direct, event_hooks={"response": [refuse]}
        )
        self._sdk = openai.OpenAI(
            api_key=key,
            base_url=base_url,
            default_query=address.query(),
            max_retries=0,
            http_client=self._http,
        )
        self._built: dict[str, tuple[httpx2.URL, httpx2.Headers]] = {}
        """What the SDK made of the first body that went to an address."""

    def close(self) -> None:
        """Close all connections."""
        self._sdk.close()

    def send(
        self, url: str, content: bytes | None, *, wait_s: float, connect_s: float
    ) -> httpx2.Response:
        """Return a response whose body is still to be read.

        Args:
            url: where to.
            content: JSON that is posted; ``None`` to get.
            wait_s: longest silence.
            connect_s: longest wait for a connection.

        Raises:
            openai.OpenAIError, httpx2.HTTPError, httpx2.InvalidURL, OSError: there is none, or it
                is a refusal.
        """
        timeout = openai.Timeout(wait_s, connect=connect_s)
        if content is not None and url in self._built:
            whole, headers = self._built[url]
            request = self._http.build_request(
                "POST", whole, content=content, headers=headers, timeout=timeout
            )
            return self._http.send(request, stream=True)
        response = self._first(url, content, timeout)
        if content is not None:
            headers = response.request.headers.copy()
            del headers["Content-Length"]
            self._built[url] = response.request.url, headers
        return response

    def _first(self, url: str, content: bytes | None, timeout: openai.Timeout) -> httpx2.Response:
        options: Any = {"timeout": timeout, "headers": {"Content-Type": "application/json"}}
        how: dict[str, Any] = {"content": content} if content is not None else {}
        send = self._sdk.post if content is not None else self._sdk.get
        stream: openai.Stream[object] = send(
            url,
            cast_to=object,
            options=options,
            stream=True,
            stream_cls=openai.Stream[object],
            **how,
        )
        return stream.response
