"""Judges machines by their facts: what is wrong, what differs, and what to do about it."""
