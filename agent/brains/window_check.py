"""Checks the true window with one long request: some servers cut to less without a word."""

from __future__ import annotations

import secrets

from agent.brains.exam import Exam
from agent.brains.failures import Kind, ModelFailed
from agent.brains.selftest_texts import load
from agent.brains.window import stated_window

SMALL = 16_000
"""Tokens of a window below which a note says that runs hardly fit."""
FILLER_TOKENS = 5_500
"""Of the request: more than the 4,096 that Ollama cuts to by default."""
REPLY_TOKENS = 512
SHORTEST = 300
"""Tokens of filler below which a long request says nothing."""
CUT, DOUBTFUL = 0.8, 0.95
"""A count below this share of what was to be expected means that something was left out; up to the
second one it does where the model does not know the first word either."""
PLAIN = 4.8
"""Characters of plain English that make one token, where that was not measured."""
_STOPS = (Kind.KEY, Kind.NOT_FOUND, Kind.QUOTA, Kind.NETWORK)


def check_window(exam: Exam, ratio: float) -> None:
    """Find the true window: what the server says, then what it counts of a long request.

    Args:
        exam: what was found so far; the window and notes are added to it.
        ratio: characters of plain text that make one token; 0 where nothing was counted.

    Raises:
        ModelFailed: the key, the model, the account or the network does not allow to ask.
    """
    stated = stated_window(exam.endpoint)
    known = stated.tokens
    filler = FILLER_TOKENS
    if known or stated.at_most:
        filler = min(filler, int(0.8 * ((known or stated.at_most) - REPLY_TOKENS)))
    exam.found(context_tokens=known or stated.at_most)
    if filler > SHORTEST:
        _long_request(exam, filler, ratio or PLAIN)
    if 0 < exam.dialect.context_tokens < SMALL:
        exam.found(
            f"the model's window is {exam.dialect.context_tokens:,} tokens, which is little: runs "
            f"need about {SMALL:,}; a server of one's own can often be started with more"
        )


def _long_request(exam: Exam, filler: int, ratio: float) -> None:
    texts = load()
    word = f"kestrel-{secrets.randbelow(9000) + 1000}"  # new each time: no cache holds the rest
    notes = texts.notes(int(filler * ratio))
    asked = texts.window.replace("$word", word).replace("$filler", notes)
    try:
        seen = exam.ask(lambda: [{"role": "user", "content": asked}], limit=REPLY_TOKENS)
    except ModelFailed as error:
        if error.failure.kind in _STOPS:
            raise
        _overflow(exam, error, filler)
        return
    counted, expected = seen.parsed.prompt_tokens, seen.characters / ratio
    lost = word not in seen.parsed.text and not seen.parsed.cut_off
    if counted and counted < (DOUBTFUL if lost else CUT) * expected:
        exam.found(
            f"the server cuts long requests without a word: of about {expected:,.0f} tokens it "
            f"read {counted:,}; give the server a longer context",
            context_tokens=counted,
        )
    elif lost and not counted:
        exam.found(
            "the server may cut long requests without a word: the model did not know the first "
            f"word of about {expected:,.0f} tokens"
        )


def _overflow(exam: Exam, error: ModelFailed, filler: int) -> None:
    failure = error.failure
    if failure.kind is Kind.OVERFLOW:
        window = failure.limit_tokens or int(0.75 * filler)
        exam.found(context_tokens=window)
    else:
        exam.lasting = False
        exam.found(f"a long request failed, so the window was not checked: {failure.text}")
