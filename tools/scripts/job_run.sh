# Runs one job: DIR UMASK FOLDER PROGRAM [WORD...]. Records who it is, waits, records its end.
# It leads the job's process group, and outlives a signal to it so that it can write the exit code.

job_dir=$1 job_mask=$2 job_cwd=$3
shift 3
trap : HUP INT TERM
umask 077

record() {  # NAME PID: writes a process's identity, whole or not at all
  look_up "$2"
  printf '%s %s\n' "$2" "$proc_start" >"$job_dir/$1.tmp" && mv "$job_dir/$1.tmp" "$job_dir/$1"
}

if [ "$proc_way" = pipe ]; then
  mkfifo "$job_dir/alive" || exit 1
  exec 9<>"$job_dir/alive"
fi
record group $$
(
  record pid "$(exec sh -c 'echo "$PPID"')"
  if [ -n "$job_cwd" ]; then
    CDPATH='' cd -- "$job_cwd" || exit 126
  fi
  [ "$proc_way" != pipe ] || exec 9>&-
  BRINGUP_JOB=${job_dir##*/}:
  export BRINGUP_JOB
  umask "$job_mask"
  exec "$@"
)
job_code=$?
job_pid='' leader_pid=$$
look_up $$
leader_start=$proc_start
count_family
for job_left in $family; do
  ! look_up "$job_left" || printf '%s %s\n' "$job_left" "$proc_start" >>"$job_dir/left"
done
# The room for it was taken at the start: a job that fills the disk tells its end all the same.
printf '%-8s\n' "$job_code" 1<>"$job_dir/rc.tmp" && mv "$job_dir/rc.tmp" "$job_dir/rc"
