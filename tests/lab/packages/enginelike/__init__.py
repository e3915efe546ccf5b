"""A package that behaves as serving engines do: its own config class, its own server."""
