# Tells how a job stands: MARKER ROOT NAME TAIL_BYTES.

job_marker=$1 job_dir=$2/$3
report_job
answer_tails "$4"
answer end 1
