"""Measures this project's own speed, beside its peers, in one table: ``make bench``."""
