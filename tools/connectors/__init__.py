"""Places to run commands; only ``local`` starts processes."""

from tools.later import import_later

# paramiko imports it for `Match exec` in a configuration; it is two fifths of paramiko's import.
import_later("invoke")
