# mypy: ignore-errors
# It runs in an image, with packages that are not here.
"""Turn sglang's unpacked wheel into an installation in place of an untagged checkout.

Its metadata then says version 0.0.0, as setuptools-scm does where it finds no tag: the images of
the engine's makers look like that. What it requires stays as its release says.
"""

import json
import re
from pathlib import Path

SOURCE = Path("/sgl-workspace/sglang/python")
TARGET = Path("/usr/local/lib/python3.11/dist-packages")
VERSION = "0.0.0"

info = next(SOURCE.glob("sglang-*.dist-info")).rename(TARGET / f"sglang-{VERSION}.dist-info")
metadata = info / "METADATA"
text = metadata.read_text(encoding="utf-8")
metadata.write_text(re.sub(r"(?m)^Version: .*", f"Version: {VERSION}", text, count=1))
link = TARGET / f"__editable__.sglang-{VERSION}.pth"
link.write_text(f"{SOURCE}\n")
origin = {"dir_info": {"editable": True}, "url": SOURCE.as_uri()}
(info / "direct_url.json").write_text(json.dumps(origin))
files = [link, *(path for path in info.rglob("*") if path.is_file())]
lines = [f"{path.relative_to(TARGET)},,\n" for path in files]
(info / "RECORD").write_text("".join(lines))
