# Defines report_job: what is known of the job in $job_dir.

judge_job() {  # sets job_state and job_note
  job_state=unknown job_note=''
  [ -d "$job_dir" ] || { job_note="there is no folder $job_dir"; return; }
  read_job
  elsewhere
  if [ -n "$job_else" ]; then
    job_note=$job_else
  elif [ -f "$job_dir/rc" ]; then
    job_state=exited
  elif [ -z "$job_pid" ]; then
    job_note="it was claimed and not started"
  elif runs "$job_pid" "$job_start" || runs "$leader_pid" "$leader_start"; then
    job_state=running
  elif [ -f "$job_dir/rc" ]; then
    job_state=exited
  else
    anew
    job_state=lost job_note=$job_anew
  fi
}

report_job() {
  judge_job
  job_code='' family='' family_ticks=0 family_kib=0
  case $job_state in
    running | lost) count_family ;;
    exited) read -r job_code <"$job_dir/rc"; count_family ;;
  esac
  answer state "$job_state"
  answer note "$job_note"
  answer code "$job_code"
  answer pid "$job_pid"
  answer processes "$(set -- $family; echo $#)"
  answer ticks "$family_ticks"
  answer tick_hz "$tick_hz"
  answer rss_kib "$family_kib"
  answer out_bytes "$(size_of "$job_dir/out")"
  answer err_bytes "$(size_of "$job_dir/err")"
}

count_io() {  # answers how many bytes the job's processes have read and written
  io_bytes=0
  for io_pid in $family; do
    [ -r "/proc/$io_pid/io" ] || continue
    while read -r io_key io_value; do
      case $io_key in rchar: | wchar:) io_bytes=$((io_bytes + io_value)) ;; esac
    done 2>/dev/null <"/proc/$io_pid/io"
  done
  answer io "$io_bytes"
}
