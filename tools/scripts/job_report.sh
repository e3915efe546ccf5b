# Defines report_job: what is known of the job in $job_dir.

judge_job() {  # sets job_state and job_note
  job_state=unknown job_note=''
  [ -d "$job_dir" ] || { job_note="there is no folder $job_dir"; return; }
  read_job
  if [ -n "$job_host" ] && [ "$job_host" != "$(uname -n)" ]; then
    job_note="it was started on another host, $job_host"
  elif [ -f "$job_dir/rc" ]; then
    job_state=exited
  elif [ -z "$job_pid" ]; then
    job_note="it was claimed and not started"
  elif runs "$job_pid" "$job_start" || runs "$leader_pid" "$leader_start"; then
    job_state=running
  elif [ -f "$job_dir/rc" ]; then
    job_state=exited
  else
    job_state=lost
  fi
}

report_job() {
  judge_job
  job_code='' group_members='' group_ticks=0 group_kib=0
  case $job_state in
    running) count_group "$leader_pid" ;;
    exited) read -r job_code <"$job_dir/rc"; group_members=$(left_running) ;;
  esac
  answer state "$job_state"
  answer note "$job_note"
  answer code "$job_code"
  answer pid "$job_pid"
  answer processes "$(set -- $group_members; echo $#)"
  answer ticks "$group_ticks"
  answer tick_hz "$tick_hz"
  answer rss_kib "$group_kib"
  answer out_bytes "$(size_of "$job_dir/out")"
  answer err_bytes "$(size_of "$job_dir/err")"
}
