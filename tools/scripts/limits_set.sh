# Writes our file of login limits: MARKER ROOT CALL MEMLOCK NOFILE. What was there is kept beside it.
# A limit that nobody can raise here (a container without CAP_SYS_RESOURCE) would make pam_limits
# refuse every login, so it is tried first, or has to be within what the first process may have.
# `*` is not root: root's limits are set only where root logs in, whose own were looked at.

marker=$1 call=$3 memlock=$4 nofile=$5
file=/etc/security/limits.d/90-bringup.conf
need_root
[ -d "${file%/*}" ] || refuse "there is no ${file%/*}: logins here take no limits from PAM"
within() {  # NAME VALUE UNIT: whether the first process may have so much, in units of so many
  most=$(sed -n "s/^Max $1  *[^ ]*  *\([^ ]*\).*/\1/p" /proc/1/limits 2>/dev/null)
  case $most:$2 in
    unlimited:*) ;;
    *:unlimited | :* | *[!0-9]*:*) return 1 ;;
    *) [ "$((most / $3))" -ge "$2" ] ;;
  esac
}

can_be() {  # OPTION VALUE NAME
  # shellcheck disable=SC2016
  as_root sh -c 'ulimit -H "-$1" "$2"' sh "$1" "$2" 2>/dev/null ||
    refuse "not even root may raise $3 to $2 here; a limits file would make logins fail, so nothing \
was changed"
}
within "locked memory" "$memlock" 1024 || can_be l "$memlock" memlock
within "open files" "$nofile" 1 || can_be n "$nofile" nofile
new="# Written by bringup, call $call."
everyone='*'
[ "$(id -u)" != 0 ] || everyone='* root'
set -f
for who in $everyone; do
  for kind in hard soft; do
    new=$(printf '%s\n%s %s memlock %s\n%s %s nofile %s' "$new" \
      "$who" "$kind" "$memlock" "$who" "$kind" "$nofile")
  done
done
set +f
kept=/etc/security/.bringup-$call.conf
if [ -e "$file" ] && ! grep -q "call $call\.\$" "$file"; then
  as_root cp -p -- "$file" "$kept" || refuse "$file cannot be kept; nothing was changed"
fi
[ -e "$kept" ] && say backup "$kept"
# shellcheck disable=SC2016
as_root sh -c 'umask 022; printf "%s\n" "$2" >"$1.tmp" && mv "$1.tmp" "$1"' sh "$file" "$new" ||
  refuse "$file cannot be written"
say path "$file"
say end 1
