# What both sides of a transfer share where the host has no Python. Words: QUIET_S TAG ROOT.
# A line is words between blanks; a name's odd bytes are \0ooo. See tools/probes/transfer_lines.py.
LC_ALL=C
export LC_ALL
set -f
tag=$2 root=$3
block=65536
nl='
'
case $root in /*) ;; *) root=./$root ;; esac

say() { printf '%s\n' "$*"; }

refuse() {
	encode "$1"
	say refused "$word"
	exit 4
}

# encode NAME: its word, in $word
encode() {
	case $1 in
	*[!A-Za-z0-9._/+=@,:-]*)
		word=$(printf %s "$1" | od -An -v -to1 | tr -d '\n' | sed 's/ \{1,\}/\\0/g')
		;;
	*) word=$1 ;;
	esac
}

# decode WORD: its name, in $name
decode() {
	case $1 in
	*\\*) name=$(printf '%bx' "$1") && name=${name%x} ;;
	*) name=$1 ;;
	esac
}

# bits MODE: its permission bits, in $mode; what else a mode tells, such as setuid, never travels
bits() {
	case $1 in
	'' | *[!0-7]*) refuse "no mode of a file: $1" ;;
	????*) mode=${1#"${1%???}"} ;;
	*) mode=$1 ;;
	esac
}

# number WORD: refuses what is none, for some shells work out, and run, what stands in a number
number() {
	case $1 in
	'' | 0?* | *[!0-9]* | ???????????????????*) refuse "no number: $1" ;;
	esac
}

# moment MTIME: refuses what is no time in nanoseconds
moment() {
	case ${1#-} in '' | *[!0-9]*) refuse "no time of a file: $1" ;; esac
}

# each FUNCTION ROWS: call it with the words of every row
each() {
	IFS=$nl
	for row in $2; do
		unset IFS
		"$1" $row
	done
	unset IFS
}

# plain PATH: whether it stays in its folder
plain() {
	case "/$1/" in
	*//* | */./* | */../*) return 1 ;;
	esac
}

# sum_of FILE [BYTES]: in $sum; says now and then that it works on a large one
sum_of() {
	beat=
	if [ "$(stat -L -c %s "$1")" -gt 268435456 ]; then
		(while sleep 5 >/dev/null 3>&-; do say idle; done) &
		beat=$!
	fi
	if [ $# -gt 1 ]; then
		sum=$(head -c "$2" "$1" | sha256sum)
	else
		sum=$(sha256sum <"$1")
	fi
	[ -z "$beat" ] || kill "$beat" 2>/dev/null
	sum=${sum%% *}
}

# real_folder PATH: where it really is, in $real; fails where there is no such folder
real_folder() {
	real=$(cd -P "$1" 2>/dev/null && pwd -P && echo x) || return 1
	real=${real%
x}
	[ "$real" = / ] && real=
	return 0
}

if [ "$1" != list ]; then
	for program in dd sha256sum od stat sed head; do
		command -v "$program" >/dev/null || refuse "it has neither Python 3.8 nor $program"
	done
	say transfer 1
fi
