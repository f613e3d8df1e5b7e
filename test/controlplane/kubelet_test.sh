#!/usr/bin/env bash
# nos with a real kubelet, containerd and runc on the real control plane; only the GPU is a double.
# The test writes the spec of the node in the partitioner's place, except for the last steps.
#
#   kubelet_test.sh SCRIPT BUILD_FOLDER [PODS]     with NOS_CONTROLPLANE_DIR
#
# The last pods, 2 or the requested number, are served by all of nos; their time is printed.
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
build=$2 node=kubelet-$$ team=team-kubelet-$$ release=nos-kubelet
# shellcheck source=test/controlplane/real_node.sh
. "$(dirname "$0")/real_node.sh"

start_agent() {
  NODE_NAME=$node "$build/nos" agent --config "$work/agent.yaml" --kubeconfig "$work/agent.kubeconfig" \
    >>"$work/agent.log" 2>&1 &
  pid[agent]=$!
  disown
}
status_layout() { shows '.metadata.annotations.nos\.nebuly\.com/status-layout-0' "$1"; }
acknowledged() { shows '.metadata.annotations.nos\.nebuly\.com/status-partitioning-plan' "$1"; }
# device PLACEMENT: its UUID from the driver; empty if it does not exist.
device() {
  "$build/nos" agent --once --print --nvml-library "$build/test/doubles/nvml/libnvidia-ml.so.1" |
    awk -v placement="$1" '$1 == placement {print $NF}'
}
pod_resources() { "$build/test/controlplane/nos_pod_resources" "$work/node/kubelet/pod-resources/kubelet.sock"; }
# pod NAME PROFILE
create_pod() { sleeper_pod "$1" "nvidia.com/mig-$2"; }
# has NAME UUID: checks the devices in the environment of the pod's process.
has() {
  local said
  said=$(cat "$work/node/logs/${team}_$1"_*/main/*.log)
  [[ $said == *"NVIDIA_VISIBLE_DEVICES=$2" ]] || fail "pod $1 should have $2 and says: $said"
}
# kept NAME UUID: kubelet, driver and API server still agree. A restarted kubelet needs a second
# until it knows its pods.
kept() {
  local deadline=$((SECONDS + 30))
  running "$1"
  expect '^0$' k get pod "$1" -n "$team" -o jsonpath='{.status.containerStatuses[0].restartCount}'
  until pod_resources 2>/dev/null | grep -q "^held $team/$1/main nvidia.com/mig-[^ ]* $2"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "the kubelet does not say that $1 has $2: $(pod_resources 2>&1)"
    sleep 0.1
  done
  [ "$(device 3g.20gb@4)" = "$2" ] || fail "what pod $1 holds was touched"
}

say "a node with kubelet, containerd and runc joins"
echo "{\"node\": \"$node\", \"gpus\": [{\"model\": \"A100-40GB\"}]}" >"$work/gpus.json"
join_node 1

say "the agent, with the chart's rights, offers the slices that it creates"
permit_agent
cat >"$work/agent.yaml" <<Y
apiVersion: config.nos.nebuly.com/v1alpha1
kind: MigAgentConfig
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
devicePlugin: {mode: builtin, folder: $work/node/kubelet/device-plugins}
podResourcesSocket: $work/node/kubelet/pod-resources/kubelet.sock
nvmlLibrary: $build/test/doubles/nvml/libnvidia-ml.so.1
Y
cat >"$work/partitioner.yaml" <<Y
apiVersion: config.nos.nebuly.com/v1alpha1
kind: GpuPartitionerConfig
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
leaderElection: {leaderElect: false}
Y
start_agent
plan 1 3g.20gb@4,1g.5gb@0
allocatable 3g.20gb 1
allocatable 1g.5gb 1
uuid=$(device 3g.20gb@4)
expect "allocatable nvidia.com/mig-3g.20gb $uuid" pod_resources
expect "allocatable nvidia.com/mig-1g.5gb $(device 1g.5gb@0)" pod_resources

say "a pod runs with that very slice, and it counts as used"
create_pod keep 3g.20gb
running keep
has keep "$uuid"
kept keep "$uuid"
status_layout 1g.5gb@0:free,3g.20gb@4:used

say "a plan cannot take it, and takes what is free"
plan 2 7g.40gb@0
allocatable 1g.5gb 0
acknowledged 2
expect '"outcome":"partial".*InUse' k get node "$node" -o jsonpath='{.metadata.annotations.nos\.nebuly\.com/partitioning-result}'
kept keep "$uuid"

say "a new slice is created while kubelet and plugin go on"
plan 3 3g.20gb@4,2g.10gb@0
allocatable 2g.10gb 1
acknowledged 3
create_pod other 2g.10gb
running other
has other "$(device 2g.10gb@0)"

say "a slice whose pod has ended is free; it is withdrawn first and then destroyed"
expect deleted k delete pod other -n "$team"
status_layout 2g.10gb@0:free,3g.20gb@4:used
plan 4 3g.20gb@4
while [ -n "$(device 2g.10gb@0)" ]; do
  expect . pod_resources
  [ "$SECONDS" -lt 200 ] || fail "2g.10gb@0 is not destroyed"
done
expect '^0$' k get node "$node" -o jsonpath='{.status.allocatable.nvidia\.com/mig-2g\.10gb}'
[[ $(pod_resources) != *mig-2g.10gb* ]] || fail "the kubelet has a device that is gone"
acknowledged 4

say "the kubelet is killed, and does not know its pods for a second; pod and slice stay"
plan 5 3g.20gb@0,3g.20gb@4
allocatable 3g.20gb 2
expect '' "$here/kubelet.sh" "$node" "$work/node" kill
deadline=$((SECONDS + 60))
until [[ $(pod_resources 2>/dev/null) == *allocatable* ]]; do
  [ "$SECONDS" -lt "$deadline" ] || fail "the kubelet has no device of the plugin: $(pod_resources 2>&1)"
done
plan 6 3g.20gb@0
kept keep "$uuid"
acknowledged 6
kept keep "$uuid"
plan 7 3g.20gb@4,1g.5gb@1
allocatable 1g.5gb 1
allocatable 3g.20gb 1
kept keep "$uuid"
create_pod third 1g.5gb
running third
has third "$(device 1g.5gb@1)"

say "the agent is killed; pods and slices stay"
kill -9 "${pid[agent]}"
shows '.status.allocatable.nvidia\.com/mig-1g\.5gb' 0
start_agent
allocatable 1g.5gb 1
allocatable 3g.20gb 1
plan 8 7g.40gb@0
acknowledged 8
status_layout 1g.5gb@1:used,3g.20gb@4:used
kept keep "$uuid"
has third "$(device 1g.5gb@1)"

say "when the pods have ended, their slices make room"
expect deleted k delete pod keep third -n "$team"
allocatable 7g.40gb 1
create_pod whole 7g.40gb
running whole
has whole "$(device 7g.40gb@0)"
expect deleted k delete pod whole -n "$team"

say "a pod is all it takes: its slice is created, and it runs"
"$build/nos" partitioner --config "$work/partitioner.yaml" >>"$work/partitioner.log" 2>&1 &
pid[partitioner]=$!
disown
"$kubectl" get pods -n "$team" -w -o 'custom-columns=:.metadata.name,:.status.phase' --no-headers >"$work/watch" 2>&1 &
pid[watch]=$!
disown
asks=(3g.20gb 7g.40gb) # each excludes the other
for ((i = 0; i < ${3:-2}; ++i)); do
  begun=$(date +%s%N)
  create_pod "slice-$i" "${asks[i % 2]}"
  deadline=$((SECONDS + 60))
  until grep -q "^slice-$i  *Running" "$work/watch"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "slice-$i does not run: $(k describe pod "slice-$i" -n "$team" | tail -n 8)"
    read -rt 0.005 <> <(:)
  done
  echo $((($(date +%s%N) - begun) / 1000000)) >>"$work/times"
  expect deleted k delete pod "slice-$i" -n "$team"
done
sort -n "$work/times" | awk '{t[NR] = $1} END {
  printf "%d pods, each on a slice created for it: median %d ms, most %d ms\n", NR, t[int((NR + 1) / 2)], t[NR]}'
if grep forbidden "$work/agent.log"; then fail "a permission is missing"; fi

say "the node goes and leaves nothing behind"
kill "${pid[kubelet]}"
wait "${pid[kubelet]}"
refuse NotFound k get node "$node"
out=$(grep -F "$work" /proc/mounts /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' | grep -v "nos agent")
[ -z "$out" ] || fail "mounts or processes are left"
out=$(find /sys/fs/cgroup -maxdepth 2 -name "nos-$node")
[ -z "$out" ] || fail "cgroups are left"
say ok
