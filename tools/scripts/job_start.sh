# Starts a detached job once: MARKER ROOT NAME FOLDER PROGRAM [WORD...].
# Making the job's folder is the claim: who cannot make it finds the job of an earlier request.

job_marker=$1 job_root=$2 job_name=$3 job_cwd=$4
shift 4
job_mask=$(umask)
umask 077
job_note=''

[ -z "$job_cwd" ] || [ -d "$job_cwd" ] || refuse "there is no folder $job_cwd to run in"

shell_makes_groups() {  # some shells make groups only where there is a terminal
  set -m 2>/dev/null
  case $- in *m*) set +m ;; *) return 1 ;; esac
}

if command -v setsid >/dev/null 2>&1; then
  job_way=setsid
elif shell_makes_groups; then
  job_way=monitor
elif command -v perl >/dev/null 2>&1; then
  job_way=perl
elif command -v python3 >/dev/null 2>&1; then
  job_way=python3
else
  refuse "no way to give a job its own process group; install setsid (util-linux)"
fi

ends_at_logout() {  # whether the system ends what a user leaves running when he logs out
  command -v loginctl >/dev/null 2>&1 || return 1
  [ "$(loginctl show-session --property=KillUserProcesses --value 2>/dev/null)" = yes ] || return 1
  logout_spared=$(loginctl show-session --property=KillExcludeUsers --value 2>/dev/null)
  case " $logout_spared " in *" $(id -un) "*) return 1 ;; esac
}

outlives_logout() {  # whether the user's own systemd stays, and takes a process in
  [ "$(loginctl show-user "$(id -un)" --property=Linger --value 2>/dev/null)" = yes ] &&
    XDG_RUNTIME_DIR=${XDG_RUNTIME_DIR:-/run/user/$(id -u)} &&
    export XDG_RUNTIME_DIR && systemd-run --user --scope --quiet --collect true 2>/dev/null
}

job_shell=sh
if ends_at_logout; then
  if outlives_logout; then
    job_shell='systemd-run --user --scope --quiet --collect sh'
  else
    job_note="the host ends what a user leaves running at logout (KillUserProcesses=yes): it may end"
    job_note="$job_note with our connection, unless 'loginctl enable-linger $(id -un)' is run there"
  fi
fi

launch() {
  case $job_way in
    setsid) exec setsid $job_shell "$@" ;;
    perl) exec perl -e 'use POSIX; POSIX::setsid(); exec { $ARGV[0] } @ARGV' $job_shell "$@" ;;
    python3)
      exec python3 -c 'import os, sys; os.setsid(); os.execvp(sys.argv[1], sys.argv[1:])' \
        $job_shell "$@"
      ;;
    *) exec $job_shell "$@" ;;
  esac
}

writable() {  # FOLDER: makes it, and sees whether a file can be written there; sets job_why
  job_why=$(mkdir -p -- "$1" 2>&1) || return 1
  job_why=$({ printf '%04096d' 0 | cat >"$1/.try-$$"; } 2>&1) || { rm -f "$1/.try-$$"; return 1; }
  rm -f "$1/.try-$$"
}

settle() {  # ROOT: sets job_root to a folder for this host's jobs that can be written
  settle_first="cannot make the folder for jobs"
  if writable "$1/$host_word"; then
    job_root=$1/$host_word
    return
  fi
  settle_why=$job_why
  for job_root in $(spare_roots); do
    mkdir -m 700 -- "$job_root" 2>/dev/null
    if own_folder "$job_root" && writable "$job_root/$host_word"; then
      job_root=$job_root/$host_word
      job_note="its folder is in $job_root, since the usual one cannot be written: $settle_why"
      return
    fi
  done
  refuse "$settle_first: $settle_why"
}

claim() {  # makes the job's folder; fails where it is there already
  mkdir -- "$job_dir" 2>/dev/null || return 1
  job_why=$({
    printf '%-8s\n' '' >"$job_dir/rc.tmp" && claim_text >"$job_dir/claim" && printf '%s\n' "$@" >"$job_dir/argv" &&
      write_runner "$job_dir/run"
  } 2>&1) && return
  rm -rf -- "$job_dir"
  refuse "cannot write the job's folder $job_dir: $job_why"
}

job_already=1
if ! find_job "$job_root" "$job_name"; then
  settle "$job_root"
  job_dir=$(CDPATH='' cd -- "$job_root" && pwd)/$job_name
  if claim "$@"; then
    job_already=0
    [ "$job_way" != monitor ] || set -m
    launch "$job_dir/run" "$job_dir" "$job_mask" "$job_cwd" "$@" \
      </dev/null >>"$job_dir/out" 2>>"$job_dir/err" &
  elif [ ! -d "$job_dir" ]; then
    refuse "cannot make $job_dir"
  fi
fi

clock
job_end=$((clock_cs + 1500))
while [ ! -s "$job_dir/pid" ] && [ "$clock_cs" -lt "$job_end" ]; do
  nap
  clock
done
read_job
if [ "$job_already" = 1 ]; then
  elsewhere
  anew
  job_note=${job_else:-$job_anew}
fi
answer pid "$job_pid"
answer start "$job_start"
answer already "$job_already"
answer note "$job_note"
answer end 1
