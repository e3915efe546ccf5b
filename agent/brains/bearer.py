"""The key that a model's server is shown, and that nobody else sees."""

from __future__ import annotations

from agent.problems import Problem
from agent.secret_forms import MIN_LENGTH, forms_of

NO_KEY = "none"
"""Sent where no key is set: local servers take any, and the SDK would look for one elsewhere."""


class Key:
    """A bearer token; its ``repr`` does not show it."""

    def __init__(self, text: str) -> None:
        """Take a key; empty where the server wants none.

        Raises:
            Problem: it holds what no header can.
        """
        text = text.strip()
        if not (text.isascii() and text.isprintable()):
            raise Problem("the model's key holds characters that no key has; copy it again")
        self.sent = text or NO_KEY
        known = forms_of(text) if len(text) >= MIN_LENGTH else ()
        self._forms = sorted(known, key=len, reverse=True)

    def clean(self, text: str) -> str:
        """Take the key out of what is shown, should a server or a library repeat it."""
        for form in self._forms:
            text = text.replace(form, "«key»")
        return text

    def cleaned(self, error: BaseException) -> BaseException:
        """Take the key out of what an exception says of itself, and return it."""
        error.args = tuple(self.clean(arg) if isinstance(arg, str) else arg for arg in error.args)
        for name in ("message", "body"):
            value = getattr(error, name, None)
            if value is not None:
                setattr(error, name, self.clean(value if isinstance(value, str) else repr(value)))
        return error
