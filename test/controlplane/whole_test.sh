#!/usr/bin/env bash
# Whole GPUs on nodes labelled "mig", without MPS, on the real control plane: an unused GPU counts in
# the capacity from the start, is given to a pod that asks for nvidia.com/gpu, and serves slices again.
# An A100 in MIG mode keeps it, because resets are not allowed.
#
#   whole_test.sh SCRIPT BUILD_FOLDER     with NOS_CONTROLPLANE_DIR
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
here=$(dirname "$(readlink -f "$0")")
nodes=(gpu-1 gpu-2)
values=(--set gpuPartitioner.migAgent.hybrid.wholeOnMigNodes=true)
# gpu-2 has H100s with MIG off, the factory setting.
before_agents() {
  sed -i 's/"model": "A100-40GB"/"model": "H100-80GB", "mig": false/g' "$work/gpu-2.json"
  expect labeled k label node gpu-2 nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3 --overwrite
}
# shellcheck source=test/controlplane/installed.sh
. "$here/installed.sh"

# whole NAME [COUNT]: a pod, as YAML.
whole() {
  printf -- '\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s}\nspec:\n' "$1" "$team"
  printf '  containers:\n  - {name: main, image: example/any, resources: {limits: {nvidia.com/gpu: %s}}}\n' "${2:-1}"
}
annotation() { k get node "$1" -o jsonpath="{.metadata.annotations.nos\.nebuly\.com/${2//./\\.}}"; }
counts() { k get node "$1" -o jsonpath='{.status.capacity.nvidia\.com/gpu} {.status.allocatable.nvidia\.com/gpu}'; }
node_of() { k get pod "$1" -n "$team" -o jsonpath='{.spec.nodeName}'; }
in_mig_mode() { tr -d ' \n' <"$work/gpu-2.json" | grep -o '"mig":true' | wc -l; }

say "unused GPUs count in the capacity, and to no pod"
soon '^2 0$' counts gpu-2
expect '^H100-80GB\+GPU$' annotation gpu-2 status-model-0
expect '^$' annotation gpu-2 status-other-model-0
soon '^A100-40GB$' annotation gpu-1 status-model-0
soon '^2 0$' counts gpu-1

say "a slice and a whole GPU, for two pods of one node"
expect created from "$(pod slice 1 3g.40gb)$(whole one)" k create
wait_running slice one
[ "$(node_of slice) $(node_of one)" = 'gpu-2 gpu-2' ] || fail "pods are elsewhere: $(k get pods -n "$team" -o wide)"
soon "gpu@0=$team/one" k get node gpu-2 -o json

say "the next one waits while the other GPU has a slice in use, and gets it then"
expect created from "$(whole two)$(pod small 1 1g.5gb)" k create
wait_running small slice one
expect '^Pending$' k get pod two -n "$team" -o jsonpath='{.status.phase}'
expect deleted k delete pod slice -n "$team"
wait_running two one
expect '^0$' in_mig_mode

say "slices come back when the GPUs are free"
expect deleted k delete pod one two -n "$team"
expect created from "$(pod again 1 7g.80gb)" k create
wait_running again
expect '^1$' in_mig_mode
if grep -l forbidden "$work"/agent-*.log "$work"/partitioner-*.log; then fail "a permission is missing"; fi
say ok
