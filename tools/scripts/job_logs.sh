# Prints a piece of a job's log, and whether the job works: MARKER ROOT NAME STREAM OFFSET LIMIT.

job_marker=$1 job_dir=$2/$3 job_file=$2/$3/$4
[ -f "$job_file" ] || refuse "there is no log $job_file"
measure "$job_file" "$5" "$6"
[ "$text_bytes" -gt 0 ] || text_bytes=0
answer size "$(size_of "$job_file")"
answer next "$(($5 + text_bytes))"
answer_text text "$job_file" "$5" "$text_bytes"
judge_job
group_ticks=0
[ "$job_state" != running ] || count_group "$leader_pid"
answer state "$job_state"
answer ticks "$group_ticks"
answer tick_hz "$tick_hz"
answer end 1
