# Prints a piece of a job's log, and whether the job works: MARKER ROOT NAME STREAM OFFSET LIMIT.

job_marker=$1
find_job "$2" "$3"
job_file=$job_dir/$4
[ -f "$job_file" ] || refuse "there is no log $job_file"
measure "$job_file" "$5" "$6"
[ "$text_bytes" -gt 0 ] || text_bytes=0
answer size "$(size_of "$job_file")"
answer next "$(($5 + text_bytes))"
answer_text text "$job_file" "$5" "$text_bytes"
judge_job
family_ticks=0
[ "$job_state" != running ] || count_family
answer state "$job_state"
answer ticks "$family_ticks"
answer tick_hz "$tick_hz"
answer end 1
