"""Modules that are imported when they are first used, not when they are first named."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """Stands for a module until one of its attributes is asked for."""

    def __getattr__(self, attribute: str) -> Any:
        """Import the module; it stands in its own place from then on."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(importlib.import_module(self.__name__), attribute)


def import_later(name: str) -> None:
    """Let a module that others import wait until one of its attributes is asked for.

    For libraries that a library of ours imports and hardly ever uses. One that is missing is
    missed when it is used. Nothing happens where it is imported already.
    """
    if name not in sys.modules:
        sys.modules[name] = _Later(name)
