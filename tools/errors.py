"""The exception tree of ``tools``.

::

    ToolsError
    ├── ToolFailed          the tool ran and says no; the brain reads the message and adapts
    │   └── BadReply        the target answered, but not in the form that was agreed
    ├── ConnectionFailed    the target cannot be reached or was lost; ends the run
    └── UnknownTool         no tool of that name

Anything else that leaves a tool is a defect of ours and is not caught.
"""


class ToolsError(Exception):
    """Root of what ``tools`` raises on purpose."""


class ToolFailed(ToolsError):
    """The tool ran and did not succeed; the message is for whoever asked for the call."""


class BadReply(ToolFailed):
    """The target's answer could not be read; the message holds what came instead."""


class ConnectionFailed(ToolsError):
    """The target cannot be reached, or the connection broke: nothing is known of the command."""

    def __init__(self, target: str, reason: str, *, final: bool = False) -> None:
        """Tell of a target that is lost.

        Args:
            target: its name.
            reason: why, in words for people.
            final: whether asking it once more makes no sense.
        """
        self.target = target
        self.reason = reason
        self.final = final
        super().__init__(f"{target}: {reason}")


class UnknownTool(ToolsError):
    """There is no tool of that name."""
