# Runs one throw-away server and ends it when standard input ends, however that came about: the
# test finished, panicked, or was killed. Arguments: the folder of the programs, the port, then
# settings as name=value.
#
# Says READY <folder> or FAILED <why>, and DONE or FAILED for every line that it is told.
bin=$1
port=$2
shift 2
# Signals to the test's group are for the test; the end of standard input is for us.
trap : INT TERM HUP QUIT

# Short: a socket's path has at most 107 bytes. Every user can reach it.
place=
for base in /tmp /var/tmp; do
  place=$(mktemp -d "$base/fhpg.XXXXXX" 2>/dev/null) && break
done
[ -n "$place" ] || { echo "FAILED no temporary folder can be made in /tmp or /var/tmp"; exit 1; }

: >"$place/log"

# PostgreSQL does not run as root.
as=
if [ "$(id -u)" = 0 ]; then
  for user in postgres nobody; do
    id "$user" >/dev/null 2>&1 || continue
    if command -v setpriv >/dev/null 2>&1; then
      as="setpriv --reuid $user --regid $(id -g "$user") --clear-groups"
    else
      as="runuser -u $user --"
    fi
    chown "$user:$(id -g "$user")" "$place" "$place/log"
    break
  done
  [ -n "$as" ] || { rm -rf "$place"; echo "FAILED as root, a user postgres or nobody is needed"; exit 1; }
fi
cd "$place" || exit 1

as_user() {
  # The words of $as are separate arguments.
  HOME=$place $as "$@" </dev/null >>"$place/log" 2>&1
}
server() {
  action=$1
  shift
  as_user "$bin/pg_ctl" "$action" -D "$place/data" -w -t 60 -s -l "$place/log" "$@"
}
failed() {
  printf 'FAILED %s: %s\n' "$1" "$(tail -n 6 "$place/log" | tr '\n' ' ')"
}
end() {
  [ -f "$place/data/postmaster.pid" ] && server stop -m immediate
  rm -rf "$place"
  exit 0
}

if ! as_user "$bin/initdb" -D "$place/data" -A trust -U postgres -E UTF8 --locale=C --no-sync; then
  failed "initdb"
  rm -rf "$place"
  exit 1
fi
{
  echo "listen_addresses = '127.0.0.1'"
  echo "port = $port"
  echo "unix_socket_directories = '$place'"
  # Nothing of it outlives the test, so nothing waits for the disk. What survives a kill of a
  # server's process is in the system's memory.
  echo "fsync = off"
  echo "full_page_writes = off"
  echo "shared_buffers = 64MB"
  echo "max_connections = 200"
  echo "lc_messages = 'C'"
  for setting in "$@"; do
    echo "${setting%%=*} = '${setting#*=}'"
  done
} >>"$place/data/postgresql.conf"
{
  echo "host all guarded 127.0.0.1/32 scram-sha-256"
  cat "$place/data/pg_hba.conf"
} >"$place/hba" && cat "$place/hba" >"$place/data/pg_hba.conf"
if ! server start; then
  failed "the server did not start"
  end
fi
echo "READY $place"

while IFS= read -r word; do
  case $word in
    stop) server stop -m fast ;;
    kill) server stop -m immediate ;;
    start) server start ;;
    standby) server stop -m fast && as_user touch "$place/data/standby.signal" && server start ;;
    *) false ;;
  esac && echo DONE || failed "$word"
done
end
