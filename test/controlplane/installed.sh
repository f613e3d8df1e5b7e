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
shared_plane
work=$(mktemp -d)
system=nos-e2e-$$ team=team-e2e-$$

# shellcheck source=test/controlplane/daemons.sh
. "$(dirname "${BASH_SOURCE[0]}")/daemons.sh"
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
  "$helm" uninstall nos -n "$system" --no-hooks >/dev/null 2>&1
  k delete namespace "$system" --wait=false >/dev/null 2>&1
  k delete node "${nodes[@]}" >/dev/null 2>&1
  for name in "${!pid[@]}"; do kill -9 "${pid[$name]}" 2>/dev/null; done
  if declare -F at_end >/dev/null; then at_end; fi
  if [ "$code" -ne 0 ]; then tail -n 15 "$work"/*.log; fi
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT

say "the chart is installed"
expect 'STATUS: deployed' "$helm" install nos "$(dirname "$controlplane")/../deploy/helm/nos" -n "$system" --create-namespace \
  --set operator.enabled=false --set operator.crds.enabled=false "${values[@]}"
expect 'successfully rolled out' k rollout status deployment/nos-gpu-partitioner -n "$system" --timeout 240s
expect 'successfully rolled out' k rollout status deployment/nos-scheduler -n "$system" --timeout 240s
service_accounts gpu-partitioner:partitioner scheduler:scheduler
expect created k create namespace "$team"
expect 'condition met' k wait --for=create serviceaccount/default -n "$team" --timeout 60s
for node in "${nodes[@]}"; do
  hardware "$node"
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
# One by one: kubectl gives up at once if two of its objects are missing.
for node in "${nodes[@]}"; do
  expect 'condition met' k wait --for=create "node/$node" --timeout 30s
done
expect 'condition met' k wait --for=condition=Ready "${nodes[@]/#/node/}" --timeout 30s
if declare -F before_agents >/dev/null; then before_agents; fi
for node in "${nodes[@]}"; do start_agent "$node"; done
start_partitioner a
start_partitioner b
