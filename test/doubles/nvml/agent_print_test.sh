#!/bin/bash
# nos agent --once --print, from outside: on a machine with doubled GPUs, and on one without a driver.
#
#   agent_print_test.sh NOS DOUBLE
set -u

nos=$1
export NOS_NVML_LIBRARY=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NOS_NVML_DOUBLE_STATE=$work/state.json

fail() {
  echo "FAILED: $1"
  cat "$work/out" "$work/err"
  exit 1
}

echo '{"gpus": [{"model": "H200-141GB", "mig": false}]}' >"$NOS_NVML_DOUBLE_STATE"
"$nos" agent --once --print >"$work/out" 2>"$work/err" || fail "print"
grep -q '^1g.18gb  *19 ' "$work/out" || fail "expected the driver's profiles, with MIG off"
"$nos" agent --once --print -o json >"$work/out" 2>"$work/err" || fail "print as JSON"
grep -q '"start": 6' "$work/out" || fail "expected placements"

NOS_NVML_LIBRARY=/nowhere/libnvidia-ml.so.1 "$nos" agent --once --print >"$work/out" 2>"$work/err"
[ $? -eq 1 ] || fail "without a driver: expected exit code 1"
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "without a driver: expected one line"
grep -q 'is the NVIDIA driver installed' "$work/err" || fail "without a driver: expected advice"
"$nos" agent >"$work/out" 2>"$work/err"
[ $? -eq 2 ] || fail "without --once --print: expected exit code 2"
