# Starts the daemons of nos, and the doubles of nodes, as processes with the chart's configuration and the
# rights of its service accounts; functions for pods. Sourced after check.sh. Uses $build, $work, $dir,
# $system and $team (namespaces of nos and of pods), $gpus (per node), $node_flags (of nos-node-double), and
# $nos (the program; $build/nos).
# shellcheck shell=bash disable=SC2154
nos=${nos:-$build/nos}
nvml=$build/test/doubles/nvml/libnvidia-ml.so.1

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
# stop_softly NAME: SIGTERM, and waits for its end.
stop_softly() {
  kill "${pid[$1]}" 2>/dev/null
  tail --pid="${pid[$1]}" -f /dev/null
  unset "pid[$1]"
}
# service_accounts COMPONENT:NAME...: writes $work/NAME.kubeconfig, with the rights of nos-COMPONENT.
service_accounts() {
  local who
  for who in "$@"; do
    expect kubeconfig "$controlplane" kubeconfig "e2e-${who#*:}" --dir "$dir" --namespace "$system" \
      --serviceaccount "nos-${who%:*}"
    cp "$dir/e2e-${who#*:}.kubeconfig" "$work/${who#*:}.kubeconfig"
  done
}
# hardware NODE: writes its GPUs, and begins the journal of its devices (test/doubles/device_journal.h).
hardware() {
  local IFS=,
  echo "{\"node\": \"$1\", \"gpus\": [${gpus[*]}]}" >"$work/$1.json"
  : >"$work/$1.json.journal"
}
# taken_devices NODE: prints each device that was destroyed, or given to a second pod, while a pod held it,
# and each that was given to a pod when it did not exist.
taken_devices() {
  awk '$1 == "created" {gone[$2] = 0}
    $1 == "destroyed" {if ($2 in holder) print "destroyed under " holder[$2] ": " $2; gone[$2] = 1}
    $1 == "held" {
      if (gone[$2]) print "given to " $3 " after its end: " $2
      if ($2 in holder) print "given to " $3 " while " holder[$2] " had it: " $2
      holder[$2] = $3
    }
    $1 == "freed" {delete holder[$2]}' "$work/$1.json.journal"
}
# folder_of NODE: the folder of its kubelet's sockets. A test with long names of nodes has another function: the path of
# a socket has at most 107 characters.
folder_of() { printf '%s\n' "$work/folder-$1"; }
start_node() {
  start "$1" env NOS_NVML_DOUBLE_STATE="$work/$1.json" "$build/nos-node-double" \
    --kubeconfig "$KUBECONFIG" --name "$1" --folder "$(folder_of "$1")" --journal "$work/$1.json.journal" \
    --label nos.nebuly.com/gpu-partitioning=mig --label nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB \
    --label "nvidia.com/gpu.count=${#gpus[@]}" "${node_flags[@]}"
}
# agent_config NODE: the chart's configuration, with the doubles' paths instead of the node's. There are no files of
# a driver, so containers get them from NVIDIA's runtime.
agent_config() {
  local folder
  folder=$(folder_of "$1")
  k get configmap nos-mig-agent -n "$system" -o jsonpath='{.data.config\.yaml}' |
    sed "s|^devicePlugin:|&\n  folder: $folder/device-plugins|; /^driverRoot/d; /^deviceRoot/d"
  cat <<Y

health: {healthProbeBindAddress: "${probes:-0}"}
metrics: {bindAddress: "0"}
podResourcesSocket: $folder/pod-resources.sock
nvmlLibrary: $nvml
Y
}
# agent_account NODE: writes $work/agent-NODE.kubeconfig, whose token belongs to the Node as an agent's does.
agent_account() {
  expect kubeconfig "$controlplane" kubeconfig "e2e-agent-$1" --dir "$dir" --namespace "$system" \
    --serviceaccount nos-mig-agent --node "$1"
  cp "$dir/e2e-agent-$1.kubeconfig" "$work/agent-$1.kubeconfig"
}
start_agent() {
  agent_account "$1"
  start "agent-$1" env NODE_NAME="$1" NOS_NVML_DOUBLE_STATE="$work/$1.json" \
    "$nos" agent --config "$work/agent-$1.yaml" --kubeconfig "$work/agent-$1.kubeconfig"
}
start_partitioner() {
  start "partitioner-$1" "$nos" partitioner --config "$work/partitioner.yaml" \
    --kubeconfig "$work/partitioner.kubeconfig"
}
# The chart's configuration, with other ports.
scheduler_config() {
  k get configmap nos-scheduler -n "$system" -o jsonpath='{.data.scheduler_config\.yaml}' |
    sed "s|^leaderElection:|&\n  resourceNamespace: $system|"
  printf '\nhealth: {healthProbeBindAddress: "0"}\nmetrics: {bindAddress: "0"}\n'
}
start_scheduler() {
  start "scheduler-$1" "$nos" scheduler --config "$work/scheduler/config.yaml" \
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
