"""The built-in demonstration: a small true checkpoint and an environment that cannot read it."""
