"""Make .venv with the locked packages and the bringup command; a second run finds it done.

Needs the standard library only. The packages and their hashes are in requirements/; uv installs
them where it is on PATH, else pip. An unfinished or broken .venv is made anew.

    python3 scripts/setup_env.py [--dev] [--this-python]

This file alone is written for every Python, old ones too, so that each can say what is missing.
"""

import os
import sys

if sys.version_info < (3, 8):  # noqa: UP036 - the reason for this file
    for name in () if "--this-python" in sys.argv else ("python3.13", "python3.12", "python3.11"):
        try:
            os.execvp(name, [name] + sys.argv)  # noqa: RUF005, S606
        except OSError:
            continue
    sys.exit(
        "set-up: bringup needs Python 3.11 or newer, and this is "
        + sys.version.split()[0]
        + "; install one, then name it: make PYTHON=/path/to/python3.12 setup"
    )

import environment

sys.exit(environment.main())
