"""What each kind of failure means for causes and fixes, one module a kind."""
