#!/bin/bash
# Tests the output of nos agent --once --print on a machine with doubled GPUs, and on one without a
# driver.
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

cat >"$NOS_NVML_DOUBLE_STATE" <<'END'
{"gpus": [{"model": "A100-40GB", "mig": false, "readings": {"utilization": 63, "memoryUsedMiB": 12345,
   "powerMilliwatts": 312500, "temperature": 57}, "processes": [{"pid": 77, "name": "/bin/train"}]},
 {"model": "H100-80GB", "instances": [{"id": 3, "profile": "1g.10gb", "start": 4,
   "computeInstances": [{"id": 0}], "readings": {"utilization": 42, "memoryUsedMiB": 512}}]}]}
END
"$nos" agent --once --print >"$work/out" 2>"$work/err" || fail "print readings"
grep -q '^0 .* 63 % .* 12345 / 40960 MiB .* 312.5 / 400 W .* 57 C ' "$work/out" || fail "readings of a GPU"
grep -q '^1 .* 1g.10gb@4 .* 42 % .* 512 / ' "$work/out" || fail "readings of an instance"
grep -q '^0 .* 77 .* train ' "$work/out" || fail "expected the process"
grep -q 'holders of GPUs are not known: .*kubelet.sock' "$work/out" || fail "there is no kubelet here"
"$nos" agent --once --print -o json >"$work/out" 2>"$work/err" || fail "print readings as JSON"
grep -q '"utilization": 4.2E-1\|"utilization": 0.42' "$work/out" || fail "expected readings"

NOS_NVML_LIBRARY=/nowhere/libnvidia-ml.so.1 "$nos" agent --once --print >"$work/out" 2>"$work/err"
[ $? -eq 1 ] || fail "without a driver: expected exit code 1"
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "without a driver: expected one line"
grep -q 'is the NVIDIA driver installed' "$work/err" || fail "without a driver: expected advice"
"$nos" agent >"$work/out" 2>"$work/err"
[ $? -eq 2 ] || fail "without --once --print: expected exit code 2"
