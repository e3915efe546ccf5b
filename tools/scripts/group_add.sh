# Adds the user to a group: MARKER ROOT CALL GROUP. Asked again for the same call, it says what was so
# before the first time.

marker=$1 note=$2/../changes/$3 group=$4
user=$(id -un)
say user "$user"
case " $(id -nG "$user") " in
  *" $group "*) [ -e "$note" ] || say was_member 1 ;;
  *)
    need_root
    getent group "$group" >/dev/null 2>&1 || grep -q "^$group:" /etc/group ||
      refuse "there is no group $group; nothing was changed"
    mkdir -p "${note%/*}" && : >"$note" || refuse "no record can be kept; nothing was changed"
    said=$(as_root env PATH="$PATH:/usr/sbin:/sbin" usermod -a -G "$group" "$user" 2>&1) ||
      refuse "usermod failed: $said"
    ;;
esac
say groups_next "$(id -nG "$user")"
say end 1
