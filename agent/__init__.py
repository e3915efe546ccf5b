"""What to do next, whether it may be done, and whether it worked."""
