#!/bin/sh
# Runs a server that must not outlive the program that started it. That program holds the other end of our standard
# input: end of file means it is gone, however it died; a line means that the server has ended and nothing is to do.
# usage: guard.sh REMOVE LOG SERVER ARGS…    says "pid N", then "exit N". REMOVE: folder to remove if orphaned, or ''.
remove=$1
log=$2
shift 2
# A background command of a shell reads from /dev/null, so the pipe has to go by another number.
exec 3<&0
"$@" </dev/null >>"$log" 2>&1 3<&- &
server=$!
echo "pid $server"
(
  if read -r _ <&3; then exit; fi
  kill -KILL "$server"
  if [ -n "$remove" ]; then rm -rf -- "$remove"; fi
) >/dev/null 2>&1 &
wait "$server"
echo "exit $?"
wait
