"""Places to run commands; only ``local`` starts processes."""
