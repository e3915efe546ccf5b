"""What a broken connection means, in words for people; no bytes of the reply are needed for it."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Iterator

from agent.brains.failures import Failure, Kind, one_line


def of_exception(
    error: BaseException, where: str, *, timeout_s: float, connect_s: float
) -> Failure:
    """Return the failure that an exception of the SDK or of the network stands for.

    Args:
        error: whatever was raised; its causes are looked at too.
        where: the address, for people.
        timeout_s: how long was waited for the next piece.
        connect_s: how long was waited for a connection.
    """
    chain = list(_chain(error))
    names = {type(item).__name__ for item in chain}
    if "ConnectTimeout" in names:
        return _failure(Kind.TIMEOUT, f"{where}: no connection within {connect_s:g} s")
    if any(name.endswith(("Timeout", "TimeoutError")) for name in names):
        return _failure(Kind.TIMEOUT, f"{where}: nothing came for {timeout_s:g} s")
    for item in chain:
        known = _known(item, where)
        if known is not None:
            return known
    words = next((str(item) for item in reversed(chain) if str(item)), type(error).__name__)
    return _failure(Kind.NETWORK, f"{where}: the connection broke: {words}")


def _known(error: BaseException, where: str) -> Failure | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        why = getattr(error, "verify_message", "") or error
        text = f"{where}: its certificate is not trusted: {why}; name its CA with SSL_CERT_FILE"
        return _failure(Kind.NETWORK, text, final=True)
    if isinstance(error, ssl.SSLError) and not isinstance(error, _BROKEN_OFF):
        text = f"{where}: TLS does not work there: {error.reason or error}; is it http or https?"
        return _failure(Kind.NETWORK, text, final=True)
    if isinstance(error, socket.gaierror):
        text = f"{where}: no such host: {error.strerror}; check the base URL"
        return _failure(Kind.NETWORK, text, final=error.errno != socket.EAI_AGAIN)
    if isinstance(error, OSError) and error.errno == errno.ECONNREFUSED:
        return _failure(Kind.NETWORK, f"nothing listens at {where}: is the server started?")
    return None


_BROKEN_OFF = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _failure(kind: Kind, text: str, *, final: bool = False) -> Failure:
    return Failure(kind=kind, text=one_line(text), final=final)
