# How the facts of a machine are told: each raw text between STX and ETX behind the marker, then how
# its gathering ended. Shell builtins where they do, since programs may be missing or may hang.

tell() {  # KEY VALUE
  printf '%s %s=%s\n' "$marker" "$1" "$2"
}

has() {
  command -v "$1" >/dev/null 2>&1
}

nap() {  # TURN: short at first; sets napped, in hundredths of a second
  napped=10
  [ "$1" -gt 20 ] || napped=2
  sleep "0.$((napped / 10))$((napped % 10))" 2>/dev/null && return
  napped=100
  sleep 1 2>/dev/null || no_sleep=1
}

etx=$(printf '\003') no_sleep=''

clean() {  # copies its input without NUL and ETX, at most so many bytes, and reads the rest
  if has tr && has head; then
    tr -d '\000\003' | { head -c "$1"; cat >/dev/null 2>&1; }
  else
    while IFS= read -r clean_line || [ -n "$clean_line" ]; do
      printf '%s\n' "${clean_line%%"$etx"*}"
    done
  fi
}

show() {  # FILE: its text; fails where it cannot be read
  [ -r "$1" ] || return 1
  while IFS= read -r show_line || [ -n "$show_line" ]; do
    printf '%s\n' "$show_line"
  done 2>/dev/null <"$1"
}

first() {  # FILE: sets first_line, empty where it cannot be read
  first_line=
  [ -r "$1" ] || return 1
  { IFS= read -r first_line <"$1" || [ -n "$first_line" ]; } 2>/dev/null
}

last_of() {  # PATH: sets last_name, the last part of where a link to a folder leads
  last_name=$(CDPATH='' cd -P -- "$1" 2>/dev/null && pwd) || last_name=
  last_name=${last_name##*/}
}

limited() {  # SECONDS PROGRAM [WORD...]: 124 or 137 where its time was over
  limit_s=$1
  shift
  has "$1" || return 127
  if has timeout; then
    timeout -s KILL "$limit_s" "$@"
    return
  fi
  "$@" &
  limit_pid=$! limit_spent=0
  while kill -0 "$limit_pid" 2>/dev/null; do
    if [ "$limit_spent" -gt $((limit_s * 100)) ]; then
      kill -s KILL "$limit_pid" 2>/dev/null
      return 124
    fi
    nap "$limit_spent"
    [ -z "$no_sleep" ] || break
    limit_spent=$((limit_spent + napped))
  done
  wait "$limit_pid"
}

part() {  # KEY BYTES FUNCTION [WORD...]: gathers one part now, and tells it
  part_key=$1 part_most=$2
  shift 2
  printf '%s %s=\002\n' "$marker" "$part_key"
  { "$@"; printf '\nended %s\n' "$?"; } 2>&1 | clean "$part_most"
  printf '\n\003\n'
}

later() {  # KEY BYTES FUNCTION [WORD...]: the same, beside the others where there is a folder
  if [ -z "$folder" ]; then
    part "$@"
    return
  fi
  waiting="$waiting $1"
  later_key=$1 later_most=$2
  shift 2
  (
    trap - EXIT HUP INT TERM
    {
      "$@"
      printf '\nended %s\n' "$?"
      : >"$folder/$later_key.over"
    } 2>&1 | clean "$later_most" >"$folder/$later_key"
    : >"$folder/$later_key.done"
  ) </dev/null >/dev/null 2>&1 &
}

tell_later() {  # SECONDS: waits for the parts that were put off, so long at most, and tells them
  later_spent=0
  for later_key in $waiting; do
    later_grace=100
    while [ ! -e "$folder/$later_key.done" ] && [ "$later_spent" -lt $(($1 * 100)) ]; do
      nap "$later_spent"
      [ -z "$no_sleep" ] || break
      later_spent=$((later_spent + napped))
      # What could not be ended may hold its output open; it is not waited for.
      [ ! -e "$folder/$later_key.over" ] || later_grace=$((later_grace - napped))
      [ "$later_grace" -gt 0 ] || break
    done
    [ -z "$no_sleep" ] || wait
    printf '%s %s=\002\n' "$marker" "$later_key"
    show "$folder/$later_key"
    [ -e "$folder/$later_key.done" ] || printf '\nended 124\n'
    printf '\n\003\n'
  done
}

make_folder() {  # sets folder, a private one for a moment; empty where nothing can be written
  umask 077
  for folder in "${TMPDIR:-/tmp}" /tmp /dev/shm /var/tmp "${HOME:-/}"; do
    folder=$folder/.bringup-$marker-$$
    if mkdir "$folder" 2>/dev/null && : 2>/dev/null >"$folder/probe"; then
      trap 'rm -rf "$folder"' EXIT
      trap 'exit 1' HUP INT TERM
      return
    fi
  done
  folder=
}
