"""Packages of the operating system (apt): what an installation would do, and doing it."""

from __future__ import annotations

import re
from urllib.parse import unquote

from pydantic import Field

from tools.base import Args, CallContext, Observation, Risk, Subject, Tool
from tools.command import Command, Result
from tools.errors import ToolFailed
from tools.host import HOST
from tools.host_readiness import Package
from tools.script import number, read_answers, script

INSTALL_S = 3600.0
PLAN_S = 240.0
_MOVE = re.compile(r"^(Inst|Remv) ([^\s:]+)\S*(?: \[([^\]]*)\])?(?: \((\S+))?", re.MULTILINE)
_URI = re.compile(r"^'([^']+)' (\S+) (\d+)", re.MULTILINE)
_LOCK = re.compile(r"Could not get lock (\S+?)\.? It is held by process (\d+) \(([^)]*)\)")


class PlanPackagesArgs(Args):
    """Which packages."""

    packages: tuple[Package, ...] = Field(min_length=1)


class PackagePlan(Observation):
    """What apt would do."""

    ok: bool
    new: tuple[str, ...] = ()
    """``NAME VERSION``, also of what comes along."""
    upgraded: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    download_mb: float = 0.0
    error: str = ""

    def headline(self) -> str:
        """How many of each, and what is downloaded."""
        if not self.ok:
            return f"apt says no: {self.error}"[:300]
        if not (self.new or self.upgraded or self.removed):
            return "nothing would change"
        words = [f"{len(self.new)} new ({', '.join(item.split()[0] for item in self.new)})"]
        words += [f"{len(self.upgraded)} upgraded"] if self.upgraded else []
        words += [f"REMOVES {', '.join(self.removed)}"] if self.removed else []
        return f"{'; '.join(words)}; {self.download_mb:.1f} MB to download"


class PlanPackages(Tool[PlanPackagesArgs, PackagePlan]):
    """Tell what installing system packages would add, upgrade, remove and download."""

    runs_in = "host"

    def command(self, args: PlanPackagesArgs, call: CallContext) -> Command:
        """Return the script of the dry run, which needs no root."""
        return script(call, "packages_plan", args.packages, ("provision_common",), PLAN_S)

    def parse(self, args: PlanPackagesArgs, call: CallContext, result: Result) -> PackagePlan:
        """Read the dry run; that apt says no is an answer too."""
        answers = read_answers(call, result)
        text = answers.get("plan", "")
        if number(answers, "code") != 0:
            error = error_lines(f"{answers.get('update_said', '')}\n{text}")
            return PackagePlan(ok=False, error=error)
        rows = _MOVE.findall(text)
        sizes = {
            unquote(name): int(size) for _, name, size in _URI.findall(answers.get("uris", ""))
        }
        return PackagePlan(
            ok=True,
            new=tuple(f"{name} {to}" for what, name, had, to in rows if what == "Inst" and not had),
            upgraded=tuple(
                f"{name} {to}" for what, name, had, to in rows if what == "Inst" and had
            ),
            removed=tuple(name for what, name, _, _ in rows if what == "Remv"),
            download_mb=round(sum(sizes.values()) / 1e6, 1),
        )

    def subjects(self, args: PlanPackagesArgs) -> tuple[Subject, ...]:
        """The host."""
        return (HOST,)


class InstallPackagesArgs(PlanPackagesArgs):
    """Which packages, and what may go for them."""

    removals: bool | None = Field(default=None, description="Whether it may remove others.")
    grace_s: int = Field(default=600, ge=0, le=1800)
    """Seconds to wait for another installation to end."""


class PackagesInstalled(Observation):
    """What came of it."""

    new: tuple[str, ...]
    """``NAME VERSION`` of what was not there before, what came along included."""
    upgraded: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def headline(self) -> str:
        """What is new."""
        names = ", ".join(item.split()[0] for item in self.new) or "nothing"
        more = f"; upgraded {len(self.upgraded)}" if self.upgraded else ""
        gone = f"; removed {', '.join(self.removed)}" if self.removed else ""
        return f"new: {names}{more}{gone}"[:300]


class InstallPackages(Tool[InstallPackagesArgs, PackagesInstalled]):
    """Install system packages with apt as root, without their recommendations."""

    risk = Risk.CHANGE
    needs = ("packages_planned",)
    establishes = ("python_installed", "docker_installed", "toolkit_installed")
    runs_in = "host"

    def title(self, args: InstallPackagesArgs) -> str:
        """Name them."""
        also = ", and remove what is in their way" if args.removals else ""
        return f"Install {', '.join(args.packages)} as root, with what they need{also}."

    def command(self, args: InstallPackagesArgs, call: CallContext) -> Command:
        """Return the script; the call's id claims it."""
        words = (
            call_name(call),
            "yes" if args.removals else "no",
            str(args.grace_s),
            *args.packages,
        )
        return script(call, "packages_install", words, ("provision_common",), INSTALL_S)

    def parse(
        self, args: InstallPackagesArgs, call: CallContext, result: Result
    ) -> PackagesInstalled:
        """Read what changed; only packages that apt says it handled are counted.

        Raises:
            ToolFailed: apt failed; the message has its errors, or who holds its lock.
        """
        answers = read_answers(call, result)
        if number(answers, "code") != 0:
            raise ToolFailed(f"apt-get failed: {error_lines(answers.get('said', ''))}")
        after, before = _versions(answers, "after"), _versions(answers, "before")
        handled = set(answers.get("handled", "").split())
        ours = {name: version for name, version in after.items() if name in handled}
        return PackagesInstalled(
            new=tuple(f"{name} {ours[name]}" for name in ours if name not in before),
            upgraded=tuple(f"{name} {ours[name]}" for name in ours if name in before),
            removed=tuple(name for name in before if name not in after),
        )

    def subjects(self, args: InstallPackagesArgs) -> tuple[Subject, ...]:
        """The host."""
        return (HOST,)

    def undo_text(self, args: InstallPackagesArgs) -> str:
        """Exactly what was new is removed."""
        return "`bringup undo` removes exactly the packages that were new, by name"


def call_name(call: CallContext) -> str:
    """Return the name by which a host knows a call of ours."""
    return f"{call.run_id}-{call.call_id}"


def _versions(answers: dict[str, str], key: str) -> dict[str, str]:
    """Read ``NAME:ARCHITECTURE VERSION`` a line."""
    rows = (line.split() for line in answers.get(key, "").splitlines())
    return {row[0].partition(":")[0]: row[1] for row in rows if len(row) == 2}


def error_lines(text: str) -> str:
    """Return what apt and dpkg say went wrong, and who holds a lock."""
    lock = _LOCK.findall(text)
    if lock:
        path, pid, program = lock[-1]
        return f"{path} is held by process {pid} ({program}), and it did not end in time"
    lines = [line.strip() for line in text.splitlines()]
    wrong = [line for line in lines if line.startswith(("E:", "dpkg: error", "Err:"))]
    kept = dict.fromkeys(wrong or [line for line in lines if line][-3:])
    return "; ".join(kept)[:1000] or "it said nothing"
