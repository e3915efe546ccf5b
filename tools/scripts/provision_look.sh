# Looks at what a host has of what runs need: MARKER ROOT FOLDER PACKAGE... It changes nothing.

marker=$1 folder=$3
shift 3
export LC_ALL=C

if [ -r /etc/os-release ]; then
  # shellcheck disable=SC1091
  (
    . /etc/os-release
    say os_id "${ID:-}"
    say os_like "${ID_LIKE:-}"
    say os_name "${PRETTY_NAME:-}"
  )
fi
for manager in apt-get dnf; do
  has "$manager" && say manager "$manager" && break
done
say user "$(id -un)"
say sudo "$(sudo_state)"
say groups "$(id -nG)"
say groups_next "$(id -nG "$(id -un)")"
[ -d /run/systemd/system ] && say systemd 1
[ -e /run/reboot-required ] && say reboot 1
has apt-get && for package; do
  found=$(apt-cache policy "$package" 2>/dev/null | sed -n 's/^  Candidate: //p')
  [ -n "$found" ] && [ "$found" != "(none)" ] && printf '%s\n' "$package"
done | tell known

if has python3; then
  say python "$(python3 -c 'import platform; print(platform.python_version())' 2>&1 | tail -n 1)"
  python3 -I -c 'import ensurepip, venv' >/dev/null 2>&1 && say ensurepip 1
fi
at_home "$folder"
if [ -e "$at" ] || [ -L "$at" ]; then
  say env_there 1
  if [ -x "$at/bin/python" ] && [ -e "$at/pyvenv.cfg" ]; then
    say env_python "$("$at/bin/python" -I -c 'import platform; print(platform.python_version())' 2>&1 |
      tail -n 1)"
    "$at/bin/python" -I -m pip --version 2>/dev/null | tail -n 1 | tell env_pip
  fi
fi

has docker && say docker "$(docker --version 2>&1 | tail -n 1)"
(PATH=$PATH:/usr/sbin:/sbin; has dockerd) && say dockerd 1
if has docker; then
  server=$(limited 10 docker version --format '{{.Server.Version}}' 2>&1 </dev/null)
  if [ $? -eq 0 ]; then
    say docker_server "$server"
    limited 10 docker info --format '{{json .Runtimes}} {{.LiveRestoreEnabled}}' </dev/null 2>/dev/null |
      tell docker_info
    limited 10 docker ps --format '{{.Names}}' </dev/null 2>/dev/null | tell docker_running
  else
    printf '%s\n' "$server" | tell docker_error
  fi
fi

for vendor in /sys/bus/pci/devices/*/vendor; do
  [ -r "$vendor" ] && read -r id <"$vendor" && [ "$id" = 0x10de ] && say gpu_pci 1 && break
done
if has nvidia-smi; then
  limited 15 nvidia-smi -L 2>&1 </dev/null | tell gpus
fi
has nvidia-ctk && say toolkit "$(nvidia-ctk --version 2>&1 | head -n 1)"

say memlock "$(ulimit -H -l 2>&1)"
say nofile "$(ulimit -H -n 2>&1)"
[ -r /etc/security/limits.d/90-bringup.conf ] && tell limits </etc/security/limits.d/90-bringup.conf
say end 1
