# File systems, folders that grow, network and RDMA devices, limits, the clock.
# Each function prints what it finds, raw, and ends with how it went.

hub_folder() {
  printf '%s' "${HF_HUB_CACHE:-${HF_HOME:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/huggingface}/hub}"
}

disk_of() {  # NAME PATH: the file system of a path, or of its nearest folder that is there
  disk_path=$2
  while [ -n "$disk_path" ] && [ ! -e "$disk_path" ]; do
    disk_path=${disk_path%/*}
  done
  disk_row=$(limited 3 df -PkT "${disk_path:-/}" 2>&1) ||
    disk_row=$(limited 3 df -Pk "${disk_path:-/}" 2>&1)
  disk_code=$? disk_use=read-only
  [ ! -w "${disk_path:-/}" ] || disk_use=writable
  printf 'disk\t%s\t%s\t%s\t%s\t%s\n' "$1" "$2" "$disk_code" "$disk_use" \
    "$(printf '%s\n' "$disk_row" | while IFS= read -r line; do last=$line; printf '%s ' $line; done)"
}

disk_facts() {
  disk_of root /
  disk_of home "${HOME:-/root}"
  disk_of docker /var/lib/docker
  disk_of models "$(hub_folder)"
  disk_of tmp "${TMPDIR:-/tmp}"
  [ ! -d /dev/shm ] || disk_of shm /dev/shm
}

other_disks() {  # where large files may lie; a server that is gone must not hide the machine's own
  disk_others=0
  for path in /data /models /workspace /scratch /mnt/*; do
    [ -d "$path" ] && [ "$disk_others" -lt 8 ] || continue
    disk_others=$((disk_others + 1))
    disk_of other "$path"
  done
}

cache_facts() {
  cache_home=${XDG_CACHE_HOME:-${HOME:-}/.cache}
  cache_of 4 models "$(hub_folder)"
  for name in pip uv vllm torch flashinfer; do
    cache_of 2 "$name" "$cache_home/$name"
  done
  cache_of 2 triton "${TRITON_CACHE_DIR:-${HOME:-}/.triton/cache}"
}

cache_of() {  # SECONDS NAME PATH
  [ -d "$3" ] || return 0
  cache_items=0
  for folder_of_model in "$3"/models--*; do
    [ ! -d "$folder_of_model" ] || cache_items=$((cache_items + 1))
  done
  cache_size=$(limited "$1" du -skx "$3" 2>/dev/null)
  cache_code=$?
  printf 'cache\t%s\t%s\t%s\t%s\t%s\n' "$2" "$3" "$cache_code" "$cache_items" "${cache_size%%	*}"
}

nic_facts() {
  for folder_of_nic in /sys/class/net/*; do
    [ -d "$folder_of_nic" ] || continue
    nic_name=${folder_of_nic##*/} nic_row=
    case $nic_name in veth* | cali* | lxc[0-9a-f]*) continue ;; esac
    for file in operstate mtu speed; do
      first "$folder_of_nic/$file"
      nic_row="$nic_row	$first_line"
    done
    last_of "$folder_of_nic/device/driver" && nic_driver=$last_name
    last_of "$folder_of_nic/device"
    [ -n "$last_name" ] || nic_driver=
    printf 'nic\t%s%s\t%s\t%s\n' "$nic_name" "$nic_row" "$nic_driver" "$last_name"
  done
  if has ip; then
    limited 3 ip -o addr show
  elif has hostname; then
    printf 'addresses %s\n' "$(hostname -I 2>/dev/null)"
  fi
  [ ! -r /proc/net/route ] || while read -r name to gateway rest; do
    [ "$to" != 00000000 ] || printf 'default %s\n' "$name"
  done </proc/net/route
  return 0
}

rdma_facts() {
  for device in /sys/class/infiniband/*; do
    [ -d "$device/ports" ] || continue
    last_of "$device/device"
    for port in "$device"/ports/*; do
      rdma_row=
      for file in state link_layer rate; do
        first "$port/$file"
        rdma_row="$rdma_row	$first_line"
      done
      printf 'port\t%s\t%s%s\t%s\n' "${device##*/}" "${port##*/}" "$rdma_row" "$last_name"
      for gid in "$port"/gids/*; do
        first "$gid" && gid_value=$first_line || continue
        case $gid_value in *[!0:]*) ;; *) continue ;; esac
        first "$port/gid_attrs/types/${gid##*/}"
        gid_type=$first_line
        first "$port/gid_attrs/ndevs/${gid##*/}"
        printf 'gid\t%s\t%s\t%s\t%s\t%s\t%s\n' "${device##*/}" "${port##*/}" "${gid##*/}" \
          "$gid_value" "$gid_type" "$first_line"
      done
    done
  done
  [ ! -d /dev/infiniband ] || printf 'nodes %s\n' "$(echo /dev/infiniband/*)"
  return 0
}

limit_facts() {
  printf 'memlock %s\n' "$(ulimit -l 2>/dev/null)"
  printf 'nofile %s\n' "$(ulimit -n 2>/dev/null)"
  printf 'nofile_hard %s\n' "$(ulimit -H -n 2>/dev/null)"
}

clock_facts() {
  has timedatectl && limited 2 timedatectl show -p NTPSynchronized 2>/dev/null
  return 0
}

