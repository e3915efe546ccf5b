# Shared by the scripts about jobs: the form of answers, and what the system knows of a process.
# Variables carry prefixes: the job inherits this environment, where a plain name might be taken.

answer() {  # KEY VALUE: one line behind the run's marker, so that banners do not matter
  printf '%s %s=%s\n' "$job_marker" "$1" "$2"
}

refuse() {  # REASON: says why nothing was done, and ends the script
  answer error "$(printf '%s' "$1" | tr '\n' ' ')"
  answer end 1
  exit 0
}

nap() {
  sleep 0.05 2>/dev/null || sleep 1
}

clock() {  # sets clock_cs, in hundredths of a second: the system's own, which nobody sets
  if [ -r /proc/uptime ]; then
    read -r clock_up clock_idle </proc/uptime
    clock_cs=$((${clock_up%.*} * 100 + 1${clock_up#*.} - 100))
  else
    clock_cs=$(($(date +%s) * 100))
  fi
}

proc_boot=
if [ -r /proc/sys/kernel/random/boot_id ]; then
  read -r proc_boot </proc/sys/kernel/random/boot_id
fi

# How a process is known again: by /proc, by ps, or (a bare chroot) by a pipe that its job holds.
proc_way=pipe
if [ -r /proc/self/stat ]; then
  proc_way=proc
elif [ -n "$(LC_ALL=C ps -o lstart= -p $$ 2>/dev/null)" ]; then
  proc_way=ps
fi

look_up() {  # PID: sets proc_state, _group, _start, _ticks and _kib; fails where there is none
  "look_up_$proc_way" "$1"
}

look_up_proc() {
  proc_stat=
  [ -r "/proc/$1/stat" ] || return 1
  while IFS= read -r proc_line; do
    proc_stat="$proc_stat $proc_line"
  done 2>/dev/null <"/proc/$1/stat"
  [ -n "$proc_stat" ] || return 1
  set -- ${proc_stat##*) }
  proc_state=$1 proc_group=$3 proc_ticks=$((${12} + ${13}))
  proc_start=${20}:$proc_boot
  proc_kib=$((${22} * page_kib))
}

look_up_ps() {
  set -- $(LC_ALL=C TZ=UTC ps -o stat=,pgid=,rss=,time=,lstart= -p "$1" 2>/dev/null)
  [ $# -ge 9 ] || return 1
  proc_state=$1 proc_group=$2 proc_kib=$3 proc_time=$4
  shift 4
  proc_start=$(IFS=_; printf '%s' "$*")
  count_ticks "$proc_time"
}

look_up_pipe() {
  kill -s 0 "$1" 2>/dev/null || return 1
  proc_state=R proc_group=${leader_pid:-} proc_start=pipe proc_ticks=0 proc_kib=0
}

count_ticks() {  # [[DAYS-]HOURS:]MINUTES:SECONDS[.HUNDREDTHS]: sets proc_ticks
  proc_ticks=0 proc_hundredths=0
  case $1 in *.*) proc_hundredths=${1#*.} ;; esac
  for proc_unit in $(printf '%s' "${1%.*}" | tr ':-' '  '); do
    proc_unit=${proc_unit#0}
    proc_ticks=$((proc_ticks * 60 + ${proc_unit:-0}))
  done
  case $1 in
    *-*) proc_days=${1%%-*} && proc_ticks=$((proc_ticks - proc_days * 129600)) ;;
  esac
  proc_hundredths=${proc_hundredths#0}
  proc_ticks=$((proc_ticks * 100 + ${proc_hundredths:-0}))
}

tick_hz=100 page_kib=1
if [ "$proc_way" = proc ]; then
  tick_hz=$(getconf CLK_TCK 2>/dev/null || echo 100)
  page_kib=$(($(getconf PAGESIZE 2>/dev/null || echo 4096) / 1024))
fi

runs() {  # PID START: whether that very process still runs; a zombie has ended
  [ -n "$1" ] && look_up "$1" && [ "$proc_start" = "$2" ] || return 1
  case $proc_state in [ZX]*) return 1 ;; esac
  [ "$2" != pipe ] || held
}

held() {  # whether the job's leader is there: to write into its pipe waits for one who reads
  [ -p "$job_dir/alive" ] && [ ! -f "$job_dir/rc" ] || return 1
  timeout 1 sh -c ': >"$1"' sh "$job_dir/alive" 2>/dev/null
}

pids_near() {  # GROUP: prints the processes that may be members
  case $proc_way in
    proc) (cd /proc && echo [0-9]*) ;;
    ps)
      ps -A -o pid= -o pgid= | while read -r proc_pid proc_of; do
        [ "$proc_of" != "$1" ] || echo "$proc_pid"
      done
      ;;
  esac
}

marked() {  # prints the processes that carry the job's mark, whatever group they have gone to
  [ "$proc_way" = proc ] && command -v grep >/dev/null 2>&1 || return 0
  mark_limit=  # a process that hangs in the kernel may hold up whoever reads its memory
  ! command -v timeout >/dev/null 2>&1 || mark_limit='timeout 5'
  (cd /proc && $mark_limit grep -lsF "BRINGUP_JOB=${job_dir##*/}:" [0-9]*/environ) 2>/dev/null |
    while IFS=/ read -r mark_pid mark_file; do echo "$mark_pid"; done
}

count_family() {  # sets family (without the leader), family_ticks and family_kib
  family='' family_ticks=0 family_kib=0
  if group_is_ours; then
    for family_pid in $(pids_near "$leader_pid"); do
      [ "$family_pid" != "$leader_pid" ] && look_up "$family_pid" || continue
      [ "$proc_group" != "$leader_pid" ] || add_to_family
    done
  fi
  for family_pid in $(left_running) $(marked); do
    case " $family " in *" $family_pid "*) continue ;; esac
    ! look_up "$family_pid" || add_to_family
  done
}

add_to_family() {  # takes the process that was looked up last; a zombie has ended
  case $proc_state in [ZX]*) return ;; esac
  family="$family $family_pid"
  family_ticks=$((family_ticks + proc_ticks))
  family_kib=$((family_kib + proc_kib))
}

group_is_ours() {
  [ -n "$leader_pid" ] || return 1
  runs "$leader_pid" "$leader_start" && return
  runs "$job_pid" "$job_start" && [ "$proc_group" = "$leader_pid" ]
}

left_running() {  # prints the processes that outlived the job's own and still run
  [ -f "$job_dir/left" ] || return 0
  while read -r left_pid left_start; do
    ! runs "$left_pid" "$left_start" || echo "$left_pid"
  done <"$job_dir/left"
}
