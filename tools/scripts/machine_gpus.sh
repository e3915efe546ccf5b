# NVIDIA GPUs: the driver's report, the kernel, the bus, device nodes and libraries.
# Each function prints what it finds, raw, and ends with how it went.

gpu_log() {  # the driver's own report, without long blocks that are not used
  has nvidia-smi || return 127
  if [ -n "$folder" ]; then  # a program that cannot be ended would keep a pipe open
    limited "$slow" nvidia-smi -q -x >"$folder/report"
    log_code=$?
    shorter <"$folder/report"
    printf '\nsmi %s\n' "$log_code"
  else
    { limited "$slow" nvidia-smi -q -x; printf '\nsmi %s\n' "$?"; } | shorter
  fi
}

shorter() {
  has sed || { cat; return; }
  set --
  for tag in supported_clocks clocks_event_reasons clocks_event_reasons_counters fabric clocks \
    max_clocks applications_clocks default_applications_clocks clock_policy platformInfo \
    inforom_version encoder_stats fbc_stats retired_pages remapped_rows aggregate \
    supported_gpu_target_temp power_profiles; do
    set -- "$@" -e "/<$tag>[[:space:]]*\$/,/<\\/$tag>/d"
  done
  sed "$@"
}

gpu_words() {  # what the report leaves out
  limited "$slow" nvidia-smi --query-gpu=index,compute_cap --format=csv,noheader
}

gpu_links() {
  limited "$slow" nvidia-smi topo -m
}

gpu_driver() {
  show /proc/driver/nvidia/version
  first /sys/module/nvidia/version && printf 'module %s\n' "$first_line"
  for file in /dev/nvidia[0-9]* /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-modeset \
    /dev/nvidia-caps/*; do
    [ -e "$file" ] || continue
    file_use=open
    [ -r "$file" ] && [ -w "$file" ] || file_use=denied
    printf 'node %s %s\n' "$file_use" "${file#/dev/}"
  done
  for file in /sys/bus/pci/devices/*; do
    first "$file/vendor" && [ "$first_line" = 0x10de ] || continue
    first "$file/class" || continue
    case $first_line in 0x03*) ;; *) continue ;; esac
    last_of "$file/driver"
    printf 'pci %s %s\n' "${file##*/}" "$last_name"
  done
  for file in $(libraries); do
    last=$(readlink -f "$file" 2>/dev/null) && printf 'library %s\n' "$last"
  done
  return 0
}

libraries() {  # where libcuda is found
  for file in ldconfig /sbin/ldconfig /usr/sbin/ldconfig; do
    has "$file" || continue
    limited 3 "$file" -p 2>/dev/null | while read -r name rest; do
      case $name in libcuda.so.1) printf '%s\n' "${rest##*=> }" ;; esac
    done
    break
  done
  for file in /usr/lib/*-linux-gnu/libcuda.so.1 /usr/lib64/libcuda.so.1 \
    /usr/local/nvidia/lib64/libcuda.so.1 /usr/lib/wsl/lib/libcuda.so.1; do
    [ ! -e "$file" ] || printf '%s\n' "$file"
  done
}

