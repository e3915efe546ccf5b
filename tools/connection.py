"""Connect to a target, and learn the key of a host that is seen for the first time."""

from __future__ import annotations

import shlex
from typing import Annotated, ClassVar, Literal

from pydantic import Field, ValidationError

from tools.base import Args, CallContext, Observation, Risk, Subject, Tool
from tools.command import Command, Ending, Result
from tools.errors import BadReply, ToolFailed
from tools.files import Word

Fingerprint = Annotated[str, Field(pattern=r"^SHA256:[A-Za-z0-9+/]{43}$")]
"""A host key's fingerprint, as ``ssh-keygen -l`` shows it."""

CONNECT_S = 90.0
"""Limit for connecting, hosts on the way included."""


class ConnectArgs(Args):
    """Nothing: the target itself says where it is."""


class Connection(Observation):
    """How a target is reached, and whether it is the one that it was the last time."""

    kind: Literal["local", "ssh"]
    address: str = ""
    """The host as it was asked for; often an alias of the ssh configuration."""
    user: str = ""
    host: str = ""
    """The host's own name or address, as the ssh configuration has it."""
    port: int = 0
    host_key: Literal["known", "unknown"] = "known"
    """Nothing was logged in to where it is unknown; a changed key is refused before this."""
    key_type: str = ""
    """Kind of the host key that it presents, such as ``ssh-ed25519``."""
    fingerprint: str = ""
    """That key's fingerprint, ``SHA256:...``."""
    known_hosts: str = ""
    """The file that a new key is written to."""
    home: str = ""
    """The user's home there; empty while the host is unknown."""
    shell_ok: bool = False
    """Whether the login shell there starts programs; false while the host is unknown."""

    def headline(self) -> str:
        """Where it is, and what is known of its key."""
        if self.kind == "local":
            return "this machine"
        where = f"{self.user}@{self.host} port {self.port}"
        if self.host_key == "unknown":
            return f"{where}: host key not known yet, {self.key_type} {self.fingerprint}"
        return where if self.shell_ok else f"{where}: its login shell starts no programs"


class Connect(Tool[ConnectArgs, Connection]):
    """Connect to the target and tell how it is reached; a host key that is not known is shown."""

    def command(self, args: ConnectArgs, call: CallContext) -> Command:
        """Ask the connector about itself."""
        return Command.of("connect", via="connection", timeout_s=CONNECT_S)

    def parse(self, args: ConnectArgs, call: CallContext, result: Result) -> Connection:
        """Read the connector's answer.

        Raises:
            BadReply: it has another form.
        """
        if not result.ok:
            raise BadReply(f"connect: the connector did not answer ({result.how}): {result.tail}")
        try:
            return Connection.model_validate_json(result.stdout)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "as a whole"
            raise BadReply(
                f"connect: the answer has another form; {where}: {first['msg']}"
            ) from None

    def subjects(self, args: ConnectArgs) -> tuple[Subject, ...]:
        """The host."""
        return (Subject(kind="host", key="host"),)


class TrustHostKeyArgs(Args):
    """Which key, of which host."""

    host: Word
    """Its name, for whoever approves."""
    known_hosts: str = Field(default="", description="Of the person, as `connect` said it.")
    fingerprint: Fingerprint = Field(
        description="As `connect` saw it.\n\nThe host must still present it."
    )


class HostKeyTrusted(Observation):
    """A host key that is known from now on."""

    host: str
    fingerprint: str

    def headline(self) -> str:
        """Which key is known now."""
        return f"{self.fingerprint} of {self.host} is known from now on"


class TrustHostKey(Tool[TrustHostKeyArgs, HostKeyTrusted]):
    """Add the host key that a target presents to the person's known hosts.

    The fingerprint has to be compared with one that comes from the host itself by another way.
    """

    risk: ClassVar[Risk] = Risk.CHANGE
    always_asks = True

    def title(self, args: TrustHostKeyArgs) -> str:
        """Name it."""
        return f"Trust the host key of {args.host} from now on."

    def command(self, args: TrustHostKeyArgs, call: CallContext) -> Command:
        """Ask the connector to add the key, if it is still this one."""
        words = ("trust-host-key", args.fingerprint)
        return Command.of(*words, via="connection", timeout_s=CONNECT_S)

    def parse(self, args: TrustHostKeyArgs, call: CallContext, result: Result) -> HostKeyTrusted:
        """Read whether it was added.

        Raises:
            ToolFailed: the host presents another key, or the file cannot be written.
        """
        if result.ending is not Ending.EXITED or result.code != 0:
            raise ToolFailed(f"the host key was not added ({result.how}): {result.tail}")
        return HostKeyTrusted(host=args.host, fingerprint=args.fingerprint)

    def subjects(self, args: TrustHostKeyArgs) -> tuple[Subject, ...]:
        """The key, and the host that is reached by it."""
        host = Subject(kind="host", key="host")
        return (Subject(kind="host_key", key=args.fingerprint), host)

    def undo_text(self, args: TrustHostKeyArgs) -> str:
        """Take the line out again."""
        return forget_key(args.host, args.known_hosts)


def forget_key(host: str, known_hosts: str = "") -> str:
    """Return the command that takes a host's keys out of a known_hosts file.

    Args:
        host: as the file names it: ``HOST``, or ``[HOST]:PORT`` for other ports than 22.
        known_hosts: the file; empty for ssh's own.
    """
    file = ("-f", known_hosts) if known_hosts else ()
    return shlex.join(["ssh-keygen", *file, "-R", host])
