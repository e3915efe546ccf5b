# Tells how a job stands: MARKER ROOT NAME TAIL_BYTES.

job_marker=$1
find_job "$2" "$3"
report_job
answer_tails "$4"
answer end 1
