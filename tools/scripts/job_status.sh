# Tells how a job stands: MARKER ROOT NAME TAIL_BYTES.

job_marker=$1 job_dir=$2/$3 job_tail=$4
report_job
answer end 1
