"""The only road from a call to an observation: validate, send, sample, read, record.

Every call gets exactly one result. What was sent is on record, synced, before it is sent; what
came back is recorded as it came, so a replay can read it again with today's parsers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from agent.control import CONTROLS
from agent.events import CallEnded, CallQueued, CallSampled, CallStarted, ErrorMet
from agent.limits import time_left_s
from agent.run import Run
from agent.values import CallStatus, ToolCall
from tools import registry
from tools.base import Args, Risk, Subject, Tool, Watch
from tools.command import Command, Ending, Result
from tools.connectors.docker import exec_command, exec_result, require_begun
from tools.errors import BadReply, ConnectionFailed, ToolFailed, UnknownTool

CONTAINER_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]*"
SLOWER = 1.25
"""Each wait between two samples is so many times the one before, up to ``SLOWEST_S``."""
SLOWEST_S = 5.0
STARTS_JOBS = frozenset({"start_job", "start_server"})
"""Changes that are claimed on the host by the call's id: sent again, they do nothing more."""
AWAY_S = (1.0, 2.0, 4.0, 8.0, 15.0, 15.0, 15.0)
"""How long a host that was lost is waited for, before each time that it is asked again."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A call whose tool and arguments are known to be right."""

    call: ToolCall
    tool: Tool[Any, Any]
    args: Args
    risk: Risk
    touches: tuple[Subject, ...]
    command: Command | None


class Invalid(Exception):
    """There is no such tool, or its arguments are wrong; the message is for whoever asked."""


def prepare(run: Run, call: ToolCall) -> Prepared:
    """Check a call and build its command.

    Raises:
        Invalid: the tool or its arguments are wrong, or the target is not part of the goal.
    """
    try:
        tool: Any = CONTROLS.get(call.tool) or registry.find(call.tool)
    except UnknownTool as error:
        raise Invalid(str(error)) from error
    try:
        args = tool.args_type.model_validate(call.args)
    except ValidationError as error:
        lines = [f"{'.'.join(map(str, e['loc'])) or 'args'}: {e['msg']}" for e in error.errors()]
        raise Invalid(f"{call.tool}: {'; '.join(lines)}") from error
    full = call.model_copy(update={"args": args.model_dump(mode="json")})
    command = None
    if call.tool not in CONTROLS:
        command = _placed(run, call, tool.command(args, run.context(call.id, call.target)))
    return Prepared(full, tool, args, tool.risk_of(args), tool.subjects(args), command)


def _placed(run: Run, call: ToolCall, command: Command) -> Command:
    """Return the command as the host gets it: ``HOST/CONTAINER`` is inside a running container.

    Raises:
        Invalid: the target is no host of the goal, or the command is one for the host itself.
    """
    host, _, container = call.target.partition("/")
    if host not in run.connectors:
        known = ", ".join(sorted(run.connectors))
        raise Invalid(f"there is no target {call.target}; known: {known}")
    if not container:
        return command
    if not re.fullmatch(CONTAINER_NAME, container, re.ASCII):
        raise Invalid(f"{call.target}: what follows the slash is no container's name")
    if command.via != "process":
        raise Invalid(f"{call.tool} is for the host {host} itself, not for a container there")
    return exec_command(container, command)


def queue(run: Run, ready: Prepared, origin: str) -> None:
    """Record that a call is taken up, once."""
    record = run.view.calls.get(ready.call.id)
    if record is not None and record.queued >= 0:
        return
    text = ready.command.text if ready.command else ready.call.tool
    event = CallQueued.model_validate(
        {
            "call": ready.call,
            "origin": origin,
            "risk": ready.risk,
            "touches": ready.touches,
            "command": text,
        }
    )
    run.record(event)


def look(run: Run, call: ToolCall, origin: str) -> CallEnded:
    """Run a READ of the code's own (survey, verify, a fix's check), which needs no gate.

    What has a result already, because the run broke off after it, is not asked again.
    """
    record = run.view.calls.get(call.id)
    if record is not None and record.status is not None:
        said = closing(call, record.status, record.message, record.observation)
        return said.model_copy(update={"seq": record.ended})
    ready = prepare(run, call)
    queue(run, ready, origin)
    return execute(run, ready)


def closing(
    call: ToolCall,
    status: CallStatus,
    message: str = "",
    observation: dict[str, Any] | None = None,
) -> CallEnded:
    """Build the one result of a call that sent nothing."""
    return CallEnded(
        call_id=call.id,
        tool=call.tool,
        status=status,
        message=message,
        observation=observation or {},
    )


def end(
    run: Run,
    call: ToolCall,
    status: CallStatus,
    message: str = "",
    observation: dict[str, Any] | None = None,
) -> CallEnded:
    """Record the one result of a call that sent nothing."""
    return _as_ended(run.record(closing(call, status, message, observation))[-1])


def execute(run: Run, ready: Prepared) -> CallEnded:
    """Send the command, sample it until it is decided, read and record the result.

    Raises:
        ConnectionFailed: the target cannot be reached; the call is on record as unknown.
    """
    if ready.command is None:
        raise ValueError(f"{ready.call.tool} is a control tool and sends no command")
    started = run.record(CallStarted(call_id=ready.call.id, argv=ready.command.argv))[-1]
    try:
        return _sample(run, ready, ready.command, started.t)
    except ConnectionFailed as error:
        ended = CallEnded(
            call_id=ready.call.id,
            tool=ready.call.tool,
            status=CallStatus.UNKNOWN,
            message=str(error),
        )
        run.record(ended, ErrorMet(text=str(error), where=ready.call.target))
        raise


def _sample(run: Run, ready: Prepared, command: Command, began: float) -> CallEnded:
    call, tool = ready.call, ready.tool
    results: list[Result] = []
    wait = tool.interval_s if isinstance(tool, Watch) else 0.0
    lost = 0
    while True:
        result = _send(run, ready, command, began=not results)
        sample = CallSampled(call_id=call.id, n=len(results) + 1, argv=command.argv, result=result)
        if result.ending is Ending.LOST:
            _go_on(run, ready, sample, lost)
            results.append(result)
            lost += 1
            continue
        results.append(result)
        lost = 0
        ended = _read(run, ready, results)
        if tool.renews_login:
            run.connectors[call.target.partition("/")[0]].close()  # it opens again by itself
        if not isinstance(tool, Watch) or _decided(tool, ready, ended):
            return _as_ended(_close(run, sample, ended, began))
        written = run.record(sample)[-1]
        run.tell(call.id, "progress", _progress(ended))
        lasted = written.t - began
        left = min(tool.limit_s(ready.args) - lasted, time_left_s(run.view))
        if left <= 0:
            return _as_ended(run.record(_cut_short(tool, ended, lasted))[-1])
        run.sleep(min(wait, left))
        wait = min(wait * SLOWER, SLOWEST_S)


def _send(run: Run, ready: Prepared, command: Command, *, began: bool) -> Result:
    """Send the command; a host that has answered this call before may be away for a while."""
    call = ready.call

    def on_output(stream: str, text: str) -> None:
        run.tell(call.id, "output", text)

    try:
        host, _, container = call.target.partition("/")
        result = run.connectors[host].run(command, on_output)
        return exec_result(command, result) if container else result
    except ConnectionFailed as error:
        if began or error.final:
            raise
        return Result(Ending.LOST, stderr=error.reason)


def _go_on(run: Run, ready: Prepared, sample: CallSampled, lost: int) -> None:
    """Wait for a host that was lost, where the same command may be sent again.

    Looks may, and so may the start of a job: its folder is claimed by the call's id, so the answer
    is that of the one job. Of anything else the outcome is not known.

    Raises:
        ConnectionFailed: it may not be sent again, or the host stays away.
    """
    call = ready.call
    again = ready.risk <= Risk.READ or call.tool in STARTS_JOBS
    if not again or lost >= len(AWAY_S) or time_left_s(run.view) <= 0:
        reason = sample.result.stderr.strip() or "the connection broke"
        raise ConnectionFailed(call.target, reason)
    run.record(sample)
    run.tell(call.id, "progress", f"connection lost; asking again in {AWAY_S[lost]:.0f} s")
    run.sleep(AWAY_S[lost])


def _read(run: Run, ready: Prepared, results: list[Result]) -> CallEnded:
    """Turn raw results into the call's end; a tool that says no is a result, not an exception."""
    call, tool, last = ready.call, ready.tool, results[-1]
    context = run.context(call.id)
    try:
        if isinstance(tool, Watch):
            seen = tool.parse_all(ready.args, context, results)
        else:
            if container := call.target.partition("/")[2]:
                require_begun(container, last)
            seen = tool.parse(ready.args, context, last)
    except ToolFailed as error:
        status = CallStatus.FAILED
        if last.ending is Ending.TIMED_OUT:
            status = CallStatus.TIMED_OUT
        elif isinstance(error, BadReply) and ready.risk > Risk.READ:
            status = CallStatus.UNKNOWN
        return CallEnded(call_id=call.id, tool=call.tool, status=status, message=str(error))
    return CallEnded(
        call_id=call.id,
        tool=call.tool,
        status=CallStatus.OK,
        observation=seen.model_dump(mode="json"),
        message=seen.headline(),
    )


def _decided(tool: Watch[Any, Any], ready: Prepared, ended: CallEnded) -> bool:
    if ended.status is not CallStatus.OK:
        return True
    return tool.finished(ready.args, tool.observation_type.model_validate(ended.observation))


def _close(run: Run, sample: CallSampled, ended: CallEnded, began: float) -> Any:
    """Record the last sample and the end in one go; earlier samples and waits count too."""
    earlier = run.view.t - began if sample.n > 1 else 0.0
    return run.record(sample, _timed(ended, earlier + sample.result.duration_s))[-1]


def _cut_short(tool: Watch[Any, Any], ended: CallEnded, seconds: float) -> CallEnded:
    """Return the end of a watch that nothing has decided."""
    seen = tool.cut_short(tool.observation_type.model_validate(ended.observation))
    said = {"observation": seen.model_dump(mode="json"), "message": seen.headline()}
    return _timed(ended.model_copy(update=said), seconds)


def _timed(ended: CallEnded, seconds: float) -> CallEnded:
    return ended.model_copy(update={"duration_s": round(seconds, 3)})


def _progress(ended: CallEnded) -> str:
    return str(ended.observation.get("progress") or ended.message)


def _as_ended(event: Any) -> CallEnded:
    if not isinstance(event, CallEnded):
        raise TypeError(f"a {event.type} event stands where a call's end was written")
    return event
