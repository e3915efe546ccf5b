"""The tools that the cases of replies were offered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_PARAMETERS = yaml.safe_load((Path(__file__).parent / "dialects" / "tools.yaml").read_text("utf-8"))

OFFERED: tuple[dict[str, Any], ...] = tuple(
    {
        "type": "function",
        "function": {"name": name, "description": f"The tool {name}.", "parameters": parameters},
    }
    for name, parameters in _PARAMETERS.items()
)
"""As they are sent to a server."""
