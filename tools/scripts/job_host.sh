# Which host this is, and where its jobs are: hosts may share a home, and a home may be read-only.

# What is asked of every job is asked without starting programs: samples are taken all the time.

read_line() {  # FILE: sets host_line to its first line; to nothing where it cannot be read
  host_line=
  [ ! -r "$1" ] || { IFS= read -r host_line <"$1"; } 2>/dev/null || :
}

find_container() {  # MOUNTINFO: sets host_container to the id of the container this runs in, if any
  host_container=
  [ -r "$1" ] || return 0
  while read -r mount_id mount_parent mount_device mount_root mount_at mount_more; do
    [ "$mount_at" = /etc/hostname ] || continue
    mount_root=$mount_root/
    while [ -n "$mount_root" ]; do
      mount_part=${mount_root%%/*} mount_root=${mount_root#*/}
      case $mount_part in
        *[!0-9a-f]*) ;;
        ????????????*) host_container=$mount_part && return ;;
      esac
    done
  done <"$1"
}

read_line /proc/sys/kernel/hostname
host_name=${host_line:-$(uname -n)}
read_line /etc/machine-id
host_machine=$host_line
case $host_machine in *[!0-9a-f]*) host_machine= ;; esac
host_boot=$proc_boot
find_container /proc/self/mountinfo
host_init=
[ "$proc_way" = pipe ] || ! look_up 1 || host_init=$proc_start
host_word=$host_name
case $host_word in
  *[!A-Za-z0-9-]*) host_word=$(printf '%s' "$host_word" | LC_ALL=C tr -c 'A-Za-z0-9' '-') ;;
esac
host_word=$host_word-${host_machine%"${host_machine#????????}"}

claim_text() {  # prints what tells this host, boot and container from others
  printf '%s=%s\n' host "$host_name" machine "$host_machine" boot "$host_boot" \
    init "$host_init" container "$host_container" key "${host_key-}"
}

read_job() {  # sets job_pid, job_start, leader_pid, leader_start and claim_*, from the job's folder
  job_pid='' job_start='' leader_pid='' leader_start=''
  claim_host='' claim_machine='' claim_boot='' claim_init='' claim_container='' claim_key=''
  claim_whole=
  [ ! -f "$job_dir/host" ] || read -r claim_host <"$job_dir/host"
  if [ -f "$job_dir/claim" ]; then
    claim_whole=1
    while IFS='=' read -r claim_name claim_value; do
      case $claim_name in
        host) claim_host=$claim_value ;;
        machine) claim_machine=$claim_value ;;
        boot) claim_boot=$claim_value ;;
        init) claim_init=$claim_value ;;
        container) claim_container=$claim_value ;;
        key) claim_key=$claim_value ;;
      esac
    done <"$job_dir/claim"
  fi
  [ ! -f "$job_dir/pid" ] || read -r job_pid job_start <"$job_dir/pid"
  [ ! -f "$job_dir/group" ] || read -r leader_pid leader_start <"$job_dir/group"
}

elsewhere() {  # sets job_else to where the job was started, if that is not here
  job_else=
  if [ -n "$claim_whole" ] && [ "$claim_container" != "$host_container" ]; then
    job_else="it was started $(container_words "$claim_container"), and this is"
    job_else="$job_else $(container_words "$host_container") of the same name or files"
  elif same_boot && [ "$claim_init" = "$host_init" ]; then
    return  # whatever its key: a host may have several, and new ones
  elif [ -n "$claim_key" ] && [ -n "${host_key-}" ] && [ "$claim_key" != "$host_key" ]; then
    job_else="it was started on another host, whose ssh key is $claim_key"
  elif same_boot; then
    return
  elif [ -n "$claim_machine$host_machine" ] && [ -n "$claim_whole" ]; then
    [ "$claim_machine" = "$host_machine" ] && [ "$claim_host" = "$host_name" ] ||
      job_else="it was started on another host, $claim_host"
  elif [ -n "$claim_host" ] && [ "$claim_host" != "$host_name" ]; then
    job_else="it was started on another host, $claim_host"
  fi
}

same_boot() {
  [ -n "$claim_machine" ] && [ "$claim_machine" = "$host_machine" ] &&
    [ -n "$host_boot" ] && [ "$claim_boot" = "$host_boot" ]
}

container_words() {  # ID
  if [ -n "$1" ]; then echo "in the container ${1%"${1#????????????}"}"; else echo "in no container"; fi
}

anew() {  # sets job_anew to what ended all processes since the job was started, if something did
  job_anew=
  if [ -n "$claim_boot" ] && [ -n "$host_boot" ] && [ "$claim_boot" != "$host_boot" ]; then
    job_anew="the host was rebooted since it was started"
  elif [ -n "$claim_init" ] && [ -n "$host_init" ] && [ "$claim_init" != "$host_init" ]; then
    job_anew="the system was started anew since it was started"
    [ -z "$host_container" ] || job_anew="the container was started anew since it was started"
  fi
}

own_folder() {  # FOLDER: whether it is a folder of ours that nobody else may use
  [ -d "$1" ] && [ ! -L "$1" ] || return 1
  set -- $(LC_ALL=C ls -ldn -- "$1" 2>/dev/null)
  case ${1-} in drwx------*) [ "$3" = "$(id -u)" ] ;; *) return 1 ;; esac
}

spare_roots() {  # prints the folders that stand in for one that cannot be written, a word each
  spare_user=$(id -u 2>/dev/null) || return 0
  for spare_base in /var/tmp /tmp "${XDG_RUNTIME_DIR-}"; do
    case $spare_base in /*[!A-Za-z0-9/._-]*) continue ;; /*) ;; *) continue ;; esac
    echo "$spare_base/bringup-$spare_user"
  done
}

find_job() {  # ROOT NAME: sets job_dir; to where it would be, if it is nowhere
  for find_dir in "$1/$host_word/$2" "$1/$2"; do
    [ ! -d "$find_dir" ] || { job_dir=$find_dir; return; }
  done
  for find_base in $(spare_roots); do
    find_dir=$find_base/$host_word/$2
    [ -d "$find_dir" ] && own_folder "$find_base" && { job_dir=$find_dir; return; }
  done
  for find_dir in "$1"/*/"$2"; do
    [ ! -d "$find_dir" ] || { job_dir=$find_dir; return; }
  done
  job_dir=$1/$host_word/$2
  return 1
}
