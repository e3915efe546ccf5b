"""Asks hosts for their facts: one connection and one round trip each, all at once."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agent.connect import connector_to
from agent.doctor.parallel import Look, in_parallel
from agent.goal_parts import Host
from agent.inventory_parts import Member
from tools.command import Command, Result
from tools.connectors import ssh_config
from tools.connectors.base import Connector
from tools.errors import ConnectionFailed, ToolFailed
from tools.machine import LIMIT_S, MachineFacts, machine_command, read_machine
from tools.reach import Place, Tried, reach_command, read_reach

CLOSE_S = 2.0
"""How long is waited for connections to be closed."""
REACH_S = 20.0
"""How long a host may take to try the addresses of the others."""


def ssh_port(member: Member, config_file: str | None = None) -> int:
    """Return the port at which a host's ssh server listens, as the ssh configuration has it."""
    if not member.host.is_remote:
        return 22
    address = ssh_config.parse_address(member.address)
    return address.port or ssh_config.resolve(address, config_file).port


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of asking one host."""

    member: Member
    facts: MachineFacts | None = None
    reached: bool = True
    trouble: str = ""
    """Why there are no facts, for people."""
    took_s: float = 0.0


@dataclass
class Fleet:
    """Hosts, and the connections to them, which are kept from one question to the next."""

    members: Sequence[Member]
    limit_s: float
    """How long each host may take, connecting included."""
    connect: Callable[[Host], Connector] = connector_to
    redact: Callable[[MachineFacts], MachineFacts] = lambda facts: facts
    """Takes secrets out of what processes were started with."""
    clock: Callable[[], float] = time.monotonic
    """What limits are reckoned by."""
    _connectors: dict[str, Connector] = field(default_factory=dict)
    _silent: set[str] = field(default_factory=set)
    """Hosts that gave no answer in time: nothing of theirs is waited for."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def facts(self, look: Look[Answer] = lambda standing: None) -> list[Answer]:
        """Return what each host answered, in order; one that did not in time is unreachable."""
        by_name = {member.name: member for member in self.members}
        found = in_parallel(
            by_name,
            lambda name: self._facts(by_name[name]),
            limit_s=self.limit_s,
            look=look,
            clock=self.clock,
        )
        self._silent |= {name for name, answer in found.items() if answer is None}
        late = f"no answer within {self.limit_s:g} s"
        return [
            found[member.name] or Answer(member, None, False, late, self.limit_s)
            for member in self.members
        ]

    def ways(
        self,
        places: Mapping[str, Sequence[Place]],
        look: Look[Sequence[Tried] | str] = lambda standing: None,
    ) -> Mapping[str, Sequence[Tried] | str]:
        """Let hosts try places, and return how it ended, or why it was not tried.

        Args:
            places: for each host's name, where to connect to.
            look: see ``in_parallel``.
        """
        by_name = {member.name: member for member in self.members}
        found = in_parallel(
            places,
            lambda name: self._ways(by_name[name], places[name]),
            limit_s=REACH_S,
            look=look,
            clock=self.clock,
        )
        self._silent |= {name for name, given in found.items() if given is None}
        late = f"no answer within {REACH_S:g} s"
        return {name: late if given is None else given for name, given in found.items()}

    def close(self) -> None:
        """Close all connections side by side; what hangs is left to the end of the process."""
        with self._lock:
            connectors, self._connectors = self._connectors, {}
        threads = {
            name: threading.Thread(target=it.close, daemon=True) for name, it in connectors.items()
        }
        for thread in threads.values():
            thread.start()
        deadline = time.monotonic() + CLOSE_S
        for name in threads.keys() - self._silent:
            threads[name].join(max(0.0, deadline - time.monotonic()))

    def _facts(self, member: Member) -> Answer:
        marker = f"@{secrets.token_hex(8)}"
        command = machine_command(marker, limit_s=min(LIMIT_S, self.limit_s))
        begun, sent_at = time.monotonic(), time.time()
        try:
            result = self._run(member, command)
            facts = self.redact(read_machine(result, marker, sent_at, time.time()))
        except ConnectionFailed as error:
            return Answer(member, None, False, error.reason, time.monotonic() - begun)
        except ToolFailed as error:
            return Answer(member, None, True, str(error), time.monotonic() - begun)
        return Answer(member, facts, True, "", time.monotonic() - begun)

    def _ways(self, member: Member, places: Sequence[Place]) -> Sequence[Tried] | str:
        marker, python = f"@{secrets.token_hex(8)}", member.host.python
        try:
            result = self._run(member, reach_command(marker, python, places))
            return read_reach(result, marker, python, places)
        except (ConnectionFailed, ToolFailed) as error:
            return str(error)

    def _run(self, member: Member, command: Command) -> Result:
        """Run a command on the connection that there is, or on a new one."""
        with self._lock:
            connector = self._connectors.get(member.name)
            if connector is None:
                connector = self._connectors[member.name] = self.connect(member.host)
        return connector.run(replace(command, env={**member.env, **command.env}))
