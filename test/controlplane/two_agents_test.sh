#!/usr/bin/env bash
# Two agents on one node with a real kubelet, at the same time: as while the container of a pod that was deleted by force
# still runs beside its successor. They are of the earlier version and of this one where script/previous has built that,
# else both of this one; then the same back. No pod loses its slice, no slice is given twice, and the agent that stays
# offers all devices. Only the GPU is a double.
#
#   two_agents_test.sh SCRIPT BUILD_FOLDER     with NOS_CONTROLPLANE_DIR
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
build=$2 node=agents-$$ team=team-agents-$$ release=nos-agents
# shellcheck source=test/controlplane/real_node.sh
. "$(dirname "$0")/real_node.sh"
previous=${NOS_PREVIOUS:-$("$here/../../script/previous" --path 2>/dev/null)}/nos
[ -x "$previous" ] || previous=$build/nos
declare -A program=([former]=$previous [latter]=$build/nos)

# start_agent NAME: former or latter; returns when it is ready.
start_agent() {
  local port
  while port=$((20000 + RANDOM % 12000)); (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
  cat >"$work/$1.yaml" <<Y
apiVersion: config.nos.nebuly.com/v1alpha1
kind: MigAgentConfig
health: {healthProbeBindAddress: "127.0.0.1:$port"}
metrics: {bindAddress: "0"}
devicePlugin: {mode: builtin, handover: environment, folder: $work/node/kubelet/device-plugins}
podResourcesSocket: $work/node/kubelet/pod-resources/kubelet.sock
nvmlLibrary: $build/test/doubles/nvml/libnvidia-ml.so.1
Y
  NODE_NAME=$node "${program[$1]}" agent --config "$work/$1.yaml" --kubeconfig "$work/agent.kubeconfig" >>"$work/$1.log" 2>&1 &
  pid[$1]=$!
  disown
  within 60 curl -fsS "http://127.0.0.1:$port/readyz"
}
end_agent() {
  kill "${pid[$1]}"
  timeout 60 tail --pid="${pid[$1]}" -f /dev/null || fail "agent $1 does not end"
  unset "pid[$1]"
}
acknowledged() { shows '.metadata.annotations.nos\.nebuly\.com/status-partitioning-plan' "$1"; }
device() {
  "$build/nos" agent --once --print --nvml-library "$build/test/doubles/nvml/libnvidia-ml.so.1" |
    awk -v placement="$1" '$1 == placement {print $NF}'
}
# given POD: the device in the environment of its container.
given() { cat "$work/node/logs/${team}_$1"_*/main/*.log | sed -n 's/^.*NVIDIA_VISIBLE_DEVICES=//p'; }
create_pod() { sleeper_pod "$1" "nvidia.com/mig-$2"; }
kept() {
  running keep
  expect '^0$' k get pod keep -n "$team" -o jsonpath='{.status.containerStatuses[0].restartCount}'
  [ "$(device 3g.20gb@4)" = "$uuid" ] || fail "the slice of a running pod was touched"
}

say "a node with kubelet, containerd and runc joins, with an agent and a pod on a slice"
echo "{\"node\": \"$node\", \"gpus\": [{\"model\": \"A100-40GB\"}]}" >"$work/gpus.json"
: >"$work/gpus.json.journal"
join_node 1
permit_agent
start_agent former
say "the former agent is $("${program[former]}" version | head -n 1), the latter $("${program[latter]}" version | head -n 1)"
plan 1 3g.20gb@4,1g.5gb@0,1g.5gb@1
allocatable 3g.20gb 1
allocatable 1g.5gb 2
create_pod keep 3g.20gb
running keep
uuid=$(device 3g.20gb@4)
[ "$(given keep)" = "$uuid" ] || fail "the pod has $(given keep), not $uuid"

plan=1
# hand_over FROM TO: TO begins beside FROM, and stays when FROM ends.
hand_over() {
  local first second
  say "while both run, two pods get a slice each, and a plan is carried out once"
  start_agent "$2"
  create_pod "first-$2" 1g.5gb
  create_pod "second-$2" 1g.5gb
  running "first-$2"
  running "second-$2"
  first=$(given "first-$2") second=$(given "second-$2")
  [ "$(printf '%s\n' "$first" "$second" | sort)" = "$(printf '%s\n' "$(device 1g.5gb@0)" "$(device 1g.5gb@1)" | sort)" ] ||
    fail "two pods have $first and $second"
  plan=$((plan + 1))
  plan "$plan" 3g.20gb@4,1g.5gb@0,1g.5gb@1,2g.10gb@2
  acknowledged "$plan"
  kept

  say "one ends: the other offers all of it"
  end_agent "$1"
  allocatable 2g.10gb 1
  allocatable 3g.20gb 1
  create_pod "third-$2" 2g.10gb
  running "third-$2"
  [ "$(given "third-$2")" = "$(device 2g.10gb@2)" ] || fail "the pod has $(given "third-$2")"
  kept
  expect deleted k delete pod "first-$2" "second-$2" "third-$2" -n "$team"
  plan=$((plan + 1))
  plan "$plan" 3g.20gb@4,1g.5gb@0,1g.5gb@1
  acknowledged "$plan"
  allocatable 1g.5gb 2
  kept
}
hand_over former latter
hand_over latter former
expect_no "destroyed $uuid" cat "$work/gpus.json.journal"
if grep forbidden "$work"/former.log "$work"/latter.log; then fail "a permission is missing"; fi
echo ok
