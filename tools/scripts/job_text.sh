# Free text in answers. It goes as it is, and in one piece, so that whatever looks for secrets in an
# answer sees it as it was written: KEY=STX, the text, ETX. ETX in the text itself is left out, so
# nothing in a log can pass for an answer. Pieces begin and end between words: none is cut in two.

size_of() {  # FILE: prints its size in bytes
  if [ -f "$1" ]; then wc -c <"$1" | tr -d ' '; else echo 0; fi
}

slice() {  # FILE FROM COUNT: prints so many bytes, from a place on
  tail -c "+$(($2 + 1))" "$1" | head -c "$3"
}

slice_words() {  # FILE FROM COUNT: prints the same, each word on a line of its own
  slice "$@" | LC_ALL=C tr ' \t\r' '\n\n\n'
}

answer_text() {  # KEY FILE FROM COUNT
  [ "$4" -gt 0 ] || return 0
  printf '%s %s=\002\n' "$job_marker" "$1"
  slice "$2" "$3" "$4" | LC_ALL=C tr -d '\000\003'
  printf '\n\003\n'
}

measure() {  # FILE FROM LIMIT: sets text_bytes, the length of the piece that begins there
  text_bytes=$(($(size_of "$1") - $2))
  [ "$text_bytes" -gt "$3" ] || return 0
  text_bytes=$3
  text_words=$(($(slice_words "$@" | wc -l)))
  [ "$text_words" -eq 0 ] || text_bytes=$(($(slice_words "$@" | head -n "$text_words" | wc -c)))
}

answer_tail() {  # KEY FILE LIMIT: the end of a file
  text_bytes=$(size_of "$2") text_from=0
  if [ "$text_bytes" -gt "$3" ]; then
    text_from=$((text_bytes - $3)) text_bytes=$3
    text_skipped=$(($(slice_words "$2" "$text_from" "$3" | head -n 1 | wc -c)))
    if [ "$text_skipped" -lt "$3" ]; then
      text_from=$((text_from + text_skipped)) text_bytes=$(($3 - text_skipped))
    fi
  fi
  answer_text "$1" "$2" "$text_from" "$text_bytes"
}

answer_tails() {  # LIMIT: the ends of the job's logs
  answer_tail out_tail "$job_dir/out" "$1"
  answer_tail err_tail "$job_dir/err" "$1"
}
