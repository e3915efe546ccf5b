# Looks once at a starting server: MARKER ROOT NAME TAIL_BYTES URL PYTHON.

job_marker=$1 job_dir=$2/$3 job_tail=$4 server_url=$5 server_python=$6
command -v "$server_python" >/dev/null 2>&1 || refuse "$server_python: no such Python on the host"

error_line() {  # PATTERN: prints the number of the first line of $error_log that has it
  tr -d '\000' <"$error_log" | LC_ALL=C grep -n -m 1 -E "$1" | cut -d : -f 1
}

excerpt() {  # prints, in base64, $error_log from its first traceback or else error on
  error_log=$1
  [ -f "$error_log" ] || return 0
  error_at=$(error_line 'Traceback \(most recent call last\)')
  [ -n "$error_at" ] || error_at=$(error_line '[Ee]rror|ERROR|CRITICAL|FATAL|[Ff]ault|Killed')
  [ -n "$error_at" ] || return 0
  tr -d '\000' <"$error_log" | tail -n "+$error_at" | head -c 32768 | base64 | tr -d '\n'
}

server_probe='
import http.client, os, sys, time, urllib.error, urllib.parse, urllib.request

marker, url, group = sys.argv[1:]
LOCAL = ("localhost", "0.0.0.0", "::1", "::")


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


def is_ours(pid):
    while pid not in ("0", "1"):
        try:
            with open("/proc/%s/stat" % pid, errors="replace") as file:
                words = file.read().rpartition(")")[2].split()
        except OSError:
            return False
        if group in (words[2], words[3]):
            return True
        pid = words[1]
    return False


def owner():
    parts = urllib.parse.urlsplit(url)
    host = parts.hostname or ""
    if host not in LOCAL and not host.startswith("127."):
        return ""
    wanted = set(sockets(parts.port or 80))
    if not wanted:
        return ""
    holders = [pid for pid in os.listdir("/proc") if pid.isdigit() and holds(pid, wanted)]
    if any(is_ours(pid) for pid in holders):
        return "job"
    return "other" if holders else ""


if url:
    code = status()
    say("http_status", code)
    say("port_owner", owner() if code == 200 else "")
say("now", "%.3f" % time.monotonic())
'

report_job
if [ "$job_state" != running ]; then
  server_url=''
  answer out_error "$(excerpt "$job_dir/out")"
  answer err_error "$(excerpt "$job_dir/err")"
fi
"$server_python" -I -S -c "$server_probe" "$job_marker" "$server_url" "$leader_pid"
answer end 1
