"""The tool by which a brain looks at a whole machine."""

from __future__ import annotations

from typing import TypeVar

from tools.base import Args, CallContext, Observation, Subject, Tool
from tools.command import Command, Result
from tools.host import HOST
from tools.machine import MachineFacts, machine_command, read_machine
from tools.machine_parts import Gpus, Network


class WholeMachineArgs(Args):
    """Nothing to say."""


class WholeMachine(Tool[WholeMachineArgs, MachineFacts]):
    """Look at a whole machine: GPUs and their holders, memory, Docker, disks, network, limits."""

    runs_in = "host"

    @property
    def name(self) -> str:
        """``machine_facts``, as what it returns."""
        return "machine_facts"

    def command(self, args: WholeMachineArgs, call: CallContext) -> Command:
        """Return the script that gathers all facts."""
        return machine_command(call.marker)

    def parse(self, args: WholeMachineArgs, call: CallContext, result: Result) -> MachineFacts:
        """Read them; what tells nothing while all works is left out.

        Raises:
            ToolFailed: there is no shell, or nothing of the answer came.
        """
        return brief(read_machine(result, call.marker))

    def subjects(self, args: WholeMachineArgs) -> tuple[Subject, ...]:
        """The host."""
        return (HOST,)


def brief(facts: MachineFacts) -> MachineFacts:
    """Return the facts without what only a doctor needs: ids, and means that do their work."""
    parts: dict[str, Observation | None] = {
        "system": _without(facts.system, "boot_id", "uid"),
        "gpus": _working_gpus(facts.gpus),
        "network": _reached(facts.network),
    }
    if facts.docker and facts.docker.server:
        services = tuple(_without(service, "id") for service in facts.docker.services)
        docker = _without(facts.docker, "client", "socket", "cgroup")
        parts["docker"] = docker.model_copy(update={"services": services})
    return facts.model_copy(update=parts)


Part = TypeVar("Part", bound=Observation | None)


def _without(part: Part, *names: str) -> Part:
    if part is None:
        return part
    fields = type(part).model_fields
    return part.model_copy(update={name: fields[name].get_default() for name in names})


def _working_gpus(gpus: Gpus | None) -> Gpus | None:
    if gpus is None or not gpus.gpus:
        return gpus
    single = tuple(_without(gpu, "uuid", "bus_id") for gpu in gpus.gpus)
    names = ("pci", "kernel_driver", "library") if gpus.kernel_driver == gpus.library else ("pci",)
    more = () if gpus.denied_devices else ("devices",)
    return _without(gpus, *names, *more).model_copy(update={"gpus": single})


def _reached(network: Network | None) -> Network | None:
    """Leave out interfaces that lead nowhere: down, and without an address."""
    if network is None:
        return None
    nics = tuple(nic for nic in network.nics if nic.state != "down" or nic.addresses)
    return network.model_copy(update={"nics": nics})
