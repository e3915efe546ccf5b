"""What refusals mean: pure, with vendors' real words."""

from __future__ import annotations

import re
import time

import pytest

from agent.brains.error_bodies import ErrorBody
from agent.brains.failures import Kind, classify
from agent.brains.vendor_words import Example, Words, load

EXAMPLES = [
    pytest.param(words, example, id=f"{words.id}-{number}")
    for words in load().words
    for number, example in enumerate(words.examples)
]


# Words of vendors


@pytest.mark.parametrize(("words", "example"), EXAMPLES)
def test_each_reply_is_found_by_its_own_words(words: Words, example: Example) -> None:
    body = ErrorBody(example.body)
    status = example.status or body.status()
    found = list(load().all_found(status, body.said))
    assert found[0].words.id == words.id
    assert {other.words.kind for other in found} == {words.kind}
    failure = classify(example.status, {}, example.body)
    assert failure.kind is Kind(words.kind)
    assert failure.limit_tokens == example.limit
    assert failure.parameter == example.parameter
    assert failure.retry_after_s == example.retry
    assert 10 < len(failure.text) <= 600


@pytest.mark.parametrize("words", load().words, ids=lambda words: words.id)
def test_all_words_are_needed_and_have_a_source(words: Words) -> None:
    assert words.source
    assert words.of
    said = [ErrorBody(example.body).said for example in words.examples]
    unseen = [regex.pattern for regex in words.regexes if not any(map(regex.search, said))]
    assert not unseen, "each pattern needs a real text"


@pytest.mark.parametrize(
    ("vendor", "kind"),
    [
        ("OpenAI", Kind.OVERFLOW),
        ("vLLM", Kind.OVERFLOW),
        ("SGLang", Kind.OVERFLOW),
        ("llama.cpp", Kind.OVERFLOW),
        ("Ollama", Kind.OVERFLOW),
        ("LM Studio", Kind.OVERFLOW),
        ("Mistral", Kind.OVERFLOW),
        ("TGI", Kind.OVERFLOW),
        ("Gemini", Kind.OVERFLOW),
        ("Anthropic", Kind.OVERFLOW),
        ("DeepSeek", Kind.OVERFLOW),
        ("OpenRouter", Kind.OVERFLOW),
        ("Azure OpenAI", Kind.OVERFLOW),
    ],
)
def test_the_overflow_of_each_server_is_known(vendor: str, kind: Kind) -> None:
    assert any(vendor in words.of for words in load().words if words.kind == kind.value)


def test_no_example_holds_anybodys_name() -> None:
    for words in load().words:
        for example in words.examples:
            assert not re.search(r"org[-_](?!x\b)\w{4}|sk-(?!nokey)\w{8}", example.body)


# Statuses


@pytest.mark.parametrize(
    ("status", "kind", "again"),
    [
        (301, Kind.NOT_FOUND, False),
        (400, Kind.REQUEST, False),
        (401, Kind.KEY, False),
        (402, Kind.QUOTA, False),
        (403, Kind.KEY, False),
        (404, Kind.NOT_FOUND, False),
        (405, Kind.NOT_FOUND, False),
        (408, Kind.TIMEOUT, True),
        (413, Kind.OVERFLOW, False),
        (418, Kind.REQUEST, False),
        (422, Kind.REQUEST, False),
        (429, Kind.RATE, True),
        (500, Kind.SERVER, True),
        (502, Kind.SERVER, True),
        (503, Kind.SERVER, True),
        (504, Kind.TIMEOUT, True),
        (529, Kind.SERVER, True),
        (None, Kind.SERVER, True),
    ],
)
@pytest.mark.parametrize(
    "body", ["", "no", '{"error": {"message": "no"}}', '{"detail": "no"}', "<p>no</p>"]
)
def test_a_status_alone_tells_the_kind(
    status: int | None, kind: Kind, again: bool, body: str
) -> None:
    failure = classify(status, {}, body)
    assert (failure.kind, failure.retryable, failure.status) == (kind, again, status)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ('{"error": {"message": "Overloaded"}}', "HTTP 500: Overloaded"),
        ('{"error": "no such thing"}', "HTTP 500: no such thing"),
        ('{"message": "gone"}', "HTTP 500: gone"),
        ('{"detail": [{"loc": ["body", "n"], "msg": "bad"}]}', "HTTP 500: body.n: bad"),
        ('[{"error": {"code": 500, "message": "Internal"}}]', "HTTP 500: Internal"),
        ("<html><head><title>502 Bad Gateway</title></head>", "a web page, '502 Bad Gateway'"),
        ("upstream\x1b[31m broke\r\n\x00off\u202e", r"HTTP 500: upstream broke \x00off\u202e"),
        ("", "HTTP 500"),
        ("[" * 5000, "HTTP 500: [[["),
        ('{"error": null}', "HTTP 500"),
        ("x" * 10**6, "HTTP 500: xxx"),
    ],
)
def test_a_failure_is_one_line_for_people(body: str, words: str) -> None:
    text = classify(500, {}, body).text
    assert words in text
    assert len(text) <= 600
    assert text.isprintable()


@pytest.mark.parametrize(
    "filler", ["x", "1", ".", "messages.", "\u00e9", "x ", " ", "\n", "'", "[", "/"]
)
@pytest.mark.parametrize("status", [400, 429, 500, None])
def test_long_bodies_are_read_in_time(filler: str, status: int | None) -> None:
    began = time.monotonic()
    failure = classify(status, {}, f"Unknown parameter: 'stream_options'. {filler * 100_000}")
    assert time.monotonic() - began < 3
    assert failure.parameter == ("stream_options" if status == 400 else "")


def test_a_redirect_names_where_it_points() -> None:
    text = classify(308, {"location": "https://api.example/v1/chat"}, "").text
    assert "https://api.example/v1/chat" in text


def test_an_error_in_a_stream_has_the_status_that_it_names() -> None:
    assert classify(None, {}, '{"error": {"code": 502, "message": "gone"}}').status == 502
    assert classify(200, {}, '{"error": {"code": "429", "message": "slow"}}').kind is Kind.RATE
    assert classify(200, {}, '{"error": {"code": "x", "message": "no"}}').kind is Kind.SERVER


@pytest.mark.parametrize(
    ("named", "parameter"),
    [
        ("stream_options.include_usage", "stream_options"),
        ("messages[0].role", "system"),
        ("messages.2.assistant.reasoning_content", "reasoning_content"),
        ("messages[3].tool_calls[0].function.arguments", "arguments"),
        ("tools[0].function.parameters", "tools"),
        ("body.top_logprobs", "top_logprobs"),
        ("messages", "messages"),
    ],
)
def test_the_field_complained_of_is_read_from_param(named: str, parameter: str) -> None:
    body = f'{{"error": {{"message": "no", "param": "{named}"}}}}'
    assert classify(400, {}, body).parameter == parameter


def test_a_field_that_is_only_mentioned_is_found() -> None:
    said = '{"error": {"message": "I do not like `stream_options` at all"}}'
    assert classify(422, {}, said).parameter == "stream_options"
    assert classify(400, {}, '{"error": {"message": "I do not like it"}}').parameter == ""
