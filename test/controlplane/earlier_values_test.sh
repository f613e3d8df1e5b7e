#!/usr/bin/env bash
# nos on the real control plane with the values file of the Go project's chart, as it was shipped:
# nodes with the current label and with its oldest one get an agent, pods get slices from all, the
# list's impossible geometry ends no daemon, and the scheduler's ConfigMap may be missing.
#
#   earlier_values_test.sh SCRIPT BUILD     with NOS_CONTROLPLANE_DIR
# shellcheck disable=SC2034,SC2154
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
values=(-f "$(dirname "$0")/../data/values/go.yaml")
gpus=('{"model": "A100-80GB"}')
node_flags=(--label nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB)
# installed.sh calls it once the nodes are there. The daemons read the chart's files, with paths of
# this machine; nobody mounts the ConfigMap of a scheduler.
before_agents() {
  k get configmap nos-gpu-partitioner -n "$system" -o jsonpath='{.data.known_mig_geometries\.yaml}' >"$work/models.yaml"
  k get configmap nos-gpu-partitioner -n "$system" -o jsonpath='{.data.config\.yaml}' |
    sed "s|^leaderElection:|&\n  resourceNamespace: $system|; s|/etc/nos-scheduler|$work|" >"$work/partitioner.yaml"
  printf '\nhealth: {healthProbeBindAddress: "0"}\nmetrics: {bindAddress: "0"}\n' >>"$work/partitioner.yaml"
  sed -i "s|/etc/nos/known_mig_geometries.yaml|$work/models.yaml|" "$work"/partitioner.yaml "$work"/agent-*.yaml
  grep -q "$work/models.yaml" "$work/agent-${nodes[0]}.yaml" || fail "the agent has no list of geometries"
  expect labeled k label node "${nodes[1]}" nos.nebuly.com/gpu-partitioning- n8s.nebuly.ai/auto-mig-enabled=true
}
# shellcheck source=test/controlplane/installed.sh
. "$(dirname "$0")/installed.sh"
timeout=120

say "both labels select the agent"
for node in "${nodes[@]}"; do
  soon "^$node\$" k get pods -n "$system" -l app.kubernetes.io/component=mig-agent \
    -o jsonpath='{range .items[*]}{.spec.nodeName}{"\n"}{end}'
done
expect '512Mi' k get deployment nos-gpu-partitioner -n "$system" -o jsonpath='{.spec.template.spec.containers[0].resources.limits}'

say "pods get slices on nodes with either label"
expect created from "$(pod whole-1 1 7g.80gb)$(pod whole-2 1 7g.80gb)" k create
wait_running whole-1 whole-2

say "the geometry that no GPU can have is ignored, and said"
for node in "${nodes[@]}"; do
  soon 'GeometryIgnored.*3g.20gb' k get events -A --field-selector "involvedObject.name=$node"
done
for name in a b; do
  grep -q 'ignored a geometry that no GPU can have.*3g.20gb' "$work/partitioner-$name.log" || fail "partitioner $name: no warning"
  grep -q 'scheduler configuration is missing' "$work/partitioner-$name.log" || fail "partitioner $name: no fallback"
done

say "a scheduler configuration that appears is read"
printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n' >"$work/new.yaml"
mv "$work/new.yaml" "$work/scheduler_config.yaml"
within 30 grep -q 'reloaded configuration files' "$work/partitioner-a.log"
echo ok
