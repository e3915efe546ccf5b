"""What replies cost, by what servers count or else by lengths; and whether they read it all."""

from __future__ import annotations

from agent.brains.dialects import Parsed
from agent.settings import Price
from agent.values import Usage

CUT_RATIO = 9.0
"""At more bytes a token than this, a server has not read all that it was sent."""
STUCK_RATIO = 1.25
"""So much above what a token was before it is, where a longer request counted no more tokens."""


def cost(price: Price, usage: Usage) -> float:
    """Return what that much usage costs, in USD."""
    cached = price.input if price.cached is None else price.cached
    fresh = max(0, usage.prompt_tokens - usage.cached_tokens)
    paid = fresh * price.input + usage.cached_tokens * cached
    return 1e-6 * (paid + usage.completion_tokens * price.output)


class Meter:
    """Counts tokens and money; it learns from each reply how many bytes make a token."""

    def __init__(self, bytes_per_token: float, price: Price | None) -> None:
        self.bytes_per_token = bytes_per_token
        self._price = price
        self._counted = 0
        self._sent = 0

    def usage(self, parsed: Parsed, body: bytes) -> Usage:
        """Return what a reply cost; an estimate where the server does not tell."""
        if not parsed.prompt_tokens:
            said = len(parsed.text) + len(parsed.reasoning)
            said += sum(len(str(call.args)) for call in parsed.calls)
            return self.estimate(body, said)
        return self._priced(
            Usage(
                prompt_tokens=parsed.prompt_tokens,
                completion_tokens=parsed.completion_tokens,
                cached_tokens=parsed.cached_tokens,
            )
        )

    def estimate(self, body: bytes, said: int) -> Usage:
        """Reckon usage from lengths: of a request in bytes, of a reply in characters."""
        return self._priced(
            Usage(
                prompt_tokens=int(len(body) / self.bytes_per_token),
                completion_tokens=int(said / self.bytes_per_token),
                estimated=True,
            )
        )

    def cut(self, parsed: Parsed, body: bytes) -> str:
        """Say that a part of the request was dropped without a word; empty where it was not.

        Some servers keep to a short context by leaving out the oldest messages, and answer 200.
        Then the count of tokens stays behind what was sent.
        """
        count, sent = parsed.prompt_tokens, len(body)
        if not count:
            return ""
        ratio = sent / max(count, parsed.cached_tokens)
        stuck = sent > self._sent and count <= self._counted
        if ratio >= CUT_RATIO or (stuck and ratio > STUCK_RATIO * self.bytes_per_token):
            return (
                f"the server read only {count:,} tokens of a request of {sent:,} characters: its "
                "context is too short, or is set too short"
            )
        if not stuck:  # else it may be cut already: nothing is learnt from that
            self.bytes_per_token, self._counted, self._sent = ratio, count, sent
        return ""

    def _priced(self, usage: Usage) -> Usage:
        if self._price is None:
            return usage
        return usage.model_copy(update={"cost_usd": cost(self._price, usage)})
