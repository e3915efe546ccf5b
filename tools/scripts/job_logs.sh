# Prints a piece of a job's log: MARKER ROOT NAME STREAM OFFSET LIMIT.

job_marker=$1 job_file=$2/$3/$4
[ -f "$job_file" ] || refuse "there is no log $job_file"
answer size "$(wc -c <"$job_file" | tr -d ' ')"
answer data "$(tail -c "+$(($5 + 1))" "$job_file" | head -c "$6" | base64 | tr -d '\n')"
answer end 1
