# Looks once at a container that serves: MARKER ROOT NAME URL PYTHON TAIL_LINES TAIL_BYTES
# END_BYTES ERROR_BYTES. While it runs only a short end of its log is told, since a watch takes
# hundreds of samples.

marker=$1 name=$3 url=$4 python=$5 lines=$6 tail_bytes=$7 end_bytes=$8 error_bytes=$9

answer() { printf '%s %s=%s\n' "$marker" "$1" "$2"; }

refuse() {
  answer error "$(printf '%s' "$1" | tr '\n' ' ' | sed 's/^ *//')"
  answer end 1
  exit 1
}

answer_stdin() {  # KEY BYTES HEAD|TAIL: standard input as a text, without NUL and ETX
  printf '%s %s=\002\n' "$marker" "$1"
  tr -d '\000\003' | "$3" -c "$2"
  printf '\n\003\n'
}

command -v "$python" >/dev/null 2>&1 || refuse "$python: no such Python on the host"
format='{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}} {{.RestartCount}}'
format="$format {{.HostConfig.NetworkMode}} {{.State.Error}}"
state=$(docker container inspect --format "$format" "$name" 2>&1) || refuse "$state"
read -r status code oom restarts network engine_error <<END_OF_STATE
$state
END_OF_STATE
answer state "$status"
answer code "$code"
answer oom_killed "$oom"
answer restarts "$restarts"
answer engine_error "$engine_error"

probe='
import http.client, os, sys, time, urllib.error, urllib.parse, urllib.request

marker, url, network, top, published = sys.argv[1:]
LOCAL = ("localhost", "0.0.0.0", "::1", "::")
rows = [line.split() for line in top.splitlines()[1:]]
pids = {row[0] for row in rows if row}


def say(key, value):
    print("%s %s=%s" % (marker, key, value))


def status():
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=2) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, ValueError, http.client.HTTPException):
        return ""


def sockets(port):
    for name in ("tcp", "tcp6"):
        if not os.path.exists("/proc/net/" + name):
            continue
        with open("/proc/net/" + name) as table:
            for row in list(table)[1:]:
                words = row.split()
                if words[3] == "0A" and int(words[1].rsplit(":", 1)[1], 16) == port:
                    yield "socket:[%s]" % words[9]


def holds(pid, wanted):
    folder = "/proc/%s/fd" % pid
    try:
        return any(os.readlink(os.path.join(folder, name)) in wanted for name in os.listdir(folder))
    except OSError:
        return False


def owner():
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    if network.startswith("container:") or host not in LOCAL and not host.startswith("127."):
        return ""
    if network != "host":
        ours = {line.rsplit(":", 1)[1] for line in published.splitlines() if ":" in line}
        return "job" if str(parts.port or 80) in ours else "other"
    wanted = set(sockets(parts.port or 80))
    holders = {pid for pid in os.listdir("/proc") if pid.isdigit() and holds(pid, wanted)}
    if not wanted or not holders:
        return ""
    return "job" if holders & pids else "other"


def transferred(pid):
    try:
        with open("/proc/%s/io" % pid) as file:
            words = dict(line.split(": ") for line in file)
    except OSError:
        return 0
    return int(words["rchar"]) + int(words["wchar"])


def column(number):
    return sum(int(row[number]) for row in rows if len(row) == 3 and row[number].isdigit())


say("cpu_s", column(1))
say("rss_kib", column(2))
say("io", sum(map(transferred, pids)))
code = status() if url else ""
say("http_status", code)
say("port_owner", owner() if code == 200 else "")
say("now", "%.3f" % time.monotonic())
'

top='' published=''
if [ "$status" = running ]; then
  top=$(docker top "$name" -eo pid,cputimes,rss 2>/dev/null)
  [ "$network" = host ] || published=$(docker port "$name" 2>/dev/null)
  docker logs --timestamps --tail "$lines" "$name" 2>&1 | answer_stdin tail "$tail_bytes" tail
else
  url=''
  docker logs --timestamps --tail "$lines" "$name" 2>&1 | answer_stdin tail "$end_bytes" tail
  first=$(docker logs "$name" 2>&1 | LC_ALL=C tr -d '\000' |
    LC_ALL=C grep -n -m 1 'Traceback (most recent call last)' | cut -d : -f 1)
  [ -n "$first" ] || first=$(docker logs "$name" 2>&1 | LC_ALL=C tr -d '\000' |
    LC_ALL=C grep -n -m 1 -E '[Ee]rror|ERROR|CRITICAL|FATAL|[Ff]ault|Killed' | cut -d : -f 1)
  [ -z "$first" ] ||
    docker logs "$name" 2>&1 | tail -n "+$first" | answer_stdin first_error "$error_bytes" head
fi
"$python" -I -S -c "$probe" "$marker" "$url" "$network" "$top" "$published"
answer end 1
