# Ends a job: MARKER ROOT NAME GRACE_S. Acts only on processes whose start time is recorded, on the
# group that such a one leads, and on those that carry the job's mark.

job_marker=$1
find_job "$2" "$3" || refuse "there is no folder $job_dir"
read_job
elsewhere
[ -z "$job_else" ] || refuse "$job_else"
job_grace=$4 job_known=' '
busy_pid='' busy_start=''

busy() {  # whether anything of the job still runs, apart from the script that waits for it
  [ -n "$busy_pid" ] && runs "$busy_pid" "$busy_start" && return
  busy_pid='' busy_start=''
  if runs "$job_pid" "$job_start"; then
    busy_pid=$job_pid busy_start=$job_start
    return
  fi
  count_family
  for busy_one in $family; do
    look_up "$busy_one" || continue
    busy_pid=$busy_one busy_start=$proc_start
    return
  done
  return 1
}

signal_job() {  # NAME: the group as a whole, and the others one by one
  count_family
  signal_group=''
  if group_is_ours; then
    signal_group=$leader_pid
    kill -s "$1" -- "-$leader_pid" 2>/dev/null
  elif runs "$job_pid" "$job_start"; then
    kill -s "$1" "$job_pid" 2>/dev/null
  fi
  for signal_pid in $family; do
    case $job_known in *" $signal_pid "*) ;; *) job_known="$job_known$signal_pid " ;; esac
    look_up "$signal_pid" || continue
    [ "$proc_group" = "$signal_group" ] || kill -s "$1" "$signal_pid" 2>/dev/null
  done
}

wait_while() {  # SECONDS COMMAND [WORD...]: fails when the time is over
  clock
  wait_end=$((clock_cs + $1 * 100))
  shift
  while "$@"; do
    clock
    [ "$clock_cs" -lt "$wait_end" ] || return 1
    nap
  done
}

named() {  # PID WORDS [FILE]: prints a process with what is known of it, on one line
  named_what=$(LC_ALL=C tr -c '[:print:]' ' ' 2>/dev/null <"/proc/$1/${3:-cmdline}" | head -c 100)
  printf '%s (%s) %s; ' "$1" "$2" "$named_what"
}

still_there() {  # prints what did not end, and what of it still holds memory of a GPU
  for there_pid in $family; do
    look_up "$there_pid" || continue
    case $proc_state in
      D*) named "$there_pid" 'waits in the kernel' comm ;;  # its command line may not be readable
      *) named "$there_pid" "state $proc_state" ;;
    esac
  done
  command -v nvidia-smi >/dev/null 2>&1 && [ "$job_known" != ' ' ] || return 0
  [ -z "$(on_gpu)" ] || { sleep 1 && on_gpu; }  # the driver may need a moment to tidy up
}

on_gpu() {
  gpu_limit=
  ! command -v timeout >/dev/null 2>&1 || gpu_limit='timeout 5'
  $gpu_limit nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits \
    2>/dev/null | tr -d ',\r' | while read -r gpu_pid gpu_mib; do
    case $gpu_mib in '' | *[!0-9]*) gpu_mib='' ;; esac
    case $job_known in
      *" $gpu_pid "*) named "$gpu_pid" "holds ${gpu_mib:+$gpu_mib MiB of }GPU memory" ;;
    esac
  done
}

if busy; then
  signal_job TERM
  wait_while "$job_grace" busy
  if runs "$job_pid" "$job_start"; then
    kill -s KILL "$job_pid" 2>/dev/null
    wait_while 1 runs "$leader_pid" "$leader_start"
  fi
  if busy; then
    signal_job KILL
    wait_while 2 busy
  fi
  wait_while 1 runs "$leader_pid" "$leader_start"
  if busy; then job_outcome=survived; else job_outcome=stopped; fi
else
  job_outcome=was_not_running
fi
count_family
answer outcome "$job_outcome"
answer pid "$job_pid"
answer left "$(still_there)"
answer end 1
