# Makes a virtual environment: MARKER ROOT CALL FOLDER. Our note in it is made first, so a request
# that is repeated after a break goes on; a place that is taken by others is left alone.

marker=$1 call=$3
at_home "$4"
note=$at/.bringup-made
if [ "$(cat "$note" 2>/dev/null)" != "$call" ]; then
  { [ -e "$at" ] || [ -L "$at" ]; } && refuse "$at is there already; nothing was changed"
  has python3 || refuse "there is no python3; nothing was changed"
  mkdir -p "${at%/*}" && mkdir "$at" && printf '%s\n' "$call" >"$note" ||
    refuse "$at cannot be made"
fi
if ! said=$(python3 -I -m venv "$at" 2>&1 </dev/null); then
  rm -rf -- "$at"
  refuse "python3 -m venv failed: $said"
fi
say folder "$at"
say python "$("$at/bin/python" -I -c 'import platform; print(platform.python_version())' 2>&1 |
  tail -n 1)"
say end 1
