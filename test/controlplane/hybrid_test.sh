#!/usr/bin/env bash
# A MIG node, an MPS node and a hybrid node on the real control plane: one batch gets MIG slices,
# MPS shares, time slices and whole GPUs; when demand shifts, empty GPUs change their sharing mode
# and used ones do not; a killed agent restores its state.
#
#   hybrid_test.sh SCRIPT BUILD_FOLDER     with NOS_CONTROLPLANE_DIR
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
if [ "$(id -u)" != 0 ]; then
  echo "skipped: compute modes are root's"
  exit 77
fi
here=$(dirname "$(readlink -f "$0")")
label=nos.nebuly.com/gpu-partitioning
nodes=(gpu-1 gpu-2 gpu-3)
values=(--set gpuPartitioner.migAgent.mps.enabled=true
  --set gpuPartitioner.migAgent.config.hybrid.timeSlices=4)
# gpu-2 and gpu-3 have MIG off, the factory setting, and daemons that need no GPU.
before_agents() {
  sed -i 's/"model": "A100-40GB"/&, "mig": false/g' "$work/gpu-2.json"
  sed -i 's/"model": "A100-40GB"/"model": "H100-80GB", "mig": false/g' "$work/gpu-3.json"
  expect labeled k label node gpu-2 "$label=mps" --overwrite
  expect labeled k label node gpu-3 "$label=hybrid" nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3 --overwrite
  local node
  for node in "${nodes[@]}"; do
    sed -i "s|folder: /run/nos/mps|folder: $work/mps-$node|; s|keeper: /run/nos/mps|keeper: $work/mps-$node|; s|logFolder: /var/log/nos/mps|logFolder: $work/mps-log-$node|
      s|^mps:|&\n  program: $here/../doubles/mps/nvidia-cuda-mps-control|" "$work/agent-$node.yaml"
    start_keeper "$node"
  done
}
# The process of the chart's DaemonSet mps.
start_keeper() {
  "$build/nos" mps --socket "$work/mps-$1/keeper.sock" --folder "$work/mps-$1" --log-folder "$work/mps-log-$1" \
    --program "$here/../doubles/mps/nvidia-cuda-mps-control" >>"$work/keeper-$1.log" 2>&1 &
  pid[keeper-$1]=$!
  disown
}
# shellcheck source=test/controlplane/installed.sh
. "$here/installed.sh"

# asks NAME RESOURCE [COUNT]: a pod, as YAML.
asks() {
  printf -- '\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s}\nspec:\n  hostIPC: true\n' "$1" "$team"
  printf '  containers:\n  - {name: main, image: example/any, resources: {limits: {%s: %s}}}\n' "$2" "${3:-1}"
}
at_end() {
  local file
  for file in "$work"/mps-*/*/nvidia-cuda-mps-control.pid; do
    if [ -f "$file" ]; then kill -9 "$(cat "$file")" 2>/dev/null; fi
  done
}
layouts() { k get node gpu-3 -o json | grep -oE '"nos.nebuly.com/status-(model|layout|holders)-[01]": "[^"]*"' | sort; }
node_of() { k get pod "$1" -n "$team" -o jsonpath='{.spec.nodeName}'; }

say "one batch gets slices, shares, time slices and whole GPUs"
expect created from "$(pod slice 1 7g.40gb)$(asks share nvidia.com/gpu-39gb)$(
  asks turn-1 nvidia.com/gpu.shared
)$(asks turn-2 nvidia.com/gpu.shared)$(asks whole nvidia.com/gpu)" k create
wait_running slice share turn-1 turn-2 whole
[ "$(node_of slice) $(node_of turn-1) $(node_of turn-2) $(node_of whole)" = 'gpu-1 gpu-3 gpu-3 gpu-3' ] ||
  fail "pods are elsewhere: $(k get pods -n "$team" -o wide)"
soon "gpu@0=$team/whole" layouts
soon "shared@[0-9]=$team/turn-[12],shared@[0-9]=$team/turn-[12]" layouts
expect 'H100-80GB\+.*GPU\+TIME-4' layouts

say "what waits for another way gets it when the GPU is empty, not before"
expect created from "$(asks mig-1 nvidia.com/mig-3g.40gb)$(asks mig-2 nvidia.com/mig-3g.40gb)$(
  asks large nvidia.com/gpu-70gb
)" k create
soon 'no GPU|nvidia.com' k get pod large -n "$team" -o \
  'jsonpath={.status.conditions[?(@.type=="Partitioned")].message}{.status.conditions[?(@.type=="nos.nebuly.com/Partitioned")].message}'
wait_running turn-1 turn-2 whole
expect deleted k delete pod whole -n "$team"
soon 'Running' k get pods -n "$team" mig-1 mig-2 large -o 'jsonpath={.items[*].status.phase}'
wait_running turn-1 turn-2
expect deleted k delete pod turn-1 turn-2 -n "$team"
wait_running mig-1 mig-2 large slice share

say "the agent is killed: the next one knows what is held, and in which way"
before=$(layouts)
kill_hard agent-gpu-3
start_agent gpu-3
expect deleted k delete pod mig-1 -n "$team"
expect created from "$(asks again nvidia.com/mig-1g.10gb)" k create
wait_running again mig-2 large
expect 'MPS-79GB' layouts
expect "70gb@[0-9]+=$team/large" layouts
grep -q "MPS-79GB" <<<"$before" || fail "it was not shared before: $before"

say "all of it ends: every GPU serves another way"
expect deleted k delete pod again mig-2 large -n "$team"
expect created from "$(asks both nvidia.com/gpu 2)" k create
wait_running both
if grep -l forbidden "$work"/agent-*.log "$work"/partitioner-*.log; then fail "a permission is missing"; fi
say ok
