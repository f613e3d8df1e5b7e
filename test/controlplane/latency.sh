#!/usr/bin/env bash
# Measures the time from a pod's creation until it runs if its slice must be created first, on the
# real control plane with doubled GPUs that take no time themselves. Includes kubectl's own time.
#
#   latency.sh SCRIPT BUILD_FOLDER [PODS]     with NOS_CONTROLPLANE_DIR
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
# shellcheck source=test/controlplane/installed.sh
. "$(dirname "$0")/installed.sh"
pods=${3:-20}
expect cordoned k cordon gpu-2 # one shared node, without prepared slices
asks=("2 7g.40gb" "4 3g.20gb")

"$kubectl" get pods -n "$team" -w -o 'custom-columns=:.metadata.name,:.status.phase' --no-headers >"$work/watch" 2>&1 &
watch=$!
: >"$work/times"
for ((i = 0; i < pods; ++i)); do
  begun=$(date +%s%N)
  read -r count profile <<<"${asks[i % 2]}"
  expect created from "$(pod "p-$i" "$count" "$profile")" k create
  until grep -q "^p-$i  *Running" "$work/watch"; do read -rt 0.005 <> <(:); done
  echo $((($(date +%s%N) - begun) / 1000000)) >>"$work/times"
  expect deleted k delete pod "p-$i" -n "$team"
done
kill "$watch"
sort -n "$work/times" | awk '{t[NR] = $1} END {
  printf "%d pods, each on two GPUs partitioned for it: median %d ms, 90 %% %d ms, most %d ms\n",
    NR, t[int((NR + 1) / 2)], t[int(NR * 0.9 + 0.5)], t[NR]}'
