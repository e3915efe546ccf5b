# Takes back one change of ours: MARKER ROOT WHAT CALL NAME...

marker=$1 before=$2/../packages/$4.before what=$3 call=$4
shift 4
export LC_ALL=C

take_packages() {  # exactly these; not what others have come to need
  need_root
  left=
  for name; do
    cut -d : -f 1 "$before" 2>/dev/null | grep -q -x -F -e "$name" &&
      refuse "$name was there before this change; nothing was removed"
    dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null | grep -q '^installed' &&
      left="$left $name"
  done
  [ -n "$left" ] || return 0
  # shellcheck disable=SC2086
  planned=$(apt-get -s -y remove -- $left 2>&1 </dev/null | sed -n 's/^Remv \([^ :]*\).*/\1/p')
  for name in $planned; do
    case " $* " in
      *" $name "*) ;;
      *) refuse "$name, which is not of this change, needs some of it; nothing was removed" ;;
    esac
  done
  # shellcheck disable=SC2086
  said=$(as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
    --no-auto-remove remove -- $left 2>&1 </dev/null) || refuse "apt-get: $(echo "$said" | tail -n 5)"
}

take_environment() {  # only where our own note is in it
  at_home "$1"
  [ -e "$at" ] || return 0
  [ "$(cat "$at/.bringup-made" 2>/dev/null)" = "$call" ] ||
    refuse "$at was not made by this call; it is left alone"
  rm -rf -- "$at" || refuse "$at cannot be removed"
}

take_group() {
  need_root
  case " $(id -nG "$2") " in
    *" $1 "*)
      said=$(as_root gpasswd -d "$2" "$1" 2>&1) || refuse "gpasswd failed: $said"
      ;;
  esac
}

take_file() {  # PATH [BACKUP]: only where it is as this call has written it
  need_root
  grep -q "call $call\.\$" "$1" 2>/dev/null || {
    [ -e "$1" ] && refuse "$1 has been changed since; it is left alone"
    [ -n "$2" ] || return 0
  }
  if [ -n "$2" ]; then
    as_root mv -- "$2" "$1" || refuse "$2 cannot be put back"
  else
    as_root rm -f -- "$1" || refuse "$1 cannot be removed"
  fi
}

take_runtime() {  # PATH WRITTEN [BACKUP]
  need_root
  cmp -s -- "$1" "$2" || refuse "$1 has been changed since; it is left alone"
  if [ -n "$3" ]; then
    as_root mv -f -- "$3" "$1" || refuse "$3 cannot be put back"
  else
    as_root rm -f -- "$1" || refuse "$1 cannot be removed"
  fi
  as_root rm -f -- "$2"
  if [ -d /run/systemd/system ]; then
    as_root systemctl restart docker
  else
    as_root env PATH="$PATH:/usr/sbin:/sbin" service docker restart
  fi >/dev/null 2>&1 || refuse "$1 is as it was, and Docker did not start again with it"
}

case $what in
  packages) take_packages "$@" ;;
  environment) take_environment "$@" ;;
  group) take_group "$@" ;;
  limits) take_file "$@" ;;
  runtime) take_runtime "$@" ;;
  *) refuse "nothing is known of $what" ;;
esac
say end 1
