# Takes back one change of ours: MARKER ROOT WHAT CALL NAME... Paths are our own, made of the call's
# name; what is given has to be the same. Without the record of before nothing is removed.

marker=$1 before=$2/../packages/$4.before note=$2/../changes/$4 what=$3 call=$4
shift 4
export LC_ALL=C

take_packages() {  # exactly these; not what others have come to need
  need_root
  [ -s "$before" ] || refuse "there is no record of what was there before; nothing was removed"
  left=
  for name; do
    cut -d : -f 1 "$before" | grep -q -x -F -e "$name" &&
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
  if dpkg-query -L $left 2>/dev/null | grep -q -e '/dockerd$' -e '/containerd$'; then
    spare
  fi
  # shellcheck disable=SC2086
  said=$(as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300 \
    --no-auto-remove remove -- $left 2>&1 </dev/null) || refuse "apt-get: $(echo "$said" | tail -n 5)"
}

spare() {  # NAME...: goes on only where no other container would stop
  others=$(others_running "$@") || {
    cat /proc/[0-9]*/comm 2>/dev/null | grep -q '^containerd-shim' &&
      refuse "Docker does not answer, and containers run that would stop; nothing was changed"
    return 0
  }
  [ -z "$others" ] ||
    refuse "containers run by now that would stop: ${others% }; nothing was changed"
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
  [ -e "$note" ] && [ "$2" = "$(id -un)" ] ||
    refuse "there is no record that this call put $2 into $1; nothing was changed"
  case " $(id -nG "$2") " in
    *" $1 "*)
      said=$(as_root gpasswd -d "$2" "$1" 2>&1) || refuse "gpasswd failed: $said"
      ;;
  esac
}

mine() {  # PATH: one of our own, else nothing is done; sets backup where it is the copy of before
  case $1 in
    "$kept") backup=$kept ;;
    "$file" | "$ours") ;;
    *) refuse "$1 is no file of this change; nothing was changed" ;;
  esac
}

put_back() {
  if [ -n "$backup" ]; then
    as_root mv -f -- "$backup" "$file" || refuse "$backup cannot be put back"
  else
    as_root rm -f -- "$file" || refuse "$file cannot be removed"
  fi
}

take_limits() {  # PATH [BACKUP]: only where it is as this call has written it
  need_root
  file=/etc/security/limits.d/90-bringup.conf ours=$file kept=/etc/security/.bringup-$call.conf
  backup=
  for given; do mine "$given"; done
  grep -q -x -F "# Written by bringup, call $call." "$file" 2>/dev/null || {
    there "$file" && refuse "$file has been changed since; it is left alone"
    [ -n "$backup" ] || return 0
  }
  put_back
}

take_runtime() {  # PATH WRITTEN [BACKUP] -- CONTAINER...: those that may stop
  need_root
  file=/etc/docker/daemon.json
  ours=$file.bringup-$call kept=$file.before-$call
  backup=
  while [ $# -gt 0 ]; do
    given=$1
    shift
    [ "$given" != -- ] || break
    mine "$given"
  done
  as_root cmp -s -- "$file" "$ours" || refuse "$file has been changed since; it is left alone"
  outlive_docker || spare "$@"
  put_back
  as_root rm -f -- "$ours"
  if [ -d /run/systemd/system ]; then
    as_root systemctl restart docker
  else
    as_root env PATH="$PATH:/usr/sbin:/sbin" service docker restart
  fi >/dev/null 2>&1 || refuse "$file is as it was, and Docker did not start again with it"
}

case $what in
  packages) take_packages "$@" ;;
  environment) take_environment "$@" ;;
  group) take_group "$@" ;;
  limits) take_limits "$@" ;;
  runtime) take_runtime "$@" ;;
  *) refuse "nothing is known of $what" ;;
esac
say end 1
