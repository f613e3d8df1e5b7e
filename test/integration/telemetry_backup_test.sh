#!/bin/bash
# Backs up, verifies and restores the database of nos telemetry with its commands, while the server
# runs and after it has ended.
#
#   telemetry_backup_test.sh NOS
set -u

nos=$1
work=$(mktemp -d)
server=
end() {
  [ -n "$server" ] && kill "$server" 2>/dev/null
  rm -rf "$work"
}
trap end EXIT
export TMPDIR=$work/tmp
mkdir "$TMPDIR"

# shellcheck source=test/integration/calls.sh
. "$(dirname "$0")/calls.sh"

store=$work/telemetry.db
config=$work/telemetry.yaml
cat >"$config" <<EOT
apiVersion: config.nos.nebuly.com/v1alpha1
kind: TelemetryConfig
listen: {bindAddress: "127.0.0.1:0"}
store: {file: "$store"}
EOT

# start: the server answers when this returns.
start() {
  : >"$work/log" # of the server before
  "$nos" telemetry --sandbox --config "$config" >"$work/log" 2>&1 &
  server=$!
  until grep -q 'port=' "$work/log"; do
    kill -0 "$server" 2>/dev/null || fail "the server ended: $(cat "$work/log")"
    sleep 0.05
  done
  port=$(grep -o 'port=[0-9]*' "$work/log" | head -1 | cut -d= -f2)
}
stop() {
  kill "$server"
  wait "$server" 2>/dev/null
  server=
}
# ask METHOD PATH BODY: the answer to a request.
ask() {
  exec 3<>"/dev/tcp/127.0.0.1/$port" || fail "no connection"
  printf '%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s' \
    "$1" "$2" "${#3}" "$3" >&3
  cat <&3
  exec 3>&-
}
# deliver NUMBER: one Event.
deliver() {
  local at
  at=$(date +%s)000
  ask POST /api/v1/ingest "{\"schema\":1,\"cluster\":\"prod\",\"source\":\"operator\",\"boot\":\"b\",\"sequence\":$1,\
\"records\":[{\"kind\":\"event\",\"at\":$at,\"object\":{\"kind\":\"Pod\",\"namespace\":\"n\",\"name\":\"p\"},\
\"reason\":\"number-$1\"}]}" >"$work/out"
  grep -q "\"sequence\":$1" "$work/out" || fail "envelope $1 is not acknowledged"
}
# has NUMBER...: exactly these Events are stored, soon: they are written after the answer.
has() {
  local wanted
  wanted=$(printf 'number-%s ' "$@")
  for _ in $(seq 100); do
    ask GET '/api/v1/history?kind=event&limit=100' '' >"$work/out"
    [ "$(grep -o 'number-[0-9]*' "$work/out" | sort -u | tr '\n' ' ')" = "$wanted" ] && return
    sleep 0.05
  done
  fail "expected the Events $*"
}

start
deliver 1
deliver 2

# A backup of the running server, to a file and to standard output.
call 0 "$nos" telemetry backup "$work/first.db" --config "$config"
grep -Eq '^wrote .*/first.db: [0-9.]+ MiB, version 2$' "$work/out" || fail "says what it wrote"
refuse 2 "the file exists: --force replaces it" "$nos" telemetry backup "$work/first.db" --store "$store"
call 0 "$nos" telemetry backup "$work/first.db" --store "$store" --force
"$nos" telemetry backup - --store "$store" >"$work/second.db" 2>"$work/err" ||
  fail "writes to standard output"
[ -z "$(ls -A "$TMPDIR")" ] || fail "leaves no temporary file"
refuse 1 "standard output" bash -c "'$nos' telemetry backup - --store '$store' >/dev/full"
refuse 2 "no such file" "$nos" telemetry backup "$work/x.db" --store "$work/absent.db"
refuse 2 "name two databases" "$nos" telemetry backup "$work/x.db" --store "$store" --config "$config"

# Both are sound, and so is what the server writes.
for file in "$work/first.db" "$work/second.db"; do
  call 0 "$nos" telemetry verify "$file"
  grep -q '10 OK, 0 warnings, 0 failed' "$work/out" || fail "$file is sound"
done
call 0 "$nos" telemetry verify --config "$config" -o json
grep -q '"failed": 0' "$work/out" || fail "verifies the store of a configuration"

# A restore waits for the server to end.
deliver 3
refuse 1 "another nos telemetry uses this file" \
  "$nos" telemetry restore "$work/first.db" --config "$config"
has 1 2 3
stop
call 0 "$nos" telemetry restore "$work/first.db" --config "$config"
grep -q '^restored .*telemetry.db: .* version 2$' "$work/out" || fail "says what it restored"
former=$(sed -n 's/^kept the former database: //p' "$work/out")
start
has 1 2
stop

# The former database is a way back, and a backup may come by a pipe.
call 0 bash -c "'$nos' telemetry restore - --config '$config' <'$former'"
start
has 1 2 3
stop

# Damage: a row costs itself, a page makes the file unusable.
call 0 "$nos" telemetry backup "$work/bad.db" --store "$store"
printf 'xxxxxxxx' | dd of="$work/bad.db" bs=1 seek=16384 conv=notrunc status=none
call 1 "$nos" telemetry verify "$work/bad.db"
grep -q 'FAILED' "$work/out" || fail "names the damage"
call 1 "$nos" telemetry verify "$work/bad.db" -o json
refuse 2 "malformed" "$nos" telemetry restore "$work/bad.db" --store "$store"
head -c 20000 "$work/first.db" >"$work/short.db"
refuse 2 "malformed" "$nos" telemetry restore "$work/short.db" --store "$store"
: >"$work/empty.db"
refuse 2 "no database of nos telemetry" "$nos" telemetry restore "$work/empty.db" --store "$store"
start
has 1 2 3
stop
echo "all as expected"
