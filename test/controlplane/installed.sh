# Installs nos on the control plane with its chart, on two nodes with two doubled A100-40GB each,
# with two partitioners and one agent per node; removed at the end of the script. Sourced after
# check.sh; $2 is the build directory. Variables that may be set before: nodes, gpus (per node, in
# the format of test/doubles/nvml), values (arguments of helm for the chart), node_flags (of
# nos-node-double), before_agents and at_end (functions).
# shellcheck shell=bash disable=SC2154
# shellcheck source=test/controlplane/permissions.sh
. "$(dirname "${BASH_SOURCE[0]}")/permissions.sh"
build=$2
[ -n "${nodes[*]:-}" ] || nodes=(gpu-1 gpu-2)
[ -n "${gpus[*]:-}" ] || gpus=('{"model": "A100-40GB"}' '{"model": "A100-40GB"}')
dir=$NOS_CONTROLPLANE_DIR
if [ ! -f "$dir/kubeconfig" ]; then
  echo "skipped: no control plane in $dir (script/controlplane up says why)"
  exit 77
fi
kubectl=$("$controlplane" binary kubectl) || fail "no kubectl"
helm=$("$controlplane" binary helm) || fail "no helm"
nvml=$build/test/doubles/nvml/libnvidia-ml.so.1
work=$(mktemp -d)
system=nos-e2e-$$ team=team-e2e-$$
export KUBECONFIG=$dir/kubeconfig

declare -A pid
# start NAME COMMAND...: runs it in the background, its output in a file with that name.
start() {
  local name=$1
  shift
  "$@" >>"$work/$name.log" 2>&1 &
  pid[$name]=$!
  disown
}
kill_hard() { kill -9 "${pid[$1]}" 2>/dev/null; }
finish() {
  local code=$? name
  if [ "$code" -ne 0 ] && [ "$code" -ne 77 ]; then
    k get pods -n "$team" -o wide
    k get nodes "${nodes[@]}" -o jsonpath='{range .items[*]}{.metadata.name}{"\n"}{.metadata.annotations}{"\n"}{.status.allocatable}{"\n"}{end}'
    k get events -A --sort-by=.lastTimestamp | tail -n 25
  fi
  for name in "${!pid[@]}"; do kill "${pid[$name]}" 2>/dev/null; done
  k delete namespace "$team" --wait=false >/dev/null 2>&1
  k get pods -n "$team" -o name 2>/dev/null | xargs -r "$kubectl" delete -n "$team" --force --grace-period=0 >/dev/null 2>&1
  "$helm" uninstall nos -n "$system" >/dev/null 2>&1
  k delete namespace "$system" --wait=false >/dev/null 2>&1
  k delete node "${nodes[@]}" >/dev/null 2>&1
  for name in "${!pid[@]}"; do kill -9 "${pid[$name]}" 2>/dev/null; done
  if declare -F at_end >/dev/null; then at_end; fi
  if [ "$code" -ne 0 ]; then tail -n 15 "$work"/*.log; fi
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT

start_node() {
  start "$1" env NOS_NVML_DOUBLE_STATE="$work/$1.json" "$build/nos-node-double" \
    --kubeconfig "$KUBECONFIG" --name "$1" --folder "$work/folder-$1" \
    --label nos.nebuly.com/gpu-partitioning=mig --label nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB \
    --label "nvidia.com/gpu.count=${#gpus[@]}" "${node_flags[@]}"
}
# agent_config NODE: the chart's configuration, with the doubles' paths instead of the node's.
agent_config() {
  k get configmap nos-mig-agent -n "$system" -o jsonpath='{.data.config\.yaml}' |
    sed "s|^devicePlugin:|&\n  folder: $work/folder-$1/device-plugins|"
  cat <<Y

health: {healthProbeBindAddress: "${probes:-0}"}
metrics: {bindAddress: "0"}
podResourcesSocket: $work/folder-$1/pod-resources.sock
nvmlLibrary: $nvml
Y
}
start_agent() {
  start "agent-$1" env NODE_NAME="$1" NOS_NVML_DOUBLE_STATE="$work/$1.json" \
    "$build/nos" agent --config "$work/agent-$1.yaml" --kubeconfig "$work/agent.kubeconfig"
}
start_partitioner() {
  start "partitioner-$1" "$build/nos" partitioner --config "$work/partitioner.yaml" \
    --kubeconfig "$work/partitioner.kubeconfig"
}
# The chart's configuration, with other ports.
scheduler_config() {
  k get configmap nos-scheduler -n "$system" -o jsonpath='{.data.scheduler_config\.yaml}' |
    sed "s|^leaderElection:|&\n  resourceNamespace: $system|"
  printf '\nhealth: {healthProbeBindAddress: "0"}\nmetrics: {bindAddress: "0"}\n'
}
start_scheduler() {
  start "scheduler-$1" "$build/nos" scheduler --config "$work/scheduler/config.yaml" \
    --kubeconfig "$work/scheduler.kubeconfig"
}
# pod NAME COUNT PROFILE [SCHEDULER]: as YAML.
pod() {
  printf -- '\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s}\nspec:\n' "$1" "$team"
  printf '  schedulerName: %s\n' "${4:-default-scheduler}"
  printf '  containers:\n  - {name: main, image: example/any, resources: {limits: {nvidia.com/mig-%s: %s}}}\n' \
    "$3" "$2"
}
# replica_set NAME REPLICAS PROFILE: as YAML; its pods have the label app=NAME.
replica_set() {
  printf 'apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: %s, namespace: %s}\nspec:\n' "$1" "$team"
  printf '  replicas: %s\n  selector: {matchLabels: {app: %s}}\n  template:\n' "$2" "$1"
  printf '    metadata: {labels: {app: %s}}\n    spec:\n      containers:\n' "$1"
  printf '      - {name: main, image: example/any, resources: {limits: {nvidia.com/mig-%s: 1}}}\n' "$3"
}
wait_replicas() {
  expect 'condition met' k wait --for=jsonpath='{.status.readyReplicas}'="$2" -n "$team" "rs/$1" --timeout 90s
}
wait_running() {
  expect 'condition met' k wait --for=jsonpath='{.status.phase}'=Running -n "$team" \
    --timeout "${timeout:-60}s" "${@/#/pod/}"
}
# instances NODE: the driver's instances, one per line.
instances() {
  tr -d ' \n' <"$work/$1.json" | grep -oE '"id":[0-9]+,"profile":"[^"]*","start":[0-9]+' | sort
}

say "the chart is installed"
expect 'STATUS: deployed' "$helm" install nos "$(dirname "$controlplane")/../deploy/helm/nos" -n "$system" --create-namespace \
  --set operator.enabled=false --set operator.crds.enabled=false "${values[@]}"
expect 'successfully rolled out' k rollout status deployment/nos-gpu-partitioner -n "$system" --timeout 240s
expect 'successfully rolled out' k rollout status deployment/nos-scheduler -n "$system" --timeout 240s
for who in gpu-partitioner:partitioner mig-agent:agent scheduler:scheduler; do
  expect kubeconfig "$controlplane" kubeconfig "e2e-${who#*:}" --namespace "$system" \
    --serviceaccount "nos-${who%:*}"
  cp "$dir/e2e-${who#*:}.kubeconfig" "$work/${who#*:}.kubeconfig"
done
expect created k create namespace "$team"
expect 'condition met' k wait --for=create serviceaccount/default -n "$team" --timeout 60s
for node in "${nodes[@]}"; do
  (
    IFS=,
    echo "{\"node\": \"$node\", \"gpus\": [${gpus[*]}]}" >"$work/$node.json"
  )
  agent_config "$node" >"$work/agent-$node.yaml"
  start_node "$node"
done
cat >"$work/partitioner.yaml" <<Y
apiVersion: config.nos.nebuly.com/v1alpha1
kind: GpuPartitionerConfig
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
leaderElection: {resourceNamespace: $system, leaseDuration: 4, renewDeadline: 2, retryPeriod: 0.5}
Y
expect 'condition met' k wait --for=create "${nodes[@]/#/node/}" --timeout 30s
expect 'condition met' k wait --for=condition=Ready "${nodes[@]/#/node/}" --timeout 30s
if declare -F before_agents >/dev/null; then before_agents; fi
for node in "${nodes[@]}"; do start_agent "$node"; done
start_partitioner a
start_partitioner b
