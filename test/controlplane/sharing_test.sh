#!/usr/bin/env bash
# A cluster with a MIG node and an MPS node on the real control plane: one plan serves pods of both
# kinds, shares follow demand, held devices stay, killed agents and MPS daemons are replaced, and a
# node that leaves MPS is restored. Pod Security "baseline" admits pods with shares without hostIPC.
#
#   sharing_test.sh SCRIPT BUILD_FOLDER     with NOS_CONTROLPLANE_DIR
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
if [ "$(id -u)" != 0 ]; then
  echo "skipped: compute modes are root's"
  exit 77
fi
here=$(dirname "$(readlink -f "$0")")
label=nos.nebuly.com/gpu-partitioning
nodes=(gpu-1 gpu-2)
values=(--set gpuPartitioner.migAgent.mps.enabled=true)
# gpu-2 has MIG off, the factory setting, and daemons that need no GPU.
before_agents() {
  sed -i 's/"model": "A100-40GB"/&, "mig": false/g' "$work/gpu-2.json"
  expect labeled k label node gpu-2 "$label=mps" --overwrite
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

# share NAME GIB [FIELDS_OF_SPEC]: a pod, as YAML.
share() {
  printf -- '\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s}\nspec:\n' "$1" "$team"
  printf '  %s\n  containers:\n  - {name: main, image: example/any, resources: {limits: {nvidia.com/gpu-%sgb: 1}}}\n' \
    "${3:-hostIPC: true}" "$2"
}
annotation() { k get node gpu-2 -o jsonpath="{.metadata.annotations.nos\.nebuly\.com/${1//./\\.}}"; }
# The process ids of the running daemons.
daemons() {
  local of_file
  cat "$work"/mps-gpu-2/*/nvidia-cuda-mps-control.pid 2>/dev/null | sort | while read -r of_file; do
    if kill -0 "$of_file" 2>/dev/null; then echo "$of_file"; fi
  done
}
guarded=''
at_end() {
  daemons | xargs -r kill -9
  [ -z "$guarded" ] || k delete namespace "$guarded" --wait=false >/dev/null 2>&1
}
holders() { annotation status-holders-0 && echo && annotation status-holders-1; }
modes() { tr -d ' \n' <"$work/gpu-2.json" | grep -oE '"computeMode":[0-9]' | sort | uniq -c | tr -s ' '; }

say "pods of both kinds are served by one plan"
expect created from "$(pod slice 1 3g.20gb)$(share keep 20)$(share small 7)$(share other 30)" k create
wait_running slice keep small other
[ "$(k get pod slice -n "$team" -o jsonpath='{.spec.nodeName}')" = gpu-1 ] || fail "the slice is not on gpu-1"
soon "20gb@[0-9]+=$team/keep" holders
expect '^MPS-39GB$' annotation status-model-0

say "who lacks the host's shared memory is told"
expect created from "$(share lonely 1 'hostIPC: false')" k create
wait_running lonely
soon 'MpsNeedsHostIPC.*spec.hostIPC: true' k get events -n "$team" --field-selector involvedObject.name=lonely

say "a namespace with Pod Security baseline takes pods with shares that need no hostIPC, as with mps.shmFolder"
guarded=$team-baseline
expect created k create namespace "$guarded"
expect labeled k label namespace "$guarded" pod-security.kubernetes.io/enforce=baseline
expect 'condition met' k wait --for=create serviceaccount/default -n "$guarded" --timeout 60s
refuse 'violates PodSecurity "baseline:latest": host namespaces \(hostIPC=true\)' \
  from "$(team=$guarded share shielded 1)" k create --dry-run=server
expect created from "$(team=$guarded share shielded 1 'hostIPC: false')" k create --dry-run=server

say "demand shifts: other shares, of the same GPUs"
expect deleted k delete pod small other lonely -n "$team"
expect created from "$(share wide 39)$(share rest 19)" k create
wait_running wide rest keep
expect "20gb@[0-9]+=$team/keep" holders

say "the agent is killed: its daemons live on, and the next one knows what is held"
before=$(daemons)
[ "$(wc -w <<<"$before")" -eq 2 ] || fail "not a daemon for each GPU: $before"
for one in $before; do
  [ "$(ps -o ppid= -p "$one" | tr -d ' ')" = "${pid[keeper-gpu-2]}" ] || fail "daemon $one is no child of the keeper"
done
kill_hard agent-gpu-2
start_agent gpu-2
expect deleted k delete pod rest -n "$team"
expect created from "$(share late 18)" k create
wait_running late keep wide
[ "$(daemons)" = "$before" ] || fail "the daemons are others: $(daemons), not $before"

say "a daemon is killed: its shares are offered again when another one serves"
kill -9 "$(head -n 1 <<<"$before")"
until [ "$(daemons)" != "$before" ] && [ "$(daemons | wc -l)" -eq 2 ]; do read -rt 0.05 <> <(:); done
soon True k get node gpu-2 -o 'jsonpath={.status.conditions[?(@.type=="nos.nebuly.com/GpusHealthy")].status}'
expect deleted k delete pod wide -n "$team"
expect created from "$(share after 39)" k create
wait_running after

say "what no GPU has is explained, and keeps nobody waiting"
expect created from "$(share absurd 40)$(pod next 1 1g.5gb)" k create
wait_running next
soon 'gpu-partitioning=mps and 40 GiB' k get pod absurd -n "$team" -o \
  'jsonpath={.status.conditions[?(@.type=="nos.nebuly.com/Partitioned")].message}'

say "the node leaves MPS: when nobody holds a share, it is as it was"
expect labeled k label node gpu-2 "$label=none" --overwrite
expect deleted k delete pod after -n "$team"
expect '3' echo "$(modes)"
expect deleted k delete pod keep late -n "$team"
soon '^ ?2 "computeMode":0$' modes
soon '^$' daemons
if grep -l forbidden "$work"/agent-*.log "$work"/partitioner-*.log; then fail "a permission is missing"; fi
say ok
