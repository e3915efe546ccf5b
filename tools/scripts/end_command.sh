# Ends the process group of a command and names what keeps running of its family.
# Words: the process id of the command, and `end` or `list` (then nothing is ended).
# Prints one "pid command" a line. Without /proc only the group is ended and nothing is named.

leader=$1

table() {
  for file in /proc/[0-9]*/stat; do
    { IFS= read -r line <"$file"; } 2>/dev/null || continue
    pid=${line%% *}
    # After the name: state, parent, group, session; the start time is the 20th of these fields.
    set -- ${line##*) }
    [ $# -ge 20 ] && echo "$pid $1 $2 $3 $4 ${20}"
  done
}

# Group, session and descendants of the command, as words "pid:start".
family() {
  known=" $leader "
  grown=1
  while [ "$grown" = 1 ]; do
    grown=0
    while read -r pid state parent group session start; do
      case "$known" in *" $pid "*) continue ;; esac
      case "$known" in
        *" $parent "*) ;;
        *) [ "$group" = "$leader" ] || [ "$session" = "$leader" ] || continue ;;
      esac
      known="$known$pid "
      grown=1
    done <<TABLE
$1
TABLE
  done
  while read -r pid state parent group session start; do
    case "$known" in *" $pid "*) echo "$pid:$start:$group" ;; esac
  done <<TABLE
$1
TABLE
}

# Those of the family that still run; zombies do not.
running() {
  for member in $members; do
    pid=${member%%:*}
    rest=${member#*:}
    { IFS= read -r line <"/proc/$pid/stat"; } 2>/dev/null || continue
    set -- ${line##*) }
    [ "${20}" = "${rest%%:*}" ] || continue
    case "$1" in [ZX]) continue ;; esac
    echo "$member"
  done
}

# The group; where the command leads none (its server made none), its members one by one.
send() {
  kill -s "$1" -- "-$leader" 2>/dev/null && return
  for member in $members; do
    case "$member" in
      "$leader:"* | *":$group_of_leader") kill -s "$1" "${member%%:*}" 2>/dev/null ;;
    esac
  done
  [ -n "$members" ] || kill -s "$1" "$leader" 2>/dev/null
}

in_group() {
  for member in $(running); do
    case "$member" in *":$group_of_leader") return 0 ;; esac
  done
  [ -z "$members" ] && kill -s 0 -- "-$leader" 2>/dev/null
}

wait_for_group() {
  turns=$1
  while in_group && [ "$turns" -gt 0 ]; do
    sleep 0.05 2>/dev/null || sleep 1
    turns=$((turns - 1))
  done
}

members=$(family "$(table)")
group_of_leader=$leader
for member in $members; do
  case "$member" in "$leader:"*) group_of_leader=${member##*:} ;; esac
done
if [ "$2" = end ]; then
  send TERM
  wait_for_group 10
  send KILL
  wait_for_group 10
fi
for member in $(running); do
  pid=${member%%:*}
  echo "$pid $(tr '\000\n\r' '   ' <"/proc/$pid/cmdline" 2>/dev/null)"
done
exit 0
