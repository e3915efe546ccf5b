"""Runs with a small real model as the brain: whatever it says, it does no harm."""
