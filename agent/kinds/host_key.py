"""host-key: the host is reached for the first time, and nobody has said that its key is right."""

from __future__ import annotations

from agent.kinds.base import Case, FixPlan, Hypothesis
from agent.values import ToolCall
from tools.connection import Connect, TrustHostKey

SSH_PORT = 22


def explain(case: Case) -> Hypothesis:
    """The person is asked with the fingerprint, as ssh would; a changed key never comes here."""
    seen, _ = case.view.facts.latest(Connect)
    if seen is None:
        return case.hypothesis()
    name = f"{case.site.target} ({seen.host})"
    text = f"trust {seen.key_type} {seen.fingerprint} of {name} from now on"
    call = ToolCall(
        tool=TrustHostKey().name,
        args={
            "host": seen.host if seen.port == SSH_PORT else f"[{seen.host}]:{seen.port}",
            "known_hosts": seen.known_hosts,
            "fingerprint": seen.fingerprint,
        },
        target=case.site.target,
        why=f"{case.site.target} is reached for the first time: compare the fingerprint",
    )
    return case.hypothesis(fix=FixPlan((call,), text))
