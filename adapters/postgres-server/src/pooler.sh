# Runs one pgbouncer in front of a server and ends it when standard input ends. Arguments: the
# program, its port, the server's folder of the socket, the server's port, the pool's size.
bouncer=$1
port=$2
socket=$3
server=$4
size=$5
trap : INT TERM HUP QUIT
place=$(mktemp -d /tmp/fhpb.XXXXXX) || exit 1
as=
if [ "$(id -u)" = 0 ]; then
  for user in postgres nobody; do
    id "$user" >/dev/null 2>&1 || continue
    as="setpriv --reuid $user --regid $(id -g "$user") --clear-groups"
    command -v setpriv >/dev/null 2>&1 || as="runuser -u $user --"
    chown "$user:$(id -g "$user")" "$place"
    break
  done
fi
cat >"$place/ini" <<END
[databases]
* = host=$socket port=$server user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = $size
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
logfile = $place/log
END
chmod 644 "$place/ini"
cd "$place" || exit 1
# The words of $as are separate arguments.
$as "$bouncer" -q "$place/ini" </dev/null >/dev/null 2>&1 &
held=$!
cat >/dev/null
kill "$held" 2>/dev/null
wait "$held" 2>/dev/null
rm -rf "$place"
