# Looks once at a starting server: MARKER ROOT NAME URL PYTHON TAIL_BYTES END_BYTES ERROR_BYTES.
# While it runs only a short end of its logs is told, since a watch takes hundreds of samples.

job_marker=$1 server_url=$4 server_python=$5
find_job "$2" "$3"
server_tail=$6 server_end=$7 server_error=$8
command -v "$server_python" >/dev/null 2>&1 || refuse "$server_python: no such Python on the host"

line_of() {  # FILE PATTERN: prints the number of the first line that has it
  LC_ALL=C tr -d '\000' <"$1" | LC_ALL=C grep -n -m 1 -E "$2" | cut -d : -f 1
}

answer_error() {  # KEY FILE: the file from its first traceback, or else error, on
  [ -f "$2" ] || return 0
  error_line=$(line_of "$2" 'Traceback \(most recent call last\)')
  [ -n "$error_line" ] || error_line=$(line_of "$2" '[Ee]rror|ERROR|CRITICAL|FATAL|[Ff]ault|Killed')
  [ -n "$error_line" ] || return 0
  error_from=0
  [ "$error_line" -eq 1 ] || error_from=$(($(head -n "$((error_line - 1))" "$2" | wc -c)))
  measure "$2" "$error_from" "$server_error"
  answer_text "$1" "$2" "$error_from" "$text_bytes"
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
count_io
if [ "$job_state" != running ]; then
  server_url='' server_tail=$server_end
  answer_error out_error "$job_dir/out"
  answer_error err_error "$job_dir/err"
fi
answer_tails "$server_tail"
"$server_python" -I -S -c "$server_probe" "$job_marker" "$server_url" "$leader_pid"
answer end 1
