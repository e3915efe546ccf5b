"""A checkup as one JSON document, for programs; docs/hosts.md describes it."""

from __future__ import annotations

from typing import Any

from agent.doctor.ask import Answer
from agent.doctor.between import Link
from agent.doctor.checkup import Checkup
from agent.doctor.pair import Pair


def document_of(checkup: Checkup) -> dict[str, Any]:
    """Return the document's keys."""
    return {
        "hosts": [
            {
                **_of_answer(answer),
                "findings": [it.model_dump() for it in checkup.found[answer.member.name]],
            }
            for answer in checkup.answers
        ],
        "findings": [it.model_dump() for it in checkup.shared],
        "between": [_of_link(link) for link in checkup.between.links],
        "not_tried": dict(checkup.between.not_tried),
        "exit_code": checkup.exit_code,
    }


def document_of_pair(pair: Pair) -> dict[str, Any]:
    """Return the keys of the document of two hosts that are compared."""
    return {
        "a": _of_answer(pair.a),
        "b": _of_answer(pair.b),
        "differences": [it.model_dump() for it in pair.differences],
        "exit_code": pair.exit_code,
    }


def _of_answer(answer: Answer) -> dict[str, Any]:
    member, facts = answer.member, answer.facts
    return {
        "name": member.name,
        "address": member.address,
        "container": member.host.container,
        "roles": member.roles,
        "reached": answer.reached,
        "trouble": answer.trouble,
        "seconds": round(answer.took_s, 3),
        "facts": facts.model_dump(mode="json") if facts else None,
    }


def _of_link(link: Link) -> dict[str, Any]:
    door = link.door
    return {
        "from": link.source,
        "to": door.host,
        "nic": door.nic,
        "address": door.address,
        "port": door.port,
        "network": door.network,
        "shared": link.shared,
        "speed_mbit": link.speed_mbit,
        **link.tried.model_dump(),
    }
