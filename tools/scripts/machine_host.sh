# The machine as such: system, containers around it, processors, memory, processes.
# Each function prints what it finds, raw, and ends with how it went.

now() {
  date +%s.%N 2>/dev/null || date +%s 2>/dev/null
}

system_facts() {
  for word in s r m n; do
    printf 'uname_%s %s\n' "$word" "$(uname "-$word" 2>/dev/null)"
  done
  # Names may have to be asked of a directory service that does not answer.
  printf 'user %s\n' "$(limited 2 id -un 2>/dev/null || printf '%s' "${USER:-}")"
  printf 'uid %s\n' "$(limited 2 id -u 2>/dev/null)"
  printf 'groups %s\n' "$(limited 2 id -Gn 2>/dev/null)"
  printf 'home %s\n' "${HOME:-}"
  first /proc/sys/kernel/random/boot_id && printf 'boot %s\n' "$first_line"
  first /proc/uptime && printf 'uptime %s\n' "$first_line"
  first /proc/1/comm && printf 'init %s\n' "$first_line"
  [ -d /run/systemd/system ] && printf 'systemd yes\n'
  for file in product_name sys_vendor; do
    first "/sys/class/dmi/id/$file" && printf '%s %s\n' "$file" "$first_line"
  done
  first /proc/device-tree/model && printf 'product_name %s\n' "$first_line"
  show /etc/os-release
  return 0
}

inside_facts() {  # what speaks for the inside of a container
  has systemd-detect-virt && printf 'detected %s\n' "$(limited 2 systemd-detect-virt --container)"
  first /run/systemd/container && printf 'virt %s\n' "$first_line"
  [ -e /.dockerenv ] && printf 'virt docker\n'
  [ -e /run/.containerenv ] && printf 'virt podman\n'
  [ -e /dev/.lxc ] || [ -e /dev/.lxd-mounts ] && printf 'virt lxc\n'
  { tr '\000' '\n' </proc/1/environ; } 2>/dev/null | while read -r line; do
    case $line in container=*) printf 'virt %s\n' "${line#container=}" ;; esac
  done
  show /proc/1/cgroup | while IFS= read -r line; do printf 'cgroup %s\n' "$line"; done
  [ -r /proc/mounts ] && while read -r from to kind rest; do
    case $from:$kind in
      lxcfs:* | *:fuse.lxcfs) printf 'virt lxc\n' ;;
      proc:proc) case $rest in *hidepid=[!0]*) printf 'hidepid %s\n' "$rest" ;; esac ;;
    esac
  done </proc/mounts
  show /proc/self/uid_map | while IFS= read -r line; do printf 'uid_map %s\n' "$line"; done
  show /proc/devices | while IFS= read -r line; do
    case $line in *nvidia*) printf 'major %s\n' "$line" ;; esac
  done
  show /sys/fs/cgroup/devices/devices.list | while IFS= read -r line; do
    printf 'rule %s\n' "$line"
  done
  return 0
}

cpu_facts() {
  printf 'nproc %s\n' "$(nproc 2>/dev/null)"
  first /sys/fs/cgroup/cpu.max && printf 'quota %s\n' "$first_line"
  if first /sys/fs/cgroup/cpu/cpu.cfs_quota_us; then
    cpu_quota=$first_line
    first /sys/fs/cgroup/cpu/cpu.cfs_period_us && printf 'quota %s %s\n' "$cpu_quota" "$first_line"
  fi
  cpu_count=0
  [ -r /proc/cpuinfo ] && while IFS= read -r line; do
    case $line in
      processor*) cpu_count=$((cpu_count + 1)) ;;
      'model name'* | Model* | Hardware*) [ "$cpu_count" -gt 1 ] || printf '%s\n' "$line" ;;
    esac
  done </proc/cpuinfo
  printf 'count %s\n' "$cpu_count"
  has lscpu && limited 2 lscpu | while IFS= read -r line; do
    case $line in 'Model name'*) printf '%s\n' "$line" ;; esac
  done
  return 0
}

memory_facts() {
  for file in memory.max memory.current memory.stat memory/memory.limit_in_bytes \
    memory/memory.usage_in_bytes memory/memory.stat; do
    case $file in
      memory.stat) memory_cache=inactive_file ;;
      memory/memory.stat) memory_cache=total_inactive_file ;;
      *)
        first "/sys/fs/cgroup/$file" && printf 'cgroup_%s %s\n' "${file##*memory.}" "$first_line"
        continue
        ;;
    esac
    show "/sys/fs/cgroup/$file" | while read -r name value; do
      [ "$name" != "$memory_cache" ] || printf 'cgroup_%s %s\n' "$name" "$value"
    done
  done
  show /proc/meminfo || return 127
}

user_of() {  # USER ID: sets about_user; an `id` may know only its own user
  about_user=
  [ ! -r /etc/passwd ] || while IFS=: read -r name word uid rest; do
    [ "$uid" != "$1" ] || { about_user=$name && break; }
  done </etc/passwd
  [ -n "$about_user" ] || about_user=$(limited 2 id -un "${1:--}" 2>/dev/null) || about_user=$1
}

describe() {  # PID: pid, user id, user, resident KiB, line of its control group, words
  about_uid='' about_kib='' about_name='' about_group='' about_words=''
  while read -r name value rest; do
    case $name in
      Name:) about_name=$value ;;
      Uid:) about_uid=$value ;;
      VmRSS:) about_kib=$value ;;
    esac
  done 2>/dev/null <"/proc/$1/status" || return 1
  first "/proc/$1/cgroup" && about_group=$first_line
  about_words=$(tr '\000\n\t' '   ' 2>/dev/null <"/proc/$1/cmdline" | head -c 400 2>/dev/null)
  user_of "$about_uid"
  printf '%s\t%s\t%s\t%s\t%s\t%s\n' "$1" "$about_uid" "$about_user" "$about_kib" \
    "$about_group" "${about_words:-$about_name}"
}

big_processes() {  # those that hold more than 1/200 of the memory, and more than 64 MiB
  [ -r /proc/self/statm ] || return 127
  page_kib=$(($(getconf PAGESIZE 2>/dev/null || echo 4096) / 1024)) big_kib=65536 big_rows=0
  [ ! -r /proc/meminfo ] || while read -r name value rest; do
    [ "$name" = MemTotal: ] && [ $((value / 200)) -gt "$big_kib" ] && big_kib=$((value / 200))
  done </proc/meminfo
  for file in /proc/[0-9]*/statm; do
    { read -r size resident rest <"$file"; } 2>/dev/null || continue
    [ $((resident * page_kib)) -gt "$big_kib" ] && [ "$big_rows" -lt 40 ] || continue
    big_rows=$((big_rows + 1)) file=${file%/statm}
    describe "${file#/proc/}"
  done
  return 0
}

