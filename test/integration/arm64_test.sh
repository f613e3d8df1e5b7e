#!/usr/bin/env bash
# The program for arm64, cross-compiled: it is hardened as the other is, starts, and decides as this
# machine's does, in an emulator. Effects of a real ARM host (weakly ordered memory) do not show here.
#
#   arm64_test.sh NOS_OF_ARM64 SYSROOT NOS     skips without Debian's qemu-user-static
set -euo pipefail
arm=$1 sysroot=$2 nos=$3
fail() { echo "FAILED: $1"; exit 1; }
"$(dirname "$0")/hardening_test.sh" "$arm"
emulator=$(command -v qemu-aarch64-static) || { echo "skipped: no qemu-aarch64-static here (package qemu-user-static)"; exit 77; }
# Two libraries that alternatives would link elsewhere.
folders=/usr/lib/aarch64-linux-gnu/lapack:/usr/lib/aarch64-linux-gnu/blas
emulated() { "$emulator" -L "$sysroot" -E "LD_LIBRARY_PATH=$folders" "$arm" "$@"; }

[ "$(emulated version)" = "$("$nos" version)" ] || fail "another version: $(emulated version)"
# A node and pods with letters beyond ASCII, whose bytes are negative where a char is signed.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/cluster.yaml" <<'Y'
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata:
    name: node-1
    labels:
      nos.nebuly.com/gpu-partitioning: mig
      nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB
      nvidia.com/gpu.count: "2"
  status:
    capacity: {cpu: "32", memory: 256Gi, pods: "110"}
    allocatable: {cpu: "32", memory: 256Gi, pods: "110"}
    conditions: [{type: Ready, status: "True"}]
- apiVersion: v1
  kind: Pod
  metadata: {name: a, namespace: team, annotations: {note: "größer, 更大"}}
  spec: {containers: [{name: main, image: any, resources: {limits: {nvidia.com/mig-3g.20gb: "1"}}}]}
  status: {phase: Pending}
- apiVersion: v1
  kind: Pod
  metadata: {name: b, namespace: team}
  spec: {containers: [{name: main, image: any, resources: {limits: {nvidia.com/mig-1g.5gb: "9"}}}]}
  status: {phase: Pending}
Y
# output COMMAND...: without the times at which it ran.
output() { "$@" 2>&1 | sed 's/^\[[0-9 :.-]*\] //; s/^planned in .*/planned/'; }
# same ARGUMENTS...: both print the same, log included.
same() {
  output "$nos" "$@" >"$work/here" || fail "nos $*: $(tail -n 3 "$work/here")"
  output emulated "$@" >"$work/arm64" || fail "nos $* for arm64: $(tail -n 3 "$work/arm64")"
  diff "$work/here" "$work/arm64" || fail "nos $* prints something else on arm64"
}
same plan -f "$work/cluster.yaml"
same simulate chaos --seed 1 --seeds 3
same simulate chaos --seed 1 --seeds 2 --hybrid --resets
same simulate chaos --seed 1 --seeds 2 --pools --scheduler-partitions
echo "arm64: hardened, and decides as this machine"
