# Ends a job: MARKER ROOT NAME GRACE_S. Acts only on processes whose start time is recorded.

job_marker=$1 job_dir=$2/$3 job_grace=$(($4 * 20))
[ -d "$job_dir" ] || refuse "there is no folder $job_dir"
read_job
[ -z "$job_host" ] || [ "$job_host" = "$(uname -n)" ] || refuse "it was started on another host, $job_host"

group_is_ours() {
  runs "$leader_pid" "$leader_start" && return
  runs "$job_pid" "$job_start" && [ "$proc_group" = "$leader_pid" ]
}

busy() {  # whether anything of the job still runs, apart from the script that waits for it
  runs "$job_pid" "$job_start" && return
  if group_is_ours; then
    count_group "$leader_pid"
    [ -z "$group_members" ] || return 0
  fi
  [ -n "$(left_running)" ]
}

signal_job() {  # NAME
  if group_is_ours; then
    kill "-$1" "-$leader_pid" 2>/dev/null
  elif runs "$job_pid" "$job_start"; then
    kill "-$1" "$job_pid" 2>/dev/null
  fi
  for job_left in $(left_running); do
    kill "-$1" "$job_left" 2>/dev/null
  done
}

wait_while() {  # TURNS COMMAND [WORD...]
  job_turn=$1
  shift
  while [ "$job_turn" -gt 0 ] && "$@"; do
    nap
    job_turn=$((job_turn - 1))
  done
}

if busy; then
  signal_job TERM
  wait_while "$job_grace" busy
  if runs "$job_pid" "$job_start"; then
    kill -KILL "$job_pid" 2>/dev/null
    wait_while 20 runs "$leader_pid" "$leader_start"
  fi
  if busy; then
    signal_job KILL
    wait_while 40 busy
  fi
  wait_while 20 runs "$leader_pid" "$leader_start"
  if busy; then job_outcome=survived; else job_outcome=stopped; fi
else
  job_outcome=was_not_running
fi
answer outcome "$job_outcome"
answer pid "$job_pid"
answer end 1
