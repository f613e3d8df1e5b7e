#!/usr/bin/env bash
# Containers get the devices of their slice and no others, by each hand-over, with a real kubelet,
# containerd and runc on the real control plane. Terminals stand for the device nodes of the driver:
# they can be opened, and no container has them otherwise. The driver's /proc and files are doubled too.
#
#   handover_test.sh SCRIPT BUILD_FOLDER     with NOS_CONTROLPLANE_DIR
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
build=$2 node=handover-$$ team=team-handover-$$ release=nos-handover
# shellcheck source=test/controlplane/real_node.sh
. "$(dirname "$0")/real_node.sh"

# shellcheck source=test/controlplane/driver_of_node.sh
. "$(dirname "$0")/driver_of_node.sh"

# start_agent HANDOVER [COMMAND]: the command is done before, in the agent's mount namespace.
start_agent() { agent_here "$1" 'hybrid: {wholeOnMigNodes: true}' "${2:-}"; }
stop_agent() {
  kill "${pid[agent]}"
  timeout 20 tail -s 0.1 -f /dev/null --pid="${pid[agent]}"
}
# handover REASON: waits until the node's condition is this.
handover() { shows '.status.conditions[?(@.type=="nos.nebuly.com/DeviceHandover")].reason' "$1"; }
# create_pod NAME RESOURCE: sets NVIDIA_VISIBLE_DEVICES as images do, and makes nodes of all devices.
create_pod() {
  local numbers
  numbers=$(seq -f "$tty:%g" 18 62 | tr '\n' ' ')
  sleeper_pod "$1" "nvidia.com/$2" \
    "{name: NVIDIA_VISIBLE_DEVICES, value: all}, {name: PROBE, value: '$numbers'}"
}
waits_without_container() {
  expect 'condition met' k wait "pod/$1" -n "$team" --for=jsonpath='{.status.conditions[0].reason}'=Unschedulable --timeout 60s
  expect '^$' k get pod "$1" -n "$team" -o jsonpath='{.status.containerStatuses}'
}

make_machine '{"model": "A100-40GB"}' '{"model": "A100-40GB"}' '{"model": "H100-80GB", "mig": false}'
export NOS_NODE_DEVICES=$work/dev
cdi=$work/node/cdi

say "a containerd that has CDI switched off: pods get device nodes, or none, and the node says why"
NOS_NODE_CDI=false join_node 3
permit_agent
off='CDI switched off \(enable_cdi\)'
start_agent auto
handover DeviceNodes
expect "$off, so the kubelet passes on device nodes" k get node "$node" -o \
  jsonpath='{.status.conditions[?(@.type=="nos.nebuly.com/DeviceHandover")].message}'
plan 1 3g.20gb@4
allocatable 3g.20gb 1
create_pod switched-off mig-3g.20gb
running switched-off
sees switched-off 4 all
expect deleted k delete pod switched-off -n "$team"
stop_agent
start_agent cdi
handover SpecificationNotRead
expect "$off; no new pod gets a device" k get node "$node" -o \
  jsonpath='{.status.conditions[?(@.type=="nos.nebuly.com/DeviceHandover")].message}'
allocatable 3g.20gb 0
stop_agent
leave_node
jq '.gpus[].instances = []' "$work/gpus.json" >"$work/gpus.new" && mv "$work/gpus.new" "$work/gpus.json"

say "a node with three GPUs joins"
join_node 3
authenticate_agent

say "auto: containerd 2 reads CDI specifications, and the node says so"
start_agent auto
handover ContainerDeviceInterface
expect 'containerd://2' k get node "$node" -o \
  jsonpath='{.status.conditions[?(@.type=="nos.nebuly.com/DeviceHandover")].message}'
shows '.status.capacity.nvidia\.com/gpu' 3 # before a pod asks
shows '.status.allocatable.nvidia\.com/gpu' 0
plan 1 3g.20gb@4,1g.5gb@0
allocatable 3g.20gb 1
allocatable 1g.5gb 1
[ ! -e "/proc/$(tr -d ' ' <"$work/node/first.pid")/root/dev/nvidia-caps" ] || fail "the host has capabilities"
create_pod large mig-3g.20gb
create_pod small mig-1g.5gb
running large
running small
sees large 4 void
sees small 0 void

say "of several devices the kubelet gives the one on the fullest GPU"
expect deleted k delete pod small -n "$team"
expect annotated k annotate node "$node" --overwrite nos.nebuly.com/spec-partitioning-plan=2 \
  nos.nebuly.com/spec-layout-1=1g.5gb@0,1g.5gb@1,1g.5gb@2,1g.5gb@3,1g.5gb@4,1g.5gb@5
allocatable 1g.5gb 7
create_pod small mig-1g.5gb
running small
sees small 0 void

say "a whole GPU, on the same node"
expect annotated k annotate node "$node" --overwrite nos.nebuly.com/spec-partitioning-plan=3 nos.nebuly.com/spec-layout-2=gpu@0
shows '.status.allocatable.nvidia\.com/gpu' 1
create_pod whole gpu
running whole
has whole void "/dev/nvidia$whole_gpu $tty:$whole_gpu"
expect deleted k delete pod whole -n "$team"

say "a specification that another program removes is written again"
rm "$cdi"/nos.nebuly.com-gpu.json
within 30 grep -q MIG- "$cdi"/nos.nebuly.com-gpu.json
expect deleted k delete pod small -n "$team"
create_pod again mig-1g.5gb
running again
sees again 0 void

say "devices: the kubelet passes them on"
expect deleted k delete pod again large -n "$team"
stop_agent
start_agent devices
handover DeviceNodes
allocatable 3g.20gb 1
create_pod by-kubelet mig-3g.20gb
running by-kubelet
# The kubelet lets the pod's own variables win; the devices are the same.
sees by-kubelet 4 all
expect deleted k delete pod by-kubelet -n "$team"

# fault COMMAND TEXT: with it no specification can be written, and the agent gives the reason.
fault() {
  stop_agent
  start_agent cdi "$1"
  handover SpecificationNotWritten
  # The fault before this one has the same reason.
  soon "$2" k get node "$node" -o \
    jsonpath='{.status.conditions[?(@.type=="nos.nebuly.com/DeviceHandover")].message}'
  expect SpecificationNotWritten k get events -A --field-selector "involvedObject.name=$node,type=Warning"
  allocatable 3g.20gb 0
  create_pod "waits-$3" mig-3g.20gb
  waits_without_container "waits-$3"
  expect deleted k delete pod "waits-$3" -n "$team"
}
say "the folder of specifications is full, read-only or missing: no pod starts, and the node says why"
fault "mount -t tmpfs -o size=4k tmpfs $cdi" "$cdi.*No space left" full
fault "mount --bind $cdi $cdi && mount -o remount,bind,ro $cdi" "$cdi.*Read-only" read-only
cdi=$work/none/cdi
fault "" "$cdi.*No such file" missing
cdi=$work/node/cdi

say "once it can be written, pods get their devices"
stop_agent
start_agent cdi
handover ContainerDeviceInterface
allocatable 3g.20gb 1
create_pod healed mig-3g.20gb
running healed
sees healed 4 void
expect deleted k delete pod healed -n "$team"

# The agent of this test sees the cgroups of pods. The cgroup of a pod whose grace period is over is gone
# when its last container has ended.
say "a slice of a pod deleted by force is given on when the pod's containers have ended"
sleeper_pod stubborn nvidia.com/mig-3g.20gb "{name: STUBBORN, value: '1'}"
running stubborn
uid=$(k get pod stubborn -n "$team" -o jsonpath='{.metadata.uid}')
processes() { find /sys/fs/cgroup -path "*/nos-$node/*pod$uid/*" -name cgroup.procs -exec cat {} + 2>/dev/null | sort -u; }
[ -n "$(processes)" ] || fail "no process is found in the pod's cgroup"
expect 'force deleted' k delete pod stubborn -n "$team" --force --grace-period=0
allocatable 3g.20gb 0 # the kubelet has it back already
[ -n "$(processes)" ] || fail "the pod ended before its grace period was over: this test shows nothing"
create_pod next mig-3g.20gb
running next
[ -z "$(processes)" ] || fail "two pods ran in one slice"
sees next 4 void
expect deleted k delete pod next -n "$team"

say "a leftover of another driver changes nothing; while the loaded one has no libraries, no device is offered"
touch "$work/driver/usr/lib/x86_64-linux-gnu/libcuda.so.470.1"
within 30 grep -q '/libcuda.so.550.54.15' "$cdi"/nos.nebuly.com-gpu.json
sed -i 's/550.54.15/580.95.05/' "$work/proc/driver/nvidia/version"
handover DriverFilesNotFound
allocatable 3g.20gb 0
sed -i 's/580.95.05/550.54.15/' "$work/proc/driver/nvidia/version"
handover ContainerDeviceInterface
allocatable 3g.20gb 1

say "an agent whose library is that of a former driver ends, and its devices with it"
(flock 9 && jq '.faults = [{"call": "nvmlDeviceGetCount_v2", "error": 18, "times": 1000}]' "$work/gpus.json" >"$work/gpus.new" &&
  mv "$work/gpus.new" "$work/gpus.json") 9>>"$work/gpus.json.lock"
timeout 60 tail -s 0.1 -f /dev/null --pid="${pid[agent]}" || fail "the agent goes on with the former driver's library"
expect 'the driver was replaced' tail -n 3 "$work/agent.log"
allocatable 3g.20gb 0
if grep forbidden "$work/agent.log"; then fail "a permission is missing"; fi
say ok
