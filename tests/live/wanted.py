"""The replies of the small model that are worth keeping: what was asked, and what they show."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.live.replies import Reply

Message = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One of them."""

    about: str
    """What it shows, in a sentence."""
    messages: list[Message]
    shows: Callable[[Reply], bool]
    request: dict[str, Any] = field(default_factory=dict)
    calls: bool = False
    """Of the server whose chat template makes the model write calls."""


def _tool(name: str, says: str, **properties: str) -> dict[str, Any]:
    fields = {key: {"type": kind} for key, kind in properties.items()}
    parameters = {"type": "object", "properties": fields, "required": list(fields)}
    function = {"name": name, "description": says, "parameters": parameters}
    return {"type": "function", "function": function}


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def _written(name: str, **args: Any) -> Message:
    call = json.dumps({"name": name, "arguments": args})
    return _said(f"<tool_call>\n{call}\n</tool_call>")


def _called(*arguments: str, name: str = "port_owner") -> Message:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": text}}
        for n, text in enumerate(arguments, 1)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _status(status: int) -> Callable[[Reply], bool]:
    return lambda reply: reply.status == status


def _right(reply: Reply) -> bool:
    name, args = reply.written
    return (name, [*args]) in [("read_file", ["path"]), ("port_owner", ["port"])]


TOOLS = [
    _tool("read_file", "Read a text file.", path="string"),
    _tool("port_owner", "Say which process owns a TCP port.", port="integer"),
    _tool("give_up", "End the run: name the cause.", cause="string"),
]
NAMES = {"read_file", "port_owner", "give_up"}
NATIVE: dict[str, Any] = {"tools": TOOLS}
STREAM: dict[str, Any] = {"stream": True, "stream_options": {"include_usage": True}}
SYSTEM = {
    "role": "system",
    "content": "You bring up servers. You look, mend and check, with tools.",
}
WHO = _user("Which process owns port 8000?")
READ = _user("Read the file /var/log/server.log.")
WHY = _user("The server does not start. Find out why.")
END = _user("Port 8000 is held and nothing can be done. End the run.")
TOLD = {
    "role": "system",
    "content": "You act by calling functions only. The functions:\n<tools>\n"
    + "\n".join(json.dumps(tool["function"]) for tool in TOOLS)
    + "\n</tools>\nWrite each call as a JSON object within <tool_call></tool_call>.",
}
SHOWN = [
    TOLD,
    _user("Look whether port 22 is held."),
    _written("port_owner", port=22),
    _user('<tool_response>\n{"free": false, "owner": "sshd"}\n</tool_response>'),
    _written("read_file", path="/etc/ssh/sshd_config"),
    _user("<tool_response>\nPort 22\n</tool_response>"),
    _written("give_up", cause="port 22 belongs to sshd"),
]
"""With examples the model writes calls in its text; told in words alone, it hardly ever does."""
RESULT = {"role": "tool", "tool_call_id": "c1", "content": '{"free": false, "owner": "nginx"}'}
SECOND = {"role": "tool", "tool_call_id": "c2", "content": '{"free": true}'}

AS_IT_IS = {
    "text": Wanted(
        "Words, to their end.", [SYSTEM, WHO], lambda r: r.finish == "stop" and len(r.text) > 20
    ),
    "text_streamed": Wanted(
        "A stream without [DONE]; finish_reason and usage come in one chunk that has a choice.",
        [SYSTEM, WHO],
        lambda r: r.finish == "stop" and len(r.text) > 20,
        STREAM,
    ),
    "tools_not_shown": Wanted(
        "Tools are taken and not shown to the model: prompt_tokens are those without tools.",
        [SYSTEM, WHO],
        lambda r: r.status == 200 and bool(r.text),
        NATIVE | {"tool_choice": "required"},
    ),
    "only_told": Wanted(
        "Told to write calls, it writes words.", [TOLD, WHO], lambda r: bool(r.text)
    ),
    "code_instead": Wanted(
        "Asked to use a tool, it writes a program.",
        [TOLD, READ],
        lambda r: "```python" in r.text,
        {"max_tokens": 120},
    ),
    "repeats_itself": Wanted(
        "The same sentence until the limit.", [TOLD, WHY], lambda r: r.finish == "length"
    ),
    "nothing": Wanted(
        "It ends at once: the content is empty, one token was used.",
        [_user("Done."), _said("<|im_end|>"), _user("Done."), _said("<|im_end|>")],
        lambda r: r.status == 200 and not r.text,
    ),
    "call_in_text": Wanted("A right call in the text.", [*SHOWN, READ], _right),
    "call_in_text_streamed": Wanted("The same, streamed.", [*SHOWN, READ], _right, STREAM),
    "call_in_text_cut_off": Wanted(
        "A call in the text that the limit cut off.",
        [*SHOWN, READ],
        lambda r: r.finish == "length" and "<tool_call>" in r.text,
        {"max_tokens": 14},
    ),
    "wrong_argument_in_text": Wanted(
        "A known tool with an argument that it does not have.",
        [*SHOWN, WHO],
        lambda r: r.written[0] == "port_owner" and "port" not in r.written[1],
    ),
    "unknown_tool_in_text": Wanted(
        "A call of a tool that nobody declared.",
        [*SHOWN, END],
        lambda r: bool(r.written[0]) and r.written[0] not in NAMES,
    ),
    "invented_result": Wanted(
        "Instead of a call it writes what a tool would answer.",
        [*SHOWN, WHY],
        lambda r: r.text.startswith("<tool_response>"),
    ),
    "unknown_field": Wanted(
        "422 for a field that the OpenAI API does not have.", [WHO], _status(422), {"top_k": 1}
    ),
    "other_model": Wanted(
        "400 for another model's name.", [WHO], _status(400), {"model": "gpt-4o"}
    ),
    "broken_history": Wanted(
        "500 in plain text where arguments in the history are no JSON.",
        [WHO, _called('{"port": '), RESULT],
        _status(500),
    ),
    "error_streamed": Wanted(
        "200, then an error as a string inside the stream, which ends without a reason.",
        [WHO],
        lambda r: '"error"' in r.body,
        STREAM | {"max_tokens": 0},
    ),
}
CALLING = {
    "call": Wanted(
        "A call, as tool_calls.",
        [SYSTEM, READ],
        lambda r: r.names == ["read_file"] and r.calls[0][1].startswith('{"path"'),
        NATIVE,
        True,
    ),
    "arguments_are_a_list": Wanted(
        "A call whose arguments are a list.",
        [SYSTEM, READ],
        lambda r: bool(r.calls) and r.calls[0][1].startswith("["),
        NATIVE,
        True,
    ),
    "call_streamed": Wanted(
        "A call comes in one chunk, whole.",
        [SYSTEM, READ],
        lambda r: len(r.names) == 1 and not r.text,
        NATIVE | STREAM,
        True,
    ),
    "call_and_text_streamed": Wanted(
        "The call comes first, the text behind it.",
        [SYSTEM, WHO],
        lambda r: len(r.names) == 1 and bool(r.text.strip()),
        NATIVE | STREAM,
        True,
    ),
    "calls": Wanted(
        "Several calls in one reply.",
        [SYSTEM, WHO, _called('{"port": 8000}', '{"port": 8001}'), RESULT, SECOND],
        lambda r: len(r.names) > 1,
        NATIVE | {"max_tokens": 120},
        True,
    ),
    "call_after_result": Wanted(
        "A call after a call and its result.",
        [SYSTEM, WHO, _called('{"port": 8000}'), RESULT],
        lambda r: len(r.names) == 1,
        NATIVE,
        True,
    ),
    "unknown_tool": Wanted(
        "A call of a tool that nobody declared.",
        [SYSTEM, END],
        lambda r: bool(r.names) and not NAMES & {*r.names},
        NATIVE | {"temperature": 1.5, "top_p": 1.0},
        True,
    ),
    "broken_call": Wanted(
        "500 in plain text where the model's call is no JSON: the server's fault it is not.",
        [SYSTEM, WHY],
        _status(500),
        NATIVE,
        True,
    ),
    "broken_call_streamed": Wanted(
        "The same streamed: 200, then an error event that is itself no JSON, over several lines.",
        [SYSTEM, WHY],
        lambda r: "could not parse" in r.body,
        NATIVE | STREAM | {"max_tokens": 200},
        True,
    ),
    "call_cut_off_streamed": Wanted(
        "The limit cuts a call off, and nothing of it comes: no call, no text, only usage.",
        [SYSTEM, WHY],
        lambda r: r.finish == "length" and not r.names and not r.text,
        NATIVE | STREAM | {"max_tokens": 12},
        True,
    ),
}
WANTED = {**AS_IT_IS, **CALLING}
"""Name of the file, and what is to be in it."""
