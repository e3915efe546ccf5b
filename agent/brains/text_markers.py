"""The markers with which models open a tool call in text, and who reads what follows them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.brains.text_elements import read_elements
from agent.brains.text_formats import read_braces, read_fence, read_named, tag_reader
from agent.brains.text_found import NAME, PREFIX, Found, Reader


@dataclass(frozen=True, slots=True)
class Format:
    """One marker."""

    name: str
    """The family, for records and hints."""
    marker: re.Pattern[str]
    """Finds it; begins with a plain character, for speed."""
    reader: Reader
    head: re.Pattern[str]
    """The marker with all that comes before the arguments, such as the tool's name."""
    lead: re.Pattern[str] | None = None
    """What belongs to the call and stands before the marker."""
    word: str = ""
    """For a marker that begins with a letter: a part of it, so that it is seldom looked for."""

    def stands_at(self, text: str, marker: re.Match[str]) -> bool:
        """Whether a marker that was found is this one."""
        found = self.marker.match(text, marker.start())
        return found is not None and found.end() == marker.end()

    def start(self, text: str, at: int, since: int) -> int:
        """Return where the call with its marker at ``at`` begins, not before ``since``."""
        first = max(since, at - _LONGEST_LEAD)
        before = self.lead.search(text[first:at]) if self.lead else None
        return first + before.start() if before else at

    def attempts(self, text: str, start: int, end: int) -> bool:
        """Whether a marker that no call could be read from looks like an attempt at one."""
        if self.reader is read_fence:
            return False
        named = "name" in self.head.groupindex
        return bool(self.head.match(text, start) if named else _BEGUN.match(text, end))

    def read(self, text: str, start: int) -> Found | None:
        """Read the calls that begin at ``start``."""
        opener = self.head.match(text, start)
        return self.reader(text, opener) if opener else None


def _format(
    name: str, marker: str, reader: Reader, head: str = "", lead: str = "", word: str = ""
) -> Format:
    finder, whole = (re.compile(text, re.MULTILINE) for text in (marker, head or marker))
    before = re.compile(rf"(?:{lead})\Z") if lead else None
    return Format(name, finder, reader, whole, before, word)


_LONGEST_LEAD = 160
_BEGUN = re.compile(r"\s{0,9}(?:```[a-z_]{0,12}\s{0,3})?(?:[{\[]|[\w.:-]{1,100}\s{0,3}[<({\[\n])")
_S = r"\s{0,3}"
_SEP = r"<[|\uff5c]tool[_▁]sep[|\uff5c]>"
_NAMED = rf"(?P<name>{NAME})"
_HARMONY = r"(?:<\|start\|>|<\|channel\|>|assistant|commentary|analysis|\s){0,9}"

FORMATS: tuple[Format, ...] = (
    _format("hermes", r"<tool_call>", tag_reader("</tool_call>")),
    _format("hermes", r"<tool_calls>", tag_reader("</tool_calls>")),
    _format("hermes", r"<function_call>", tag_reader("</function_call>")),
    _format("olmo", r"<function_calls>", tag_reader("</function_calls>")),
    _format("nemotron", r"<TOOLCALL>", tag_reader("</TOOLCALL>")),
    _format("granite", r"<\|tool_call\|>", tag_reader("<|/tool_call|>")),
    _format("phi", r"functools(?=\[)", tag_reader("<|end|>"), word="functools["),
    _format("lfm2", r"<\|tool_call_start\|>", tag_reader("<|tool_call_end|>")),
    _format("llama", r"<\|python_(?:tag|start)\|>", tag_reader("<|python_end|>")),
    _format("internlm", r"<\|plugin\|>", tag_reader("<|action_end|>")),
    _format("command", r"<\|START_ACTION\|>", tag_reader("<|END_ACTION|>")),
    _format(
        "mistral",
        rf"\[TOOL_CALLS\](?={_S}[A-Za-z_])",
        read_named,
        rf"\[TOOL_CALLS\]{_S}{_NAMED}{_S}(?:\[CALL_ID\][\w-]{{1,64}})?(?:\[ARGS\])?{_S}",
    ),
    _format("mistral", r"\[TOOL_CALLS\]", tag_reader("[/TOOL_CALLS]")),
    _format(
        "kimi",
        r"<\|tool_call_begin\|>",
        read_named,
        rf"<\|tool_call_begin\|>{_S}{_NAMED}{_S}<\|tool_call_argument_begin\|>{_S}",
    ),
    _format(  # without its first token, as some servers leave it
        "kimi",
        r"<\|tool_call_argument_begin\|>",
        read_named,
        rf"{_NAMED}<\|tool_call_argument_begin\|>{_S}",
        lead=r"(?<![\w.-])[\w.-]{1,100}:\d{1,6}",
    ),
    _format(
        "deepseek",
        r"<[|\uff5c]tool▁call▁begin[|\uff5c]>",
        read_named,
        rf"<[|\uff5c]tool▁call▁begin[|\uff5c]>{_S}(?:function{_S}{_SEP})?{_S}{_NAMED}{_S}"
        rf"(?:{_SEP})?{_S}(?:```(?:json)?{_S})?",
    ),
    _format(
        "harmony",
        r"to=functions\.",
        read_named,
        rf"{_HARMONY}to=functions\.{_NAMED}"
        rf"(?:{_S}(?:<\|(?:channel|constrain|message)\|>|commentary|analysis|json|code)){{0,6}}{_S}",
        lead=r"(?:<\|start\|>|<\|channel\|>|assistant|commentary|analysis|\s){1,9}",
        word="to=functions.",
    ),
    _format(
        "gemma",
        r"<\|tool_call>|<start_function_call>",
        read_braces,
        rf"(?:<\|tool_call>|<start_function_call>){_S}call:{_S}{_NAMED}{_S}(?=\{{)",
    ),
    _format(
        "function",
        r"<function(?=[\s=])",
        read_elements,
        rf"<function(?:{_S}={_S}|\s{{1,3}}name{_S}={_S})[\"']?{_NAMED}[\"']?{_S}/?>",
    ),
    _format(
        "invoke",
        rf"<{PREFIX}invoke(?=\s)",
        read_elements,
        rf"<{PREFIX}invoke\s{{1,3}}name{_S}={_S}[\"']{_NAMED}[\"']{_S}/?>",
    ),
    _format(
        "fenced",
        r"```(?:json[c5]?|tool_calls?|tool_code|tool)?[ \t]{0,3}\r?$",
        read_fence,
    ),
)
"""All markers; where two match at the same place, the first one here is taken."""

LEFT_OVER = re.compile(
    rf"</?{PREFIX}(?:tool_calls?|function_calls?|function|TOOLCALL|tools|invoke)>"
    r"|<[|\uff5c][/a-z_▁]{0,12}(?:tool[_▁]calls?|python|action)[a-z_▁]{0,20}[|\uff5c]>|<tool_call\|>"
    r"|<\|(?:call|end|start|return|channel|message|constrain|im_end|eot_id|eom_id|plugin)\|>"
    r"|<\uff5c(?:end▁of▁sentence|DSML)\uff5c>|\[/?TOOL_CALLS\]|<(?:end|START)_(?:function_call|ACTION)>"
    r"|<\|(?:START|END)_ACTION\|>|```[a-z_]{0,12}\s{0,9}```"
)
"""What is left of markers once their calls are taken out."""
