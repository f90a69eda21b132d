#!/bin/bash
# Runs a command with a PostgreSQL server of its own: TENON_POSTGRES is the DSN of its superuser. The
# server is in a temporary folder, listens on a socket in it only, and ends with the command. Where
# PostgreSQL or pgbouncer is missing and apt-get is there, it is installed; otherwise that is a failure.
set -euo pipefail

find_bin() {
  local dir
  for dir in $(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -rV) "$(dirname "$(command -v initdb || echo /)")"; do
    if [ -x "$dir/initdb" ] && [ -x "$dir/pg_ctl" ]; then echo "$dir"; return; fi
  done
}

bin=$(find_bin)
sudo=""; [ "$(id -u)" = 0 ] || sudo=sudo # for apt-get
if [ -z "$bin" ] && command -v apt-get >/dev/null; then
  echo "postgres.sh: installing postgresql" >&2
  { $sudo apt-get -qq update && $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y postgresql; } >&2
  bin=$(find_bin)
fi
bouncer=$(PATH="$PATH:/usr/sbin" command -v pgbouncer || true)
if [ -z "$bouncer" ] && command -v apt-get >/dev/null; then
  echo "postgres.sh: installing pgbouncer" >&2
  { $sudo apt-get -qq update && $sudo env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y pgbouncer; } >&2
  bouncer=$(PATH="$PATH:/usr/sbin" command -v pgbouncer || true)
fi
[ -n "$bouncer" ] || { echo "postgres.sh: pgbouncer is missing; install it" >&2; exit 1; }
[ -n "$bin" ] || { echo "postgres.sh: PostgreSQL is missing: no initdb and pg_ctl in PATH; install it" >&2; exit 1; }

dir=$(mktemp -d /tmp/tenon-postgres.XXXXXX) # not in TMPDIR, whose folders only its owner may enter
as=()
if [ "$(id -u)" = 0 ]; then # the server refuses to run as root
  id postgres >/dev/null 2>&1 || useradd --system postgres
  chown postgres "$dir"
  as=(setpriv --reuid=postgres --regid="$(id -g postgres)" --clear-groups)
fi
cleanup() {
  "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1 || true
  rm -rf "$dir"
}
trap cleanup EXIT
(cd "$dir" && "${as[@]}" "$bin/initdb" -D data -U postgres -A trust -E UTF8 --locale=C.UTF-8 >init.log 2>&1) || { cat "$dir/init.log" >&2; exit 1; }
(cd "$dir" && "${as[@]}" "$bin/pg_ctl" -D data -l "$dir/data/server.log" -w -t 60 \
  -o "-c listen_addresses='' -k $dir -c max_connections=300 -c fsync=${TENON_POSTGRES_FSYNC:-off}" start >/dev/null) || { cat "$dir/data/server.log" >&2; exit 1; }
export TENON_POSTGRES="host=$dir user=postgres dbname=postgres"
export TENON_POSTGRES_BIN="$bin" TENON_PGBOUNCER="$bouncer" # for tests that start servers of their own
"$@"
