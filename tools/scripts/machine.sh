# Gathers the facts of a machine: MARKER SECONDS [DISTRIBUTION...]. Reads only; what takes its time
# goes side by side in a private folder, which is removed at the end. A driver and an engine get so
# many seconds for an answer.

machine() {
  marker=$1 slow=$2 waiting=''
  shift 2
  tell began "$(now)"
  export LC_ALL=C
  make_folder
  later gpu_log 80000 gpu_log
  if has nvidia-smi; then
    later gpu_words 4000 gpu_words
    later gpu_links 12000 gpu_links
  fi
  later docker 30000 docker_facts
  ! has docker || later images 2000 docker_images
  later python 20000 python_facts "$@"
  later disks 8000 disk_facts
  later mounts 8000 other_disks
  later caches 4000 cache_facts
  later clock 500 clock_facts
  part system 8000 system_facts
  part inside 8000 inside_facts
  part cpu 2000 cpu_facts
  part memory 4000 memory_facts
  part processes 16000 big_processes
  part driver 8000 gpu_driver
  part nics 16000 nic_facts
  part rdma 16000 rdma_facts
  part limits 500 limit_facts
  tell_later $((slow * 2 + 4))
  [ -z "$folder" ] || part gpu_users 16000 gpu_users
  tell ended "$(now)"
  tell end 1
}

gpu_users() {  # the processes that the driver's report names
  show "$folder/gpu_log" | while IFS= read -r line; do
    case $line in *'<pid>'*) ;; *) continue ;; esac
    line=${line#*<pid>}
    describe "${line%%<*}"
  done
  return 0
}

machine "$@" </dev/null
