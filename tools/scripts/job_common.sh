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

proc_boot=
if [ -r /proc/sys/kernel/random/boot_id ]; then
  read -r proc_boot </proc/sys/kernel/random/boot_id
fi

look_up() {  # PID: sets proc_state, _group, _start, _ticks and _kib; fails where there is none
  if [ -r /proc/self/stat ]; then
    look_up_proc "$1"
  else
    look_up_ps "$1"
  fi
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
if [ -r /proc/self/stat ]; then
  tick_hz=$(getconf CLK_TCK 2>/dev/null || echo 100)
  page_kib=$(($(getconf PAGESIZE 2>/dev/null || echo 4096) / 1024))
fi

runs() {  # PID START: whether that very process still runs; a zombie has ended
  [ -n "$1" ] && look_up "$1" && [ "$proc_start" = "$2" ] || return 1
  case $proc_state in [ZX]*) return 1 ;; esac
}

pids_near() {  # GROUP: prints the processes that may be members
  if [ -r /proc/self/stat ]; then
    (cd /proc && echo [0-9]*)
  else
    ps -A -o pid= -o pgid= | while read -r proc_pid proc_of; do
      [ "$proc_of" != "$1" ] || echo "$proc_pid"
    done
  fi
}

count_group() {  # GROUP: sets group_members (without its leader), group_ticks and group_kib
  group_members='' group_ticks=0 group_kib=0
  for group_pid in $(pids_near "$1"); do
    [ "$group_pid" != "$1" ] && look_up "$group_pid" && [ "$proc_group" = "$1" ] || continue
    case $proc_state in [ZX]*) continue ;; esac
    group_members="$group_members $group_pid"
    group_ticks=$((group_ticks + proc_ticks))
    group_kib=$((group_kib + proc_kib))
  done
}

read_job() {  # sets job_pid, job_start, leader_pid and leader_start from the job's folder
  job_pid='' job_start='' leader_pid='' leader_start='' job_host=''
  [ ! -f "$job_dir/host" ] || read -r job_host <"$job_dir/host"
  [ ! -f "$job_dir/pid" ] || read -r job_pid job_start <"$job_dir/pid"
  [ ! -f "$job_dir/group" ] || read -r leader_pid leader_start <"$job_dir/group"
}

left_running() {  # prints the processes that outlived the job's own and still run
  [ -f "$job_dir/left" ] || return 0
  while read -r left_pid left_start; do
    ! runs "$left_pid" "$left_start" || echo "$left_pid"
  done <"$job_dir/left"
}
