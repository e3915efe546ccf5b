# Looks once at a job that goes on: MARKER ROOT NAME PATH TAIL_BYTES. PATH may be empty.

job_marker=$1 sample_path=$4
find_job "$2" "$3"
report_job
count_io
sample_limit=
! command -v timeout >/dev/null 2>&1 || sample_limit='timeout 5'

count_gpu() {  # answers how much memory of GPUs the job's processes hold, where that is told
  command -v nvidia-smi >/dev/null 2>&1 && [ -n "$family" ] || return 0
  $sample_limit nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader,nounits \
    2>/dev/null | tr -d ',\r' | {
    gpu_total=0
    while read -r gpu_pid gpu_mib; do
      case $gpu_mib in '' | *[!0-9]*) continue ;; esac
      case " $family " in *" $gpu_pid "*) gpu_total=$((gpu_total + gpu_mib)) ;; esac
    done
    answer gpu_mib "$gpu_total"
  }
}

count_path() {  # answers how much the named path holds
  [ -n "$sample_path" ] || return 0
  set -- $($sample_limit du -sk -- "$sample_path" 2>/dev/null)
  answer path_kib "${1:-0}"
}

count_gpu
count_path
answer_tails "$5"
clock
answer now "$((clock_cs / 100)).$(printf '%02d' "$((clock_cs % 100))")"
answer end 1
