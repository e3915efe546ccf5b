# Prints a piece of a job's log: MARKER ROOT NAME STREAM OFFSET LIMIT.

job_marker=$1 job_file=$2/$3/$4
[ -f "$job_file" ] || refuse "there is no log $job_file"
measure "$job_file" "$5" "$6"
[ "$text_bytes" -gt 0 ] || text_bytes=0
answer size "$(size_of "$job_file")"
answer next "$(($5 + text_bytes))"
answer_text text "$job_file" "$5" "$text_bytes"
answer end 1
