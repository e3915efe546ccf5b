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

# inside FOLDER: whether what is there of it, all links followed, is in the transfer's folder
inside() {
	[ "$full" = "$top" ] && return 0
	[ "$1" = "$known_folder" ] && return 0
	up=$1
	while [ "$up" != "$top" ] && [ ! -d "$up" ]; do up=${up%/*}; done
	[ "$up" = "$top" ] && return 0
	real_folder "$up" || return 1
	case $real/ in "$top"/*) ;; *) return 1 ;; esac
}

# make FOLDER
make() {
	inside "$1" || refuse "a link there leads out of the folder: $1"
	mkdir -p "$1" || refuse "cannot be made: $1"
	known_folder=$1
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
	if ! inside "$folder"; then
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
	else
		lock
		if [ $? -eq 1 ]; then # without room for a lock nobody else has it
			say busy "$1"
			return
		fi
		size=$(stat -c %s "$part")
		[ "$size" -gt "$2" ] && size=$2
		size=$((size / block * block))
		sum_of "$part" "$size"
		unlock
		say part "$1" "$size" "$sum"
	fi
}

# started PID: when, in $since, for a number may be given again; nothing where that is hidden
started() {
	since=
	read -r since 2>/dev/null <"/proc/$1/stat" || return 0
	set -- ${since##*) }
	shift 19
	since=$1
}

# holds: whether the process that $part.lock names still runs
holds() {
	holder='' then=''
	read -r holder then 2>/dev/null <"$part.lock"
	if [ -z "$holder" ] && [ -e "$part.lock" ]; then
		sleep 1 # it may be about to be written
		read -r holder then 2>/dev/null <"$part.lock"
	fi
	case $holder in '' | *[!0-9]*) return 1 ;; esac
	kill -0 "$holder" 2>/dev/null || return 1
	started "$holder"
	[ -z "$then" ] || [ -z "$since" ] || [ "$then" = "$since" ]
}

# lock: holds $part, also where who held it has ended; 1: another holds it, 2: there is no room
lock() {
	if ! (set -C && : >"$part.lock") 2>/dev/null; then
		holds && return 1
	fi
	started $$
	if ! echo "$$ $since" 2>/dev/null >"$part.lock"; then
		rm -f "$part.lock"
		return 2
	fi
	held=$part.lock
}

unlock() {
	[ -z "$held" ] || rm -f "$held"
	held=
}

# take BYTES: move so many from our input to the end of $part
take() {
	number "$1"
	[ -n "$item" ] || refuse 'the source sends what belongs to no file'
	come=$((come + $1))
	[ "$come" -le "$wanted" ] || refuse 'the source sends more than it said'
	{
		[ "$1" -lt $block ] || dd bs=$block count=$(($1 / block)) iflag=fullblock || return 1
		[ $(($1 % block)) -eq 0 ] || dd bs=$(($1 % block)) count=1 iflag=fullblock
	} 2>/dev/null >>"$part"
}

# begin WORD FROM SIZE MTIME MODE
begin() {
	number "$2"
	number "$3"
	moment "$4"
	bits "$5"
	case $plan in *"${nl}file $1 $3 "*) ;; *) refuse "it was not to come, or not so: $1" ;; esac
	unlock
	place "$1"
	make "$folder"
	part_of "$3" "$4"
	[ ! -L "$part" ] || refuse "a link is there: $part"
	lock
	case $? in
	1) refuse "another transfer is writing $part" ;;
	2) refuse "$part.lock cannot be written: the disk may be full" ;;
	esac
	if [ "$2" -gt 0 ]; then
		size=$(stat -c %s "$part") && [ "$2" -le "$size" ] && [ $(($2 % block)) -eq 0 ] ||
			refuse 'the source begins at another byte'
		dd if=/dev/null of="$part" bs=$block seek=$(($2 / block)) count=0 2>/dev/null
	else
		(umask 077 && : >"$part")
	fi
	item=$1 wanted=$3 mtime=$4 come=$2
}

# whole SUM: whether $part is
whole() {
	sum_of "$part"
	[ "$sum" = "$1" ] && [ "$(stat -c %s "$part")" = "$wanted" ]
}

# finish SUM: give the file its name; never over what came there meanwhile
finish() {
	[ -n "$item" ] || refuse 'the source ends what it has not begun'
	if ! dd if=/dev/null of="$part" conv=notrunc,fsync 2>/dev/null; then
		set -- failed "$item" 'it\0040cannot\0040be\0040brought\0040to\0040the\0040disk'
	elif ! whole "$1"; then
		set -- wrong "$item"
	elif ! chmod "$mode" "$part" || ! time_of "$part" "$mtime" || ! named; then
		set -- failed "$item" 'it\0040cannot\0040get\0040its\0040name'
	else
		set -- done "$item" "$sum"
	fi
	unlock
	item=
	say "$@"
}

named() {
	backup=$(printf %s "${full##*/}" | head -c 200 && echo x)
	backup=$folder/${backup%x}.before-$tag
	if [ "$full" -ef "$backup" ]; then
		mv -f "$part" "$full"
	else
		{ ln "$part" "$full" 2>/dev/null && rm -f "$part"; } ||
			{ [ ! -e "$full" ] && mv "$part" "$full"; }
	fi
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
	moment "$2"
	bits "$3"
	place "$1"
	time_of "$full" "$2"
	chmod "$mode" "$full"
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
	make "$folder"
	if [ -L "$full" ] && [ "$(readlink "$full")" = "$name" ]; then return; fi
	aims_inside || refuse "a link leads out of the folder: $1"
	ln -s -- "$name" "$full" || refuse "cannot be linked: $full"
	[ -e "$full" ] || return 0 # busybox tells a wrong place for what is not there yet
	aim=$(readlink -f "$full")
	case $aim in
	"$top"/*) ;;
	*) rm -f "$full" && refuse "a link leads out of the folder: $1" ;;
	esac
}

# hear LAST: the rows up to this kind, and that one
hear() {
	while read -r row; do
		case $row in
		idle) ;;
		"$1" | "$1 "*) say "$row" && return ;;
		*) say "$row" ;;
		esac
	done
	exit 3
}

# planned, ordered, made, linked, left KIND WORD ...: what is to be done for a row, when all are known
planned() {
	case $1 in
	file)
		number "$3"
		moment "$4"
		bits "$5"
		standing "$2" "$3" "$4" "$5"
		;;
	dir)
		moment "$3"
		bits "$4"
		;;
	link)
		place "$2"
		decode "$3"
		if [ -e "$full" ] || [ -L "$full" ]; then
			[ "$(readlink "$full")" = "$name" ] || say clash "$2" 'something\0040else\0040is\0040there'
		fi
		;;
	esac
}

ordered() {
	case $1 in
	touch) retime "$2" "$3" "$4" ;;
	replace) aside "$2" ;;
	esac
}

made() {
	[ "$1" = dir ] || return 0
	place "$2"
	make "$full"
}

linked() {
	[ "$1" != link ] || make_link "$2" "$3"
}

left() {
	[ "$1" = dir ] || return 0
	place "$2"
	inside "$full" || refuse "a link leads out of the folder: $2"
	bits "$4"
	chmod "$mode" "$full"
	time_of "$full" "$3"
}

held='' known_folder='' item=''
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

plan=$(hear plan) || exit
plan=$nl$plan
each planned "$plan"
say free "$(df -Pk "$near" | { read -r _; read -r _ _ _ free _; echo "$free"; })000"
say planned "$existed"
orders=$(hear go) || exit
case $nl$orders in
*"${nl}go "*) refuse 'it has no Python, by which alone it could take a direct link' ;;
esac
each ordered "$orders"
umask 022
each made "$plan"
each linked "$plan"
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
	fail)
		unlock
		item=
		say failed "$a" "$b"
		;;
	bye)
		each left "$plan"
		say bye
		exit 0
		;;
	esac
done
exit 3
