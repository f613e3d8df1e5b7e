#!/usr/bin/env bash
# nos on the real control plane with the values file of an earlier chart, as it was shipped: the Go
# project's, that of its versions with sub-charts, or walk:ai's. Partitioner, agents and scheduler run with
# the chart's files: nodes with the current label and with the oldest one get an agent, pods get slices from
# all, the list's impossible geometry ends no daemon, and the scheduler's ConfigMap may be missing. With
# walk:ai's, a Job with one of its priority classes is admitted and runs.
#
#   earlier_values_test.sh SCRIPT BUILD go|go-subcharts|walkai     with NOS_CONTROLPLANE_DIR
# shellcheck disable=SC2034,SC2154
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
earlier=$3
values=(-f "$(dirname "$0")/../data/values/$earlier.yaml")
gpus=('{"model": "A100-80GB"}')
node_flags=(--label nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB)
# installed.sh calls it once the nodes are there. The daemons read the chart's files, with paths of
# this machine; no pod mounts the ConfigMap of a scheduler.
before_agents() {
  k get configmap nos-gpu-partitioner -n "$system" -o jsonpath='{.data.known_mig_geometries\.yaml}' >"$work/models.yaml"
  k get configmap nos-gpu-partitioner -n "$system" -o jsonpath='{.data.config\.yaml}' |
    sed "s|^leaderElection:|&\n  resourceNamespace: $system|; s|/etc/nos-scheduler|$work|" >"$work/partitioner.yaml"
  printf '\nhealth: {healthProbeBindAddress: "0"}\nmetrics: {bindAddress: "0"}\n' >>"$work/partitioner.yaml"
  sed -i "s|/etc/nos/known_mig_geometries.yaml|$work/models.yaml|" "$work"/partitioner.yaml "$work"/agent-*.yaml
  grep -q "$work/models.yaml" "$work/agent-${nodes[0]}.yaml" || fail "the agent has no list of geometries"
  expect labeled k label node "${nodes[1]}" nos.nebuly.com/gpu-partitioning- n8s.nebuly.ai/auto-mig-enabled=true
  mkdir "$work/scheduler"
  scheduler_config | sed "s|/etc/nos/known_mig_geometries.yaml|$work/models.yaml|" >"$work/scheduler/config.yaml"
  start_scheduler a
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

# One after the other: kube-scheduler would take a slice that nos scheduler has made for its pod.
say "pods of both schedulers get slices, on nodes with either label"
expect created from "$(pod whole-1 1 7g.80gb)" k create
wait_running whole-1
expect created from "$(pod whole-2 1 7g.80gb nos-scheduler)" k create
wait_running whole-1 whole-2

say "the geometry that no GPU can have is ignored, and said"
for node in "${nodes[@]}"; do
  soon 'GeometryIgnored.*3g.20gb' k get events -A --field-selector "involvedObject.name=$node"
done
for one in a b; do
  grep -q 'ignored a geometry that no GPU can have.*3g.20gb' "$work/partitioner-$one.log" || fail "partitioner $one: no warning"
  grep -q 'scheduler configuration is missing' "$work/partitioner-$one.log" || fail "partitioner $one: no fallback"
done

if [ "$earlier" = walkai ]; then
  say "a Job with the priority class that walk:ai names is admitted, and runs on a slice"
  expect deleted k delete pod whole-1 -n "$team"
  expect created from "
apiVersion: batch/v1
kind: Job
metadata: {name: training, namespace: $team}
spec:
  template:
    spec:
      priorityClassName: nos-priority-medium
      restartPolicy: Never
      containers: [{name: main, image: example/any, resources: {limits: {nvidia.com/mig-3g.40gb: 1}}}]
" k create
  expect 'condition met' k wait --for=create pod -n "$team" -l batch.kubernetes.io/job-name=training --timeout 60s
  expect 'condition met' k wait --for=jsonpath='{.status.phase}'=Running pod -n "$team" \
    -l batch.kubernetes.io/job-name=training --timeout 120s
  expect '^1000 Never$' k get pod -n "$team" -l batch.kubernetes.io/job-name=training \
    -o jsonpath='{.items[0].spec.priority} {.items[0].spec.preemptionPolicy}'
fi

say "a scheduler configuration that appears is read"
printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n' >"$work/new.yaml"
mv "$work/new.yaml" "$work/scheduler_config.yaml"
within 30 grep -q 'reloaded configuration files' "$work/partitioner-a.log"
echo ok
