# Starts a detached job once: MARKER ROOT NAME FOLDER PROGRAM [WORD...].
# Making the job's folder is the claim: who cannot make it finds the job of an earlier request.

job_marker=$1 job_root=$2 job_name=$3 job_cwd=$4
shift 4
job_mask=$(umask)
umask 077

job_why=$(mkdir -p -- "$job_root" 2>&1) || refuse "cannot make the folder for jobs: $job_why"
[ -z "$job_cwd" ] || [ -d "$job_cwd" ] || refuse "there is no folder $job_cwd to run in"
job_dir=$(CDPATH='' cd -- "$job_root" && pwd)/$job_name

shell_makes_groups() {  # some shells make groups only where there is a terminal
  set -m 2>/dev/null
  case $- in *m*) set +m ;; *) return 1 ;; esac
}

if command -v setsid >/dev/null 2>&1; then
  job_way=setsid
elif shell_makes_groups; then
  job_way=monitor
elif command -v perl >/dev/null 2>&1; then
  job_way=perl
elif command -v python3 >/dev/null 2>&1; then
  job_way=python3
else
  refuse "no way to give a job its own process group; install setsid (util-linux)"
fi

launch() {
  case $job_way in
    setsid) exec setsid sh "$@" ;;
    perl) exec perl -e 'use POSIX; POSIX::setsid(); exec { $ARGV[0] } @ARGV' sh "$@" ;;
    python3) exec python3 -c 'import os, sys; os.setsid(); os.execvp("sh", sys.argv[1:])' sh "$@" ;;
    *) exec sh "$@" ;;
  esac
}

if mkdir -- "$job_dir" 2>/dev/null; then
  job_already=0
  uname -n >"$job_dir/host"
  printf '%s\n' "$@" >"$job_dir/argv"
  write_runner "$job_dir/run"
  [ "$job_way" != monitor ] || set -m
  launch "$job_dir/run" "$job_dir" "$job_mask" "$job_cwd" "$@" \
    </dev/null >>"$job_dir/out" 2>>"$job_dir/err" &
elif [ -d "$job_dir" ]; then
  job_already=1
else
  refuse "cannot make $job_dir"
fi

job_turn=0
while [ ! -s "$job_dir/pid" ] && [ "$job_turn" -lt 100 ]; do
  nap
  job_turn=$((job_turn + 1))
done
read_job
answer pid "$job_pid"
answer start "$job_start"
answer already "$job_already"
answer end 1
