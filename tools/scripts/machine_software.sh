# The Docker engine and its services; Python and where packages for serving are.
# Each function prints what it finds, raw, and ends with how it went.

docker_facts() {
  docker_socket=${DOCKER_HOST:-unix:///var/run/docker.sock}
  case $docker_socket in
    unix://*) printf 'socket %s\n' "$(stat -c '%U:%G %a' "${docker_socket#unix://}" 2>/dev/null)" ;;
  esac
  for file in /etc/cdi/*.yaml /etc/cdi/*.json /var/run/cdi/*.yaml /var/run/cdi/*.json; do
    [ ! -e "$file" ] || printf 'cdi %s\n' "$file"
  done
  if has nvidia-ctk; then
    printf 'toolkit %s\n' "$(limited 3 nvidia-ctk --version 2>/dev/null | head -n 1 2>/dev/null)"
  fi
  has docker || return 127
  limited "$slow" docker version --format 'version {{json .}}' || return
  docker_known='"Images":{{json .Images}},"Containers":{{json .Containers}},'\
'"Driver":{{json .Driver}},"DockerRootDir":{{json .DockerRootDir}},"Runtimes":{{json .Runtimes}},'\
'"DefaultRuntime":{{json .DefaultRuntime}},"SecurityOptions":{{json .SecurityOptions}}'
  docker_new='"CgroupVersion":{{json .CgroupVersion}},"DiscoveredDevices":{{json .DiscoveredDevices}}'
  # A client before 28.2 does not know all words, and says nothing then.
  limited "$slow" docker info --format "info {$docker_known,$docker_new}" 2>/dev/null ||
    limited "$slow" docker info --format "info {$docker_known}" || return
  limited "$slow" docker ps --no-trunc --format 'service {"ID":{{json .ID}},"Names":{{json .Names}},'\
'"Image":{{json .Image}},"Status":{{json .Status}},"Ports":{{json .Ports}},'\
'"Networks":{{json .Networks}}}' || return
  for id in $(limited "$slow" docker ps -q --no-trunc); do
    service_memory "$id"
  done
}

service_memory() {  # ID: what its control group uses, without the page cache, as docker counts
  for file in "system.slice/docker-$1.scope/memory.current" "docker/$1/memory.current" \
    "memory/docker/$1/memory.usage_in_bytes" \
    "memory/system.slice/docker-$1.scope/memory.usage_in_bytes"; do
    first "/sys/fs/cgroup/$file" || continue
    service_bytes=$first_line service_cache=
    while read -r name value; do
      case $name in inactive_file | total_inactive_file) service_cache=$value ;; esac
    done 2>/dev/null <"/sys/fs/cgroup/${file%/*}/memory.stat"
    printf 'memory %s %s\n' "$1" $((service_bytes - ${service_cache:-0}))
    return
  done
}

docker_images() {
  limited "$slow" docker system df --format '{{json .Type}} {{json .Size}} {{json .TotalCount}}'
}

python_facts() {  # NAME...: the first Python, and where distributions of these names are installed
  for program in python3 python; do
    has "$program" || continue
    printf 'path %s\n' "$(command -v "$program")"
    limited 5 "$program" -I -c 'if True:
      import sys
      from importlib.util import find_spec
      print("version", ".".join(map(str, sys.version_info[:3])))
      print("pip", find_spec("pip") is not None)
      print("venv", find_spec("ensurepip") is not None)' || printf 'broken %s\n' "$?"
    break
  done
  has uv && printf 'uv %s\n' "$(limited 3 uv --version 2>/dev/null)"
  env_rows=0
  for root in ${VIRTUAL_ENV:+"$VIRTUAL_ENV"} ${CONDA_PREFIX:+"$CONDA_PREFIX"} \
    /usr /usr/local /opt/conda /opt/*/ /opt/*/.venv /venv /app /app/.venv \
    /workspace/*/ /workspace/*/.venv /srv/*/ /srv/*/.venv ${HOME:+"$HOME"/.local} \
    ${HOME:+"$HOME"/*/} ${HOME:+"$HOME"/.venv} ${HOME:+"$HOME"/*/.venv} ${HOME:+"$HOME"/*/venv} \
    ${HOME:+"$HOME"/.virtualenvs/*/} ${HOME:+"$HOME"/*conda*/envs/*/} \
    ${HOME:+"$HOME"/*forge*/envs/*/}; do
    [ -d "$root/lib" ] || [ -d "$root/local/lib" ] || continue
    [ "$env_rows" -lt 200 ] && environment "${root%/}" "$@"
  done
  return 0
}

environment() {  # ROOT NAME...
  env_root=$1
  shift
  for site in "$env_root"/lib/python3*/site-packages "$env_root"/lib/python3*/dist-packages \
    "$env_root"/local/lib/python3*/dist-packages; do
    [ -d "$site" ] || continue
    for name; do
      for file in "$site/$name"-[0-9]*.dist-info "$site/$name"-[0-9]*.egg-info; do
        [ -e "$file" ] || continue
        env_rows=$((env_rows + 1)) file=${file##*/}
        printf 'package\t%s\t%s\t%s\n' "$site" "$name" "${file#"$name"-}"
      done
    done
    [ ! -f "$site/torch/version.py" ] || while IFS= read -r line; do
      case $line in cuda* | hip*) printf 'torch\t%s\t%s\n' "$site" "$line" ;; esac
    done <"$site/torch/version.py"
  done
}

