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
  if there "$kept"; then as_root mv -f -- "$kept" "$file"; else as_root rm -f -- "$file"; fi
  as_root rm -f -- "$ours"
}

# A call that broke off after its file took the place of the old one has the two alike.
if ! as_root cmp -s -- "$file" "$ours"; then
  as_root test -L "$file" && refuse "$file is a link to another file; nothing was changed"
  others=$(others_running "$@") || refuse "Docker does not answer"
  [ -z "$others" ] || outlive_docker ||
    refuse "containers run by now that would stop: ${others% }; nothing was changed"
  as_root mkdir -p "${file%/*}"
  # It has the mode and the owner of the old one, whose content is nobody's but root's to see.
  as_root python3 -I -c '
import json, os, sys
old, new = sys.argv[1:]
try:
    with open(old, encoding="utf-8") as file:
        text, had = file.read(), os.fstat(file.fileno())
except FileNotFoundError:
    text, had = "{}", None
data = json.loads(text or "{}")
known = data.setdefault("runtimes", {})
known.setdefault("nvidia", {"path": "nvidia-container-runtime", "args": []})
if os.path.lexists(new):
    os.unlink(new)
flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
with os.fdopen(os.open(new, flags, 0o600), "w", encoding="utf-8") as file:
    file.write(json.dumps(data, indent=4) + "\n")
    os.fchmod(file.fileno(), had.st_mode & 0o777 if had else 0o644)
    if had:
        os.fchown(file.fileno(), had.st_uid, had.st_gid)
' "$file" "$file.tmp" 2>/dev/null ||
    refuse "$file is not the JSON that Docker reads; nothing was changed"
  if there "$file"; then
    as_root cp -p -- "$file" "$kept" || refuse "$file cannot be kept; nothing was changed"
  fi
  as_root cp -p -- "$file.tmp" "$ours" && as_root mv -f -- "$file.tmp" "$file" ||
    refuse "$file cannot be written"
fi
if dockerd --help 2>/dev/null | grep -q -e --validate; then
  said=$(as_root dockerd --validate --config-file "$file" 2>&1) || {
    put_back
    refuse "Docker does not take the new $file: $said; what was there is back"
  }
fi
if ! restart; then
  put_back
  restart && refuse "Docker did not answer with the new $file; what was there is back"
  refuse "Docker did not answer with the new $file, and not with the old one either, which is back"
fi
say path "$file"
there "$kept" && say backup "$kept"
say written "$ours"
say end 1
