"""Options that verbs share and that cost no import of a run's parts."""

from __future__ import annotations

from typing import Annotated

import typer

OneJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
