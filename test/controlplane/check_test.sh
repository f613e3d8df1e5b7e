#!/usr/bin/env bash
# nos check on the real control plane with the chart: rights by real access reviews, objects as the
# API server has them, competing plugins, a user without rights.
#
#   check_test.sh SCRIPT BUILD
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
build=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
dir=$work/plane
declare pid=
end() {
  [ -n "$pid" ] && kill "$pid" 2>/dev/null
  "$controlplane" down --dir "$dir" >/dev/null 2>&1
  rm -rf "$work"
}
trap end EXIT
own_plane 2
use_plane

# check EXIT [ARGUMENT...]: runs the command; its exit code is EXIT.
check() {
  local code=$1 got=0
  "$build/nos" check -o json "${@:2}" >"$work/out" 2>"$work/err" || got=$?
  out=$(cat "$work/out" "$work/err")
  [ "$got" = "$code" ] || fail "nos check: exit code $got, expected $code"
}
# verdicts CODE: the verdicts of its findings, each once.
verdicts() {
  node -e 'const all = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8")).checks;
    console.log([...new Set(all.filter(one => one.code === process.argv[2]).map(one => one.verdict))].sort().join(" "))' \
    "$work/out" "$1"
}
are() { # are VERDICT CODE...
  local code got
  for code in "${@:2}"; do
    got=$(verdicts "$code")
    [ "$got" = "$1" ] || fail "$code is '$got', expected $1"
  done
}

say "a cluster without nos"
check 0
are OK ApiServerVersion CommandAccess
are Warning PartitionerReady AgentReady NodesLabelled
are NotChecked SchedulerReady ElasticQuotaDefinition WebhookConfiguration GpuOperator Quotas DaemonAccess

say "the chart, whose pods nothing runs"
node=$(k get nodes -o jsonpath='{.items[0].metadata.name}')
expect labeled k label node "$node" nos.nebuly.com/gpu-partitioning=mig nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB \
  nvidia.com/gpu.count=1 nvidia.com/cuda.driver-version.major=580
expect 'STATUS: deployed' "$helm" install nos "$root/deploy/helm/nos" -n nos-system --create-namespace
for each in gpu-partitioner scheduler operator; do
  expect 'successfully rolled out' k rollout status "deployment/nos-$each" -n nos-system --timeout 240s
done
expect 'successfully rolled out' k rollout status daemonset/nos-mig-agent -n nos-system --timeout 240s
check 1
are OK OneInstallation PartitionerReady AgentReady SchedulerReady OperatorReady VersionsAlike ElasticQuotaDefinition \
  CompositeElasticQuotaDefinition WebhookConfiguration DaemonAccess NodesLabelled AgentOnNode AgentOnNodeReady \
  GpuLabels GpuProduct DriverVersion DevicePlugin SchedulerOfPods Quotas
# Pods are Ready here without a program in them: the check does not stop at that.
are Failed LeaderElected AgentReports WebhookCertificate
are NotChecked TelemetryReporter AutoscalerReady
check 1 -n elsewhere
are Failed PartitionerReady

say "a partitioner that leads"
cat >"$work/partitioner.yaml" <<Y
apiVersion: config.nos.nebuly.com/v1alpha1
kind: GpuPartitionerConfig
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
leaderElection: {resourceNamespace: nos-system}
Y
"$build/nos" partitioner --config "$work/partitioner.yaml" --kubeconfig "$KUBECONFIG" >"$work/partitioner.log" 2>&1 &
pid=$!
expect 'condition met' k wait --for=create lease/gpu-partitioner.nebuly.com -n nos-system --timeout 60s
check 1
grep -q 'nos-gpu-partitioner (' "$work/out" && fail "the partitioner leads"
grep -q 'nos-scheduler (' "$work/out" || fail "the scheduler does not lead"

say "rights that are missing"
expect deleted k delete clusterrolebinding nos-mig-agent
check 1
are Failed DaemonAccess
grep -q 'system:serviceaccount:nos-system:nos-mig-agent: patch nodes/status' "$work/out" || fail "the missing right"
expect kubeconfig "$controlplane" kubeconfig nobody --dir "$dir" --namespace nos-system --serviceaccount default
check 0 --kubeconfig "$dir/nobody.kubeconfig"
are NotChecked NodesLabelled PartitionerReady WebhookConfiguration
are Warning CommandAccess

say "plugins and operators that compete"
expect created k create -f - <<'Y'
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clusterpolicies.nvidia.com}
spec:
  group: nvidia.com
  names: {kind: ClusterPolicy, listKind: ClusterPolicyList, plural: clusterpolicies, singular: clusterpolicy}
  scope: Cluster
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nvidia-device-plugin-daemonset, namespace: nos-system}
spec:
  selector: {matchLabels: {app: plugin}}
  template:
    metadata: {labels: {app: plugin}}
    spec:
      containers:
      - {name: plugin, image: "nvcr.io/nvidia/k8s-device-plugin:v0.18.0", env: [{name: MIG_STRATEGY, value: mixed}],
         volumeMounts: [{name: sockets, mountPath: /var/lib/kubelet/device-plugins}]}
      volumes: [{name: sockets, hostPath: {path: /var/lib/kubelet/device-plugins}}]
Y
expect 'condition met' k wait --for=condition=Established crd/clusterpolicies.nvidia.com --timeout 60s
expect 'successfully rolled out' k rollout status daemonset/nvidia-device-plugin-daemonset -n nos-system --timeout 240s
expect created k create -f - <<'Y'
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy}
spec: {migManager: {enabled: true}, devicePlugin: {enabled: true}, cdi: {enabled: true}}
status: {state: ready}
Y
check 1
are OK GpuOperator
are Failed MigManager DevicePlugin
say "passed"
