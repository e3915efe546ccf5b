# The side of a transfer that gives; see tools/probes/transfer_source.py.

# entries NAME...: describe them; find starts this in a shell of its own, many names at once
entries() {
	if ! found=$(stat -c '%f %s %Y %a %y' "$@" 2>/dev/null); then
		if [ $# -gt 1 ]; then
			for one; do entries "$one"; done
			return
		fi
		encode "${1#"$top"/}"
		say bad "$word" 'it\0040went\0040away\0040meanwhile'
		return
	fi
	printf '%s\n' "$found" | while read -r kind size seconds mode _ clock _; do
		full=$1
		shift
		path=${full#"$top"/}
		case ${path##*/} in
		?*.part-[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f])
			say part -
			continue
			;;
		esac
		stamp $clock
		bits "$mode"
		encode "$path"
		case $kind in
		8???) file_row ;;
		4???) say dir "$word" "$mtime" "$mode" ;;
		a???) link_row ;;
		*) say bad "$word" 'no\0040file' ;;
		esac
	done
}

# stamp CLOCK: mtime in nanoseconds, of $seconds and a clock with its fraction
stamp() {
	case $1 in
	*.?????????) mtime=$seconds${1#*.} ;;
	*) mtime=${seconds}000000000 ;;
	esac
}

file_row() {
	if [ -r "$full" ]; then
		say file "$word" "$size" "$mtime" "$mode"
	else
		say bad "$word" 'it\0040may\0040not\0040be\0040read'
	fi
}

# link_row: a link inside of the folder as one, another as the file that it leads to
link_row() {
	here=$word
	target=$(readlink "$full" && echo x)
	target=${target%
x}
	if [ -d "$full" ] && ! stays; then
		say bad "$here" 'a\0040link\0040to\0040a\0040folder\0040that\0040is\0040not\0040part\0040of\0040this\0040one'
	elif [ ! -e "$full" ]; then
		say bad "$here" 'a\0040link\0040that\0040leads\0040nowhere'
	elif stays; then
		encode "$target"
		say link "$here" "$word"
	else
		read -r size seconds mode _ clock _ <<END
$(stat -L -c '%s %Y %a %y' "$full")
END
		stamp $clock
		if [ -f "$full" ]; then bits "$mode" && file_row; else say bad "$here" 'no\0040file'; fi
	fi
}

# stays: whether $target, of the link $path, is inside of the folder by its words
stays() {
	case $target in /*) return 1 ;; esac
	rest=$target up=$path
	while :; do
		case $rest in
		../*) ;;
		*) break ;;
		esac
		rest=${rest#../}
		case $up in */*) up=${up%/*} ;; *) return 1 ;; esac
	done
	plain "$rest" && real=$(readlink -f "$full") && case $real in "$top"/*) ;; *) return 1 ;; esac
}

# give WORD FROM SUM
give() {
	number "$2"
	decode "$1"
	full=$top/$name
	[ "$name" = . ] && full=$top
	before=$(stat -L -c '%s %Y %y %a' "$full" 2>/dev/null)
	if [ ! -f "$full" ] || [ ! -r "$full" ]; then
		say fail "$1" 'it\0040cannot\0040be\0040read\0040any\0040more'
		return
	fi
	read -r size seconds _ clock _ mode <<END
$before
END
	stamp $clock
	bits "$mode"
	at=0
	if [ "$2" -gt 0 ]; then
		sum_of "$full" "$2"
		[ "$sum" = "$3" ] && at=$2
	fi
	say file "$1" "$at" "$size" "$mtime" "$mode"
	while [ "$at" -lt "$size" ]; do
		count=$((size - at))
		[ "$count" -gt 4194304 ] && count=4194304
		say data "$count"
		blocks=$((count / block + 1))
		{
			dd if="$full" bs=$block skip=$((at / block)) count=$blocks
			dd if=/dev/zero bs=$block count=$blocks
		} 2>/dev/null | head -c "$count"
		at=$((at + count))
	done
	sum_of "$full"
	if [ "$(stat -L -c '%s %Y %y %a' "$full" 2>/dev/null)" = "$before" ]; then
		say end "$sum" -
	else
		say fail "$1" 'it\0040changed\0040while\0040it\0040was\0040read'
	fi
}

# asked: answers what is asked before the go; what is to be sent is kept
asked() {
	while read -r order path from known; do
		case $order in
		idle) ;;
		hash)
			decode "$path"
			full=$top/$name
			[ "$name" = . ] && full=$top
			sum_of "$full" >&3
			say sum "$path" "$sum" >&3
			;;
		get) say "$path" "$from" "$known" ;;
		go)
			[ -z "$path" ] || refuse 'it has no Python, by which alone it could send directly' >&3
			return
			;;
		*) refuse "it was asked for $order" >&3 ;;
		esac
	done
	exit 3
}

if [ "$1" = list ]; then
	top=$4
	shift 4
	entries "$@"
	exit
fi
top=$(readlink -f "$root" && echo x)
top=${top%
x}
[ -e "$root" ] || refuse 'there is no such file or folder'
if [ -d "$top" ]; then
	say root dir
	bringup_side=$s
	export bringup_side
	find "$top" -mindepth 1 -exec sh -c 'eval "${bringup_side%x}"' sh list - - "$top" {} + </dev/null ||
		refuse 'not all of it can be listed'
	count=$(find "$top" -mindepth 1 -exec sh -c 'printf %.0sx "$@"' sh {} + </dev/null)
	say listed ${#count}
else
	say root file
	path=. full=$top word=.
	read -r kind size seconds mode _ clock _ <<END
$(stat -c '%f %s %Y %a %y' "$top")
END
	stamp $clock
	bits "$mode"
	case $kind in 8???) file_row ;; *) say bad . 'no\0040file' ;; esac
	say listed 1
fi
exec 3>&1
gets=$(asked) || exit
each give "$gets"
say bye -
