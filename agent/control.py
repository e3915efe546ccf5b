"""The control tools: what a brain can say besides using tools on a target.

They are declared like tools, so that a model sees one list; ``act.py`` carries them out and no
command is ever sent for them.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from tools.base import Args, Observation, Risk, Subject, Tool


class Said(Observation):
    """What became of it."""

    clock_fields: ClassVar[tuple[str, ...]] = ("text", "ref")
    """Numbers of the run's own; what came of it stands in the other fields."""

    text: str = ""
    port: int = 0
    """use_port: the port from now on."""
    answer: str = ""
    """ask: what the person chose."""
    ref: str = ""
    """Id of what was recorded: a diagnosis or a fix."""
    verdict: str = ""
    """applied: what the fix's check said."""

    def headline(self) -> str:
        """Return the text alone: it says all."""
        return self.text


KIND_SAYS = "One of the known kinds, or `unknown`."


class DiagnosisArgs(Args):
    """A cause and what supports it."""

    remarks = ("evidence", "plan")

    kind: str = Field(description=KIND_SAYS)
    cause: str = Field(description="The cause in one sentence.")
    evidence: tuple[str, ...] = Field(description="Ids of the events that show it, such as e12.")
    check: str = Field(description="The failing check that a fix of this cause would make pass.")
    plan: str = Field(default="", description="The fix in words.")


class RecordDiagnosis(Tool[DiagnosisArgs, Said]):
    """Record a cause with its evidence; a fix needs one. Answers with the diagnosis id."""


class AppliedArgs(Args):
    """Which fix is complete."""

    remarks = ("diagnosis",)

    diagnosis: str = Field(description="Id of the diagnosis, such as d1.")


class Applied(Tool[AppliedArgs, Said]):
    """Say that all calls of a fix are done: its check is run now and the fix is judged by it."""


class ClaimArgs(Args):
    """What is claimed."""

    remarks = ("text",)

    text: str = Field(default="", description="Why the goal is reached, citing event ids.")


class ClaimReady(Tool[ClaimArgs, Said]):
    """Say that the goal is reached; the goal's checks are then run by code and decide."""


class AskArgs(Args):
    """One question."""

    question: str
    choices: tuple[str, ...] = Field(default=("yes", "no"), min_length=2)


class Ask(Tool[AskArgs, Said]):
    """Ask the person one question with choices."""

    always_asks = True


class WaitArgs(Args):
    """For how long, and what for."""

    remarks = ("seconds", "reason")

    seconds: int = Field(ge=1, le=600, description="Less where the run has less time left.")
    reason: str = Field(default="", description="What is waited for.")


class Waited(Said):
    """That time has passed."""

    clock_fields = (*Said.clock_fields, "waited_s")

    waited_s: float
    """For how long it waited, in seconds."""


class Wait(Tool[WaitArgs, Waited]):
    """Wait for what takes time, then look again; for a server, watch it instead.

    A watch ends as soon as something has happened, and sees whether the server still works. The
    answer also holds `waited_s`, the seconds that it took.
    """


class UsePortArgs(Args):
    """Which port to use from now on."""

    port: int = Field(ge=1, le=65535)


class UsePort(Tool[UsePortArgs, Said]):
    """Use another port than the goal's; allowed for ports that the goal allows, else asked."""

    risk = Risk.CHANGE

    def subjects(self, args: UsePortArgs) -> tuple[Subject, ...]:
        """Return the port."""
        return (Subject(kind="port", key=str(args.port)),)

    def undo_text(self, args: UsePortArgs) -> str:
        """A port is chosen for this run only."""
        return "the next run asks for the goal's own port again"


class UseCandidateArgs(Args):
    """Which candidate to go on with, and why not the one before."""

    remarks = ("reason",)

    number: int = Field(ge=0, description="Its place in the goal's list, from 0.")
    reason: str = Field(description="Why the present candidate is given up, with event ids.")


class UseCandidate(Tool[UseCandidateArgs, Said]):
    """Give the present candidate up and go on with another one that the goal names."""


class UseImageArgs(Args):
    """Which image stands in for a candidate's own."""

    base: str = Field(description="The candidate's image, as the goal names it.")
    image: str = Field(pattern=r"^bringup\.[0-9a-f]{16}$", description="An image derived from it.")


class UseImage(Tool[UseImageArgs, Said]):
    """Use an image that was derived from the candidate's before, instead of building it again."""


class GiveUpArgs(Args):
    """Why the goal cannot be reached from here."""

    cause: str = Field(description="What is in the way, with event ids.")
    evidence: tuple[str, ...] = ()
    advice: str = Field(default="", description="What the person can do about it.")


class GiveUp(Tool[GiveUpArgs, Said]):
    """End the run honestly: name the cause and what a person can do."""


CONTROLS: dict[str, Tool[Args, Said]] = {
    tool.name: tool  # type: ignore[misc]
    for tool in (
        RecordDiagnosis(),
        Applied(),
        ClaimReady(),
        Ask(),
        Wait(),
        UsePort(),
        UseCandidate(),
        UseImage(),
        GiveUp(),
    )
}
"""All control tools by name."""
