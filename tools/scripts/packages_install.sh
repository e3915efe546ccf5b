# Installs packages: MARKER ROOT CALL REMOVALS SECONDS PACKAGE... Asked again for the same call, it
# goes on from what was there before the first time. What apt says goes to a file, so it works on
# when we are gone.

marker=$1 record=$2/../packages/$3 removals=$4 patience=$5
shift 5
export LC_ALL=C
umask 077
need_root
has apt-get || refuse "there is no apt-get here; nothing was changed"
mkdir -p "${record%/*}" || refuse "no folder for the record can be made; nothing was changed"
if [ ! -e "$record.before" ]; then
  installed >"$record.new" && [ -s "$record.new" ] && mv "$record.new" "$record.before" ||
    refuse "the packages that are there cannot be listed; nothing was changed"
fi

apt() {
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l LC_ALL=C \
    apt-get -q -y -o "DPkg::Lock::Timeout=$patience" -o Acquire::Retries=2 \
    -o Dpkg::Options::=--force-confold --no-install-recommends "$@" >>"$record.log" 2>&1 </dev/null
}

install() {
  if [ "$removals" = yes ]; then apt install -- "$@"; else apt --no-remove install -- "$@"; fi
}

install "$@"
code=$?
if [ $code -ne 0 ] && grep -q 'dpkg --configure -a' "$record.log"; then
  as_root env DEBIAN_FRONTEND=noninteractive dpkg --force-confold --configure -a \
    >>"$record.log" 2>&1 </dev/null
  install "$@"
  code=$?
fi
if [ $code -ne 0 ] && tail -n 20 "$record.log" |
  grep -q -e 'Unable to locate' -e 'no installation candidate' -e '404  *Not Found'; then
  apt update
  install "$@"
  code=$?
fi
installed >"$record.after"
say code "$code"
tail -n 60 "$record.log" | tell said
sed -n 's/^Setting up \([^ :]*\)[: ].*/\1/p; s/^Unpacking \([^ :]*\)[: ].*/\1/p' "$record.log" |
  LC_ALL=C sort -u | tell handled 65536
LC_ALL=C comm -13 "$record.before" "$record.after" | tell after 65536
LC_ALL=C comm -23 "$record.before" "$record.after" | tell before 65536
say end 1
