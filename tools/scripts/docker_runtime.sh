# Makes NVIDIA's runtime known to Docker: MARKER ROOT CALL CONTAINER... What is in daemon.json stays,
# and is kept; the daemon is started anew, and has to answer, else all is put back. The containers are
# those that may stop by it: where another one runs, nothing is done.

marker=$1 call=$3
shift 3
file=/etc/docker/daemon.json
kept=$file.before-$call ours=$file.bringup-$call
need_root
has python3 || refuse "there is no python3 to merge $file with; nothing was changed"

restart() {
  if [ -d /run/systemd/system ]; then
    as_root systemctl restart docker
  else
    as_root env PATH="$PATH:/usr/sbin:/sbin" service docker restart
  fi >/dev/null 2>&1
  turns=0
  until limited 3 docker version --format '{{.Server.Version}}' >/dev/null 2>&1 </dev/null; do
    turns=$((turns + 1))
    [ "$turns" -lt 20 ] || return 1
    sleep 1
  done
}

put_back() {
  if [ -e "$kept" ]; then as_root mv -f -- "$kept" "$file"; else as_root rm -f -- "$file"; fi
  as_root rm -f -- "$ours"
  restart
}

if [ ! -e "$ours" ]; then
  running=$(limited 10 docker ps --format '{{.Names}}' </dev/null) || refuse "Docker does not answer"
  live=$(limited 10 docker info --format '{{.LiveRestoreEnabled}}' </dev/null 2>/dev/null)
  [ "$live" = true ] || for name in $running; do
    case " $* " in
      *" $name "*) ;;
      *) refuse "the container $name runs by now, and would stop; nothing was changed" ;;
    esac
  done
  new=$(python3 -I -c '
import json, sys
try:
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
except FileNotFoundError:
    text = "{}"
data = json.loads(text or "{}")
known = data.setdefault("runtimes", {})
known.setdefault("nvidia", {"path": "nvidia-container-runtime", "args": []})
print(json.dumps(data, indent=4))
' "$file" 2>/dev/null) || refuse "$file is not the JSON that Docker reads; nothing was changed"
  as_root mkdir -p "${file%/*}"
  if [ -e "$file" ]; then
    as_root cp -p -- "$file" "$kept" || refuse "$file cannot be kept; nothing was changed"
  fi
  # shellcheck disable=SC2016
  as_root sh -c 'umask 022; printf "%s\n" "$2" >"$1.tmp" && mv "$1.tmp" "$1" && cp "$1" "$3"' \
    sh "$file" "$new" "$ours" || refuse "$file cannot be written"
fi
if dockerd --help 2>/dev/null | grep -q -e --validate; then
  said=$(as_root dockerd --validate --config-file "$file" 2>&1) || {
    if [ -e "$kept" ]; then as_root mv -f -- "$kept" "$file"; else as_root rm -f -- "$file"; fi
    as_root rm -f -- "$ours"
    refuse "Docker does not take the new $file: $said; what was there is back"
  }
fi
if ! restart; then
  put_back && refuse "Docker did not answer with the new $file; what was there is back"
  refuse "Docker did not answer with the new $file, and not with the old one either, which is back"
fi
say path "$file"
[ -e "$kept" ] && say backup "$kept"
say written "$ours"
say end 1
