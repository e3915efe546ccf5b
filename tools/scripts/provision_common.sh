# Shared by the scripts that make a host ready: the form of answers, and how root is become.

say() {  # KEY VALUE: one line behind the run's marker, so that banners do not matter
  printf '%s %s=%s\n' "$marker" "$1" "$(printf '%s' "$2" | tr '\n\r' '  ')"
}

etx=$(printf '\003')

tell() {  # KEY: standard input as one text between STX and ETX, at most so much of its end
  printf '%s %s=\002\n' "$marker" "$1"
  tr -d '\000\003' | tail -c "${2:-16384}"
  printf '\n\003\n'
}

refuse() {  # REASON: says why nothing was done, and ends the script
  say error "$1"
  say end 1
  exit 0
}

has() {
  command -v "$1" >/dev/null 2>&1
}

limited() {  # SECONDS PROGRAM [WORD...]
  if has timeout; then
    timeout "$@"
  else
    shift
    "$@"
  fi
}

as_root() {  # never asks for a password: there is no terminal
  if [ "$(id -u)" = 0 ]; then
    "$@" </dev/null
  else
    sudo -n -- "$@" </dev/null
  fi
}

sudo_state() {  # prints root, yes, absent, or what sudo says against it
  if [ "$(id -u)" = 0 ]; then
    echo root
  elif ! has sudo; then
    echo absent
  elif sudo_says=$(LC_ALL=C sudo -n true 2>&1 </dev/null); then
    echo yes
  else
    printf '%s\n' "${sudo_says:-sudo says no}" | tail -n 1
  fi
}

need_root() {
  case $(sudo_state) in
    root | yes) ;;
    absent) refuse "there is no sudo, and $(id -un) is not root; nothing was changed" ;;
    *) refuse "sudo wants a password from $(id -un); nothing was changed" ;;
  esac
}

at_home() {  # PATH: sets at, with a leading ~/ put in full
  case $1 in
    "~/"*) at=$HOME/${1#"~/"} ;;
    *) at=$1 ;;
  esac
}

installed() {  # every package that is installed now, as NAME:ARCHITECTURE VERSION
  # shellcheck disable=SC2016
  dpkg-query -W -f '${db:Status-Status} ${Package}:${Architecture} ${Version}\n' 2>/dev/null |
    sed -n 's/^installed //p' | LC_ALL=C sort
}

there() {  # PATH: whether it is there, also where only root may look
  as_root test -e "$1"
}

docker_says() {  # WORD...: asks Docker as root, who may also after a membership has ended
  if has timeout; then as_root timeout 10 docker "$@"; else as_root docker "$@"; fi 2>/dev/null
}

others_running() {  # NAME...: prints the containers that run and are none of these
  running=$(docker_says ps --format '{{.Names}}') || return 1
  for one in $running; do
    case " $* " in *" $one "*) ;; *) printf '%s ' "$one" ;; esac
  done
}

outlive_docker() {  # whether containers go on running where the daemon is started anew
  [ "$(docker_says info --format '{{.LiveRestoreEnabled}}')" = true ]
}
