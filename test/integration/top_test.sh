#!/bin/bash
# nos top, nos get history and nos get stories on a sandbox: once, in a terminal whose state is restored, and without
# a server.
#
#   top_test.sh NOS
#
# Skips (77) without script(1), which makes a terminal.
set -u

nos=$1
command -v script >/dev/null || { echo "skipped: script(1) of bsdutils is not here"; exit 77; }
work=$(mktemp -d)
sandbox=
end() {
  [ -n "$sandbox" ] && kill "$sandbox" 2>/dev/null && wait "$sandbox" 2>/dev/null
  rm -rf "$work"
}
trap end EXIT
export TMPDIR=$work

fail() {
  echo "FAILED: $1"
  tail -n 40 "$work"/out "$work"/err "$work"/terminal "$work"/sandbox 2>/dev/null
  exit 1
}
# until_there TEXT FILE: the file contains TEXT within half a minute.
until_there() {
  for _ in $(seq 300); do
    grep -aq -- "$1" "$2" 2>/dev/null && return
    sleep 0.1
  done
  fail "no '$1' in $2"
}

"$nos" sandbox --nodes 2 --gpus 2 --dashboard-port 0 --speed 5 >"$work/sandbox" 2>&1 &
sandbox=$!
until_there 'dashboard: http' "$work/sandbox"
url=$(sed -n 's|^dashboard: \(.*\)/$|\1|p' "$work/sandbox" | head -n 1)
export NOS_TELEMETRY=$url
for _ in $(seq 300); do
  "$nos" top >"$work/out" 2>"$work/err" && grep -q '1g.5gb' "$work/out" && break
  sleep 0.1
done

# Without a terminal: one output, whole lines, no colours.
"$nos" top >"$work/out" 2>"$work/err" || fail "nos top"
grep -q '^nos top   4 GPUs on 2 nodes' "$work/out" || fail "the first line of nos top"
grep -q $'\x1b' "$work/out" && fail "nos top paints what is no terminal"
"$nos" top -n nobody -o json >"$work/out" 2>"$work/err" || fail "nos top -o json"
grep -q '"pods": \[\]' "$work/out" || fail "nos top -o json of a namespace without pods"

# A terminal of 100 by 24, and a key press.
mkfifo "$work/keys"
(TERM=xterm script -qec "stty rows 24 cols 100; '$nos' top; stty -a" "$work/terminal" <"$work/keys" >/dev/null 2>&1) &
terminal=$!
exec 3>"$work/keys"
until_there 'q quits' "$work/terminal"
frames() { grep -ao $'\x1b\\[H' "$work/terminal" | wc -l; }
first=$(frames)
for _ in $(seq 300); do [ "$(frames)" -ge $((first + 2)) ] && break; sleep 0.1; done
[ "$(frames)" -ge $((first + 2)) ] || fail "the server's events draw no new frames"
printf '?' >&3
until_there 'this help' "$work/terminal"
printf '?5' >&3
until_there ' on node-' "$work/terminal"
printf '6' >&3
until_there 'research/quota' "$work/terminal"
printf '2\r' >&3
until_there 'Esc goes back' "$work/terminal"
printf '\033[B\033/node-2\r' >&3
until_there "only rows with 'node-2'" "$work/terminal"
printf q >&3
wait "$terminal"
exec 3>&-
grep -aq $'\x1b\\[?1049l' "$work/terminal" || fail "the screen is not given back"
grep -aqE '[^-]icanon' "$work/terminal" || fail "keys are not given back"

# Past events, and past state.
"$nos" get history --since 1h >"$work/out" 2>"$work/err" || fail "nos get history"
grep -qE ' plan +node-[12] .* got .* on node-[12]' "$work/out" || fail "no plan in the history"
grep -qE ' layout +node-[12] .*\+1g.5gb@' "$work/out" || fail "no layout in the history"
"$nos" get history --since 1h --node node-1 -o json >"$work/out" 2>"$work/err" || fail "nos get history -o json"
grep -q 'node-2' "$work/out" && fail "another node in the history of one"
"$nos" get stories >"$work/out" 2>"$work/err" || fail "nos get stories"
grep -qE ' plan +applied +[a-z].* got .* on node-[12]' "$work/out" || fail "no plan among the stories"
"$nos" get stories --limit 1 -o json >"$work/out" 2>"$work/err" || fail "nos get stories -o json"
[ "$(grep -c '"sentence"' "$work/out")" -eq 1 ] || fail "more than one story"
"$nos" get history --at 0s >"$work/out" 2>"$work/err" || fail "nos get history --at"
grep -q '^node-2 ' "$work/out" || fail "no layout of a moment"

# A second dashboard on the same port.
"$nos" sandbox --for 1 --nodes 1 --gpus 1 --dashboard-port "${url##*:}" >"$work/out" 2>"$work/err"
[ $? -eq 1 ] || fail "a sandbox without its dashboard port ends with 1"
grep -q -- '--dashboard-port' "$work/err" || fail "the flag of a port in use"

# No server, and invalid arguments: one sentence.
kill "$sandbox"; wait "$sandbox" 2>/dev/null
sandbox=
"$nos" top >"$work/out" 2>"$work/err"
[ $? -eq 1 ] || fail "nos top without a server ends with 1"
grep -q 'is a server running?' "$work/err" || fail "what to do without a server"
"$nos" get history --from tomorrow >"$work/out" 2>"$work/err" && fail "a time that is none"
"$nos" top --sort beauty >"$work/out" 2>"$work/err"
[ $? -eq 2 ] || fail "nos top --sort beauty is wrong usage"
echo "all is as expected"
