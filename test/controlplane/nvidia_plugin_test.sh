#!/usr/bin/env bash
# The chart with devicePlugin.mode=nvidia on the real control plane: NVIDIA's plugin, a double in
# its own DaemonSet, offers the slices that existed at its start. nos deletes its pod once per
# change, the DaemonSet creates another, and the kubelet then sees the new slices.
#
#   nvidia_plugin_test.sh SCRIPT BUILD_FOLDER     with NOS_CONTROLPLANE_DIR
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
here=$(dirname "$(readlink -f "$0")")
# shellcheck source=test/controlplane/components.sh
port=$(. "$here/components.sh" && free_port)
plugin=app=nvidia-device-plugin-daemonset # the chart's own selector
of=gpuPartitioner.migAgent.devicePlugin
one=',"computeInstances":[{"id":0,"profile":0,"slices":1}]}'
nodes=(gpu-1)
gpus=('{"model":"A100-40GB","instances":[{"id":1,"profile":"1g.5gb","start":0'"$one"',{"id":2,"profile":"1g.5gb","start":1'"$one"']}')
values=(--set "$of.mode=nvidia")
node_flags=(--plugin "$plugin" --nvml "$2/test/doubles/nvml/libnvidia-ml.so.1")
probes=127.0.0.1:$port
before_agents() {
  say "NVIDIA's plugin offers what is there"
  expect created from "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: plugin, namespace: $team}
spec:
  selector: {matchLabels: {${plugin/=/: }}}
  template:
    metadata: {labels: {${plugin/=/: }}}
    spec:
      nodeSelector: {nos.nebuly.com/gpu-partitioning: mig}
      containers: [{name: main, image: example/plugin}]
" k create
  soon '^allocatable.*1g.5gb' "$build/test/controlplane/nos_pod_resources" "$work/folder-gpu-1/pod-resources.sock"
  plugin_pod
}
# plugin_pod: waits for another pod than the last, and records its name.
plugins=('')
plugin_pod() {
  local deadline=$((SECONDS + 90)) now=''
  until [ -n "$now" ] && [ "$now" != "${plugins[-1]}" ]; do
    [ "$SECONDS" -lt "$deadline" ] || fail "the plugin's pod was not replaced"
    now=$(k get pods -n "$team" -l "$plugin" --field-selector status.phase=Running -o jsonpath='{.items[*].metadata.name}')
  done
  plugins+=("$now")
}
# asked VERB: names of pods on which the agent used this verb, from the API server's audit log.
asked() {
  grep -hF "\"username\":\"system:serviceaccount:$system:nos-mig-agent\"" "$dir"/audit*.log |
    grep -F "\"verb\":\"$1\"" | grep -oE '"objectRef":\{"resource":"pods","namespace":"[^"]*","name":"[^"]*"' |
    sed 's/.*"\(.*\)"$/\1/'
}
# restarted_once: exactly one restart since the last call, and the plan is done.
restarted_once() {
  local plan
  plan=$(k get node gpu-1 -o jsonpath='{.metadata.annotations.nos\.nebuly\.com/spec-partitioning-plan}')
  shows status-partitioning-plan "$plan"
  out=$(asked delete)
  [ "$out" = "$(printf '%s\n' "${plugins[@]:1}")" ] || fail "deleted should be: ${plugins[*]}"
  plugin_pod
}
# shows ANNOTATION VALUE: waits until the node has it.
shows() {
  expect 'condition met' k wait node/gpu-1 --for=jsonpath="{.metadata.annotations.nos\.nebuly\.com/${1//./\\.}}=$2" --timeout 90s
}
# The answer of the agent's /readyz. (kubectl omits the text of a failure.)
ready() {
  printf 'GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3
  cat <&3
} 3<>"/dev/tcp/127.0.0.1/$port"
# latency MILLISECONDS: delay after the last call that creates an instance.
latency() {
  # shellcheck disable=SC2016
  flock "$work/gpu-1.json.lock" sh -c 'tr -d "\n" <"$1" | sed "s/\"latencyMs\": *{[^}]*}/\"latencyMs\":{$2}/" >"$1.new" && mv "$1.new" "$1"' \
    sh "$work/gpu-1.json" "\"nvmlGpuInstanceCreateComputeInstance\":$1"
  grep -q "CreateComputeInstance\":$1" "$work/gpu-1.json" || fail "no latency in $(cat "$work/gpu-1.json")"
}
kept() { instances gpu-1 | grep -qxF "$held" || fail "what 'keep' holds was touched"; }
# chart SELECTOR: installs the chart with a Role in the plugin's namespace; the agent's pod would be
# replaced.
chart() {
  expect 'STATUS: deployed' "$helm" upgrade nos "$here/../../deploy/helm/nos" -n "$system" \
    "${values[@]}" --set "$of.selector=$1" --set "$of.namespace=$team"
  agent_config gpu-1 >"$work/agent-gpu-1.yaml"
  kill_hard agent-gpu-1
  start_agent gpu-1
}
# shellcheck source=test/controlplane/installed.sh
. "$here/installed.sh"

say "a missing slice is created, and the plugin restarted"
expect created from "$(pod keep 1 3g.20gb)" k create
wait_running keep
restarted_once
held=$(instances gpu-1 | grep 3g.20gb)
out=$(instances gpu-1)
[ "$(wc -l <<<"$out")" -eq 3 ] || fail "3 instances expected"

say "free slices make room for another; the used one stays"
expect created from "$(pod wide 1 3g.20gb)" k create
wait_running wide
restarted_once
kept
out=$(instances gpu-1)
[ "$(sed 's/.*"profile":"//; s/".*//' <<<"$out")" = $'3g.20gb\n3g.20gb' ] || fail "two 3g.20gb expected"

say "the agent is killed between creation and restart"
latency 30000
expect deleted k delete pod wide -n "$team"
expect created from "$(pod late 1 2g.10gb)" k create
deadline=$((SECONDS + 60))
until tr -d ' \n' <"$work/gpu-1.json" | grep -qE '"profile":"2g.10gb","start":[0-9],"computeInstances":\[\{'; do
  [ "$SECONDS" -lt "$deadline" ] || fail "no 2g.10gb: $(instances gpu-1)"
  read -rt 0.05 <> <(:)
done
kill_hard agent-gpu-1
latency 0
expect "^pod/${plugins[-1]}$" k get pods -n "$team" -l "$plugin" -o name
start_agent gpu-1
wait_running late
restarted_once
kept

say "no permission is missing, and none was there for nothing"
needless=$(comm -23 \
  <({ granted clusterrole/nos-mig-agent; granted clusterrole/nos-mig-agent-device-plugin; } | sort -u) \
  <(used nos-mig-agent) | grep -vx 'patch events')
grep -q 'delete pods' <(granted clusterrole/nos-mig-agent-device-plugin) || fail "cannot read the roles"
[ -z "$needless" ] || fail "granted by the chart, and never asked for: $needless"

say "a wrong selector: said on the node and in the log, not ready, and the status goes on"
chart app=somebody-else
expect created from "$(pod another 1 1g.5gb)" k create
shows status-gpu-0-1g.5gb-free 1
reason="no pod of NVIDIA's device plugin on node gpu-1 .*app=somebody-else"
expect "$reason" k wait events -n default --field-selector involvedObject.name=gpu-1,reason=DevicesNotOffered \
  --for=jsonpath='{.type}'=Warning --timeout 90s -o jsonpath='{.message}'
soon '^HTTP/1.1 503' ready
expect "$reason" grep 'failed to reconcile object' "$work/agent-gpu-1.log"
expect Pending k get pod another -n "$team" -o jsonpath='{.status.phase}'

say "mended, and with a role in the plugin's namespace only"
chart "$plugin"
refuse NotFound k get clusterrole nos-mig-agent-device-plugin
wait_running another
restarted_once
kept
soon '^HTTP/1.1 200' ready
out=$(grep -hF "system:serviceaccount:$system:" "$dir"/audit*.log | grep '"code":403')
[ -z "$out" ] || fail "forbidden requests"
say ok
