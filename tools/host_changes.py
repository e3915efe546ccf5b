"""Changes that make a host ready: an environment, a group, limits; and what only a person does."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tools.base import Args, CallContext, Observation, Risk, Subject, Tool
from tools.command import Command, Result
from tools.docker import ContainerName
from tools.errors import ToolFailed
from tools.host import HOST
from tools.host_readiness import Folder
from tools.os_packages import INSTALL_S, call_name
from tools.script import read_answers, script

CHANGE_S = 300.0
Group = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_-]*$", max_length=32)]
Limit = Annotated[str, Field(pattern=r"^(unlimited|[1-9][0-9]{0,15})$")]
ROOT_EQUAL = ("docker", "lxd", "disk", "sudo", "wheel")
"""Groups whose members can become root."""


class MakeEnvironmentArgs(Args):
    """Where."""

    environment: Folder = Field(description="Of Python, absolute or ~/…")


class EnvironmentMade(Observation):
    """A new environment."""

    folder: str
    """In full."""
    python: str

    def headline(self) -> str:
        """Where it is, and its Python."""
        return f"{self.folder}, Python {self.python}"


class MakeEnvironment(Tool[MakeEnvironmentArgs, EnvironmentMade]):
    """Make a Python environment with pip in a folder that does not exist yet."""

    risk = Risk.CHANGE
    needs = ("python_installed",)
    establishes = ("python_ready",)
    runs_in = "host"

    def title(self, args: MakeEnvironmentArgs) -> str:
        """Name the folder."""
        return f"Make a Python environment in {args.environment}."

    def command(self, args: MakeEnvironmentArgs, call: CallContext) -> Command:
        """Return the script; a note in the folder says which call made it."""
        return _script("environment_make", call, call_name(call), args.environment)

    def parse(
        self, args: MakeEnvironmentArgs, call: CallContext, result: Result
    ) -> EnvironmentMade:
        """Read where it is."""
        return EnvironmentMade.model_validate(read_answers(call, result))

    def subjects(self, args: MakeEnvironmentArgs) -> tuple[Subject, ...]:
        """The environment, and the host that has one more."""
        return (Subject(kind="environment", key=args.environment), HOST)

    def undo_text(self, args: MakeEnvironmentArgs) -> str:
        """It is removed whole."""
        return f"`bringup undo` removes {args.environment}, with all that is in it by then"


class AddToGroupArgs(Args):
    """Which group."""

    group: Group


class GroupJoined(Observation):
    """A membership; the next login has it."""

    user: str
    group: str
    was_member: bool

    def headline(self) -> str:
        """Who is in which group."""
        return f"{self.user} {'was' if self.was_member else 'is now'} in the group {self.group}"


class AddToGroup(Tool[AddToGroupArgs, GroupJoined]):
    """Add the user to a group; it holds from the next login on, which over ssh comes at once."""

    risk = Risk.CHANGE
    needs = ("docker_installed",)
    establishes = ("docker_allowed",)
    runs_in = "host"
    renews_login: ClassVar[bool] = True

    def title(self, args: AddToGroupArgs) -> str:
        """Say what the membership means."""
        means = " Its members can become root." if args.group in ROOT_EQUAL else ""
        return f"Add the user to the group {args.group}.{means}"

    def command(self, args: AddToGroupArgs, call: CallContext) -> Command:
        """Return the script."""
        return _script("group_add", call, call_name(call), args.group)

    def parse(self, args: AddToGroupArgs, call: CallContext, result: Result) -> GroupJoined:
        """Read whether it was so before.

        Raises:
            ToolFailed: the group database does not show it afterwards.
        """
        answers = read_answers(call, result)
        if args.group not in answers.get("groups_next", "").split():
            raise ToolFailed(
                f"the group {args.group} does not have {answers.get('user')} after all"
            )
        return GroupJoined(
            user=answers["user"], group=args.group, was_member="was_member" in answers
        )

    def subjects(self, args: AddToGroupArgs) -> tuple[Subject, ...]:
        """The host."""
        return (HOST,)

    def undo_text(self, args: AddToGroupArgs) -> str:
        """The membership ends."""
        return f"`bringup undo` takes the user out of {args.group} again"


class SetLimitsArgs(Args):
    """How much; KiB of locked memory, and open files."""

    memlock: Limit = "unlimited"
    nofile: Limit = "1048576"


class LimitsSet(Observation):
    """A file of limits; the next login has them."""

    path: str
    backup: str = ""
    """What was there before; empty for nothing."""


class SetLimits(Tool[SetLimitsArgs, LimitsSet]):
    """Raise locked memory and open files for logins, by a file in /etc/security/limits.d."""

    risk = Risk.CHANGE
    establishes = ("limits_raised",)
    runs_in = "host"
    renews_login: ClassVar[bool] = True

    def title(self, args: SetLimitsArgs) -> str:
        """Name the limits."""
        return f"Let all logins lock {args.memlock} KiB of memory and open {args.nofile} files."

    def command(self, args: SetLimitsArgs, call: CallContext) -> Command:
        """Return the script, which tries first that the limits can be raised at all."""
        return _script("limits_set", call, call_name(call), args.memlock, args.nofile)

    def parse(self, args: SetLimitsArgs, call: CallContext, result: Result) -> LimitsSet:
        """Read which file it is."""
        return LimitsSet.model_validate(read_answers(call, result))

    def subjects(self, args: SetLimitsArgs) -> tuple[Subject, ...]:
        """The host."""
        return (HOST,)

    def undo_text(self, args: SetLimitsArgs) -> str:
        """The file goes, or is as it was."""
        return "`bringup undo` removes the file, or puts back what was there"


class TakeBackArgs(Args):
    """Which change of this run, and its names."""

    what: Literal["packages", "environment", "group", "limits", "runtime"]
    call: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="Of the change.")
    names: tuple[Annotated[str, Field(pattern=r"^[^-\x00-\x1f][^\x00-\x1f]*$")], ...] = Field(
        min_length=1, description="As its result has them."
    )
    running: tuple[ContainerName, ...] = Field(
        default=(), description="Of the change: containers that may stop."
    )


class TakenBack(Observation):
    """A change that is no more."""

    text: str

    def headline(self) -> str:
        """What was taken back."""
        return self.text


class TakeBack(Tool[TakeBackArgs, TakenBack]):
    """Undo a change of this run to the host: remove exactly what it had brought."""

    risk = Risk.CHANGE
    runs_in = "host"
    always_asks = True

    def title(self, args: TakeBackArgs) -> str:
        """Name what goes, and what stops by it."""
        stops = f"; these stop: {', '.join(args.running)}" if args.running else ""
        return f"Take back {args.what} of {args.call}: {', '.join(args.names)}{stops}."

    def command(self, args: TakeBackArgs, call: CallContext) -> Command:
        """Return the script, which removes nothing that others have come to need."""
        words = (args.what, f"{call.run_id}-{args.call}", *args.names)
        if args.what == "runtime":
            words += ("--", *args.running)
        return script(call, "take_back", words, ("provision_common",), INSTALL_S)

    def parse(self, args: TakeBackArgs, call: CallContext, result: Result) -> TakenBack:
        """Make sure that the script came to its end."""
        read_answers(call, result)
        return TakenBack(text=f"{args.what}: {', '.join(args.names)}"[:300])

    def subjects(self, args: TakeBackArgs) -> tuple[Subject, ...]:
        """The host."""
        return (HOST,)


class OperatorStepArgs(Args):
    """What a person has to do there, and why bringup does not."""

    commands: tuple[Annotated[str, Field(min_length=1, max_length=500)], ...] = Field(
        min_length=1, description="As they are typed on the host."
    )


class OperatorDone(Observation):
    """A person has said that it is done; a look tells."""

    text: str = "a person says that it is done"

    def headline(self) -> str:
        """Who says so."""
        return self.text


class OperatorStep(Tool[OperatorStepArgs, OperatorDone]):
    """Wait for a person to run commands on the host that bringup may not; yes means: it is done."""

    risk = Risk.CHANGE
    runs_in = "host"
    always_asks = True
    renews_login: ClassVar[bool] = True

    def title(self, args: OperatorStepArgs) -> str:
        """Give the commands word for word."""
        return f"needs operator: run there, then answer yes: {' ; '.join(args.commands)}"

    def command(self, args: OperatorStepArgs, call: CallContext) -> Command:
        """Return a command that does nothing: the person has done it."""
        return Command.of("true")

    def parse(self, args: OperatorStepArgs, call: CallContext, result: Result) -> OperatorDone:
        """Nothing is read: the next look tells."""
        return OperatorDone()

    def subjects(self, args: OperatorStepArgs) -> tuple[Subject, ...]:
        """The host."""
        return (HOST,)

    def undo_text(self, args: OperatorStepArgs) -> str:
        """It was not ours."""
        return "by whoever has done it; bringup runs none of these commands"


def _script(name: str, call: CallContext, *words: str) -> Command:
    return script(call, name, words, ("provision_common",), CHANGE_S)
