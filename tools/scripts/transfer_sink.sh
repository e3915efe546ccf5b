# The side of a transfer that takes; see tools/probes/transfer_sink.py.

# place WORD: $full and the folder it is in, $folder; refuses what lies elsewhere
place() {
	decode "$1"
	if [ "$name" = . ]; then
		full=$top
	else
		plain "$name" || refuse "a path leads out of the folder: $1"
		full=$top/$name
	fi
	folder=${full%/*}
	[ -n "$folder" ] || folder=/
}

# inside: whether $folder, all links followed, is within the folder of the transfer
inside() {
	[ "$full" = "$top" ] && return 0
	[ "$folder" = "$known_folder" ] && return 0
	real_folder "$folder" || return 0
	case $real/ in "$top"/*) known_folder=$folder ;; *) return 1 ;; esac
}

# part_of SIZE MTIME: the name of what is unfinished, in $part
part_of() {
	name=${full##*/}
	sign=$(printf '%s %s %s' "$1" "$2" "$name" | sha256sum)
	short=$(printf %s "$name" | head -c 200 && echo x)
	part=$folder/${short%x}.part-$(printf %.12s "$sign")
}

# same_time SECONDS CLOCK MTIME: whether they are the same, as far as both tell it
same_time() {
	fraction=000000000
	case $2 in *.?????????) fraction=${2#*.} ;; esac
	whole=${3%?????????}
	[ "$1" = "$whole" ] || return 1
	told=${3#"$whole"}
	[ "$told" = 000000000 ] || [ "$fraction" = 000000000 ] || [ "${told%???}" = "${fraction%???}" ]
}

# standing WORD SIZE MTIME MODE
standing() {
	place "$1"
	if ! inside; then
		say clash "$1" 'a\0040link\0040there\0040leads\0040out\0040of\0040the\0040folder'
	elif [ -L "$full" ] || { [ -e "$full" ] && [ ! -f "$full" ]; }; then
		say clash "$1" 'something\0040that\0040is\0040no\0040file\0040is\0040there'
	elif [ -e "$full" ]; then
		read -r size seconds _ clock _ <<END
$(stat -c '%s %Y %y' "$full")
END
		if [ "$size" != "$2" ]; then
			say other "$1" -
		elif same_time "$seconds" "$clock" "$3"; then
			say same "$1"
		else
			sum_of "$full"
			say other "$1" "$sum"
		fi
	else
		unfinished "$@"
	fi
}

unfinished() {
	part_of "$2" "$3"
	if [ ! -f "$part" ] || [ -L "$part" ]; then
		say need "$1"
	elif ! lock; then
		say busy "$1"
	else
		size=$(stat -c %s "$part")
		[ "$size" -gt "$2" ] && size=$2
		size=$((size / block * block))
		sum_of "$part" "$size"
		unlock
		say part "$1" "$size" "$sum"
	fi
}

# lock: holds $part; what a process held that has ended is taken over
lock() {
	if ! (set -C; echo $$ >"$part.lock") 2>/dev/null; then
		read -r holder <"$part.lock" || return 1
		kill -0 "$holder" 2>/dev/null && return 1
		echo $$ >"$part.lock"
	fi
	held=$part.lock
}

unlock() {
	[ -z "$held" ] || rm -f "$held"
	held=
}

# take BYTES: move so many from our input to the end of $part
take() {
	{
		[ "$1" -lt $block ] || dd bs=$block count=$(($1 / block)) iflag=fullblock || return 1
		[ $(($1 % block)) -eq 0 ] || dd bs=$(($1 % block)) count=1 iflag=fullblock
	} 2>/dev/null >>"$part"
}

begin() {
	place "$1"
	mkdir -p "$folder" || refuse "cannot be made: $folder"
	inside || refuse "a link leads out of the folder: $1"
	part_of "$3" "$4"
	[ ! -L "$part" ] || refuse "a link is there: $part"
	unlock
	lock || refuse "another transfer is writing $part"
	if [ "$2" -gt 0 ]; then
		dd if=/dev/null of="$part" bs=$block seek=$(($2 / block)) count=0 2>/dev/null
	else
		(umask 077 && : >"$part")
	fi
	item=$1 wanted=$3 mtime=$4 mode=$5
}

# finish SUM: give the file its name; never over what came there meanwhile
finish() {
	dd if=/dev/null of="$part" conv=notrunc,fsync 2>/dev/null
	sum_of "$part"
	if [ "$sum" != "$1" ] || [ "$(stat -c %s "$part")" != "$wanted" ]; then
		say wrong "$item"
		unlock
		return
	fi
	chmod "$mode" "$part"
	time_of "$part" "$mtime"
	backup=$(printf %s "$name" | head -c 200 && echo x)
	backup=$folder/${backup%x}.before-$tag
	if [ "$full" -ef "$backup" ]; then
		mv -f "$part" "$full"
	else
		{ ln "$part" "$full" 2>/dev/null && rm -f "$part"; } ||
			{ [ ! -e "$full" ] && mv "$part" "$full"; }
	fi || {
		say failed "$item" 'it\0040cannot\0040get\0040its\0040name'
		unlock
		return
	}
	unlock
	say done "$item" "$sum"
}

# time_of FILE MTIME
time_of() {
	whole=${2%?????????}
	touch -d "@$whole.${2#"$whole"}" "$1" 2>/dev/null || touch -d "@$whole" "$1"
}

# aside WORD: keep what is there under a further name
aside() {
	place "$1"
	backup=$(printf %s "${full##*/}" | head -c 200 && echo x)
	ln "$full" "$folder/${backup%x}.before-$tag" || refuse "cannot be set aside: $full"
}

retime() {
	place "$1"
	time_of "$full" "$2"
	chmod "$3" "$full"
}

# aims_inside: whether the link $name, in $folder as it really is, stays there by its words;
# a step up behind a name is none of ours, for that may be a link
aims_inside() {
	real_folder "$folder" || return 1
	case $name in /*) return 1 ;; esac
	at=${real#"$top"} rest=$name/ down=
	while [ -n "$rest" ]; do
		step=${rest%%/*}
		rest=${rest#*/}
		case $step in
		'' | .) ;;
		..)
			[ -n "$at" ] && [ -z "$down" ] || return 1
			at=${at%/*}
			;;
		*) at=$at/$step down=1 ;;
		esac
	done
	[ -n "$at" ]
}

make_link() {
	place "$1"
	decode "$2"
	mkdir -p "$folder" || refuse "cannot be made: $folder"
	inside || refuse "a link leads out of the folder: $1"
	if [ -L "$full" ] && [ "$(readlink "$full")" = "$name" ]; then return; fi
	aims_inside || refuse "a link leads out of the folder: $1"
	ln -s "$name" "$full" || refuse "cannot be linked: $full"
	[ -e "$full" ] || return 0 # busybox tells a wrong place for what is not there yet
	aim=$(readlink -f "$full")
	case $aim in
	"$top"/*) ;;
	*) rm -f "$full" && refuse "a link leads out of the folder: $1" ;;
	esac
}

held='' known_folder='' dirs='' links='' item=''
trap 'unlock' EXIT
trap 'exit 3' HUP INT TERM PIPE
case $root in */?*) parent=${root%/*} ;; *) parent=/ ;; esac
near=${parent:-/}
while [ ! -d "$near" ]; do
	if [ -e "$near" ] || [ -L "$near" ]; then refuse "$near is no folder"; fi
	near=${near%/*}
	near=${near:-/}
done
real_folder "$near" || refuse "$near cannot be used"
top=$real${root#"${near%/}"}
[ -L "$root" ] && [ -d "$root" ] && real_folder "$root" && top=$real
existed=new
[ -e "$top" ] && existed=old
[ -d "$top" ] && near=$top
probe=$near/.bringup-$$
(set -C && : >"$probe" && rm -f "$probe") 2>/dev/null || refuse "nothing may be written to $near"

while read -r kind path a b c; do
	case $kind in
	plan) break ;;
	file) standing "$path" "$a" "$b" "$c" ;;
	dir) dirs="$dirs$path $a $b
" ;;
	link)
		links="$links$path $a
"
		place "$path"
		decode "$a"
		if [ -e "$full" ] || [ -L "$full" ]; then
			[ "$(readlink "$full")" = "$name" ] || say clash "$path" 'something\0040else\0040is\0040there'
		fi
		;;
	esac
done
say free "$(df -Pk "$near" | { read -r _; read -r _ _ _ free _; echo "$free"; })000"
say planned "$existed"
while read -r kind path a b c; do
	case $kind in
	go) break ;;
	touch) retime "$path" "$a" "$b" ;;
	replace) aside "$path" ;;
	esac
done
[ -z "$path" ] || refuse 'it has no Python, by which alone it could take a direct link'
umask 022
lines=$dirs
while [ -n "$lines" ]; do
	set -- ${lines%%
*}
	lines=${lines#*
}
	place "$1"
	mkdir -p "$full" || refuse "cannot be made: $full"
done
lines=$links
while [ -n "$lines" ]; do
	set -- ${lines%%
*}
	lines=${lines#*
}
	make_link "$1" "$2"
done
while read -r kind a b c d e; do
	case $kind in
	file) begin "$a" "$b" "$c" "$d" "$e" ;;
	data)
		take "$a" || {
			say stopped "$item" 'it\0040cannot\0040be\0040written:\0040the\0040disk\0040may\0040be\0040full'
			exit 3
		}
		;;
	end) finish "$a" ;;
	fail) say failed "$a" "$b" ;;
	bye)
		lines=$dirs
		while [ -n "$lines" ]; do
			set -- ${lines%%
*}
			lines=${lines#*
}
			place "$1"
			chmod "$3" "$full"
			time_of "$full" "$2"
		done
		say bye
		exit 0
		;;
	esac
done
exit 3
