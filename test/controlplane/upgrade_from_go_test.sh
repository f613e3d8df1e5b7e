#!/usr/bin/env bash
# From the Go project's nos to this one, as docs/coming-from-go-nos.md has it, while pods come and go: its
# chart's objects, its CRDs with quotas, annotations as its partitioner and agents write them (one plan not
# carried out yet), slices created without placements, and pods on them by NVIDIA's device plugin. The pods
# that ran still run on their devices, quotas stay, and new pods get slices.
#
#   upgrade_from_go_test.sh SCRIPT BUILD in-place|anew
#
# in-place: helm upgrade. anew: helm uninstall, which deletes the quotas, and helm install.
# shellcheck disable=SC2034
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
# shellcheck source=test/controlplane/upgrade.sh
. "$(dirname "$0")/upgrade.sh"
way=$3
system=nebuly-nos
data=$here/../data
chart=$here/../../deploy/helm/nos
plugin=app=nvidia-device-plugin-daemonset
deploy=nvidia.com/gpu.deploy.device-plugin
node_flags=(--plugin "$plugin" --nvml "$nvml" --label "$deploy=true")

own_plane 2
use_plane

say "the Go project's nos"
expect 'STATUS: deployed' "$helm" install nos "$data/charts/go-nos" -n "$system" --create-namespace -f "$data/values/go.yaml"
within 30 k get eq,ceq -A
create_teams gpu-operator
# Its partitioner did not give up its Lease.
expect created from "
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {name: gpu-partitioner.nebuly.com, namespace: $system}
spec:
  holderIdentity: nos-gpu-partitioner-5d8c7b9f6-x2x2x_00000000-0000-4000-8000-000000000000
  leaseDurationSeconds: 15
  acquireTime: $(date -u +%FT%T.000000Z)
  renewTime: $(date -u +%FT%T.000000Z)
  leaseTransitions: 3
" k create
create_quotas

# instance ID PROFILE START SLICES COMPUTE_PROFILE: as the driver has it.
instance() {
  printf '{"id":%s,"profile":"%s","start":%s,"computeInstances":[{"id":0,"profile":%s,"slices":%s}]}' "$1" "$2" "$3" "$5" "$4"
}
# gpu INSTANCE...
gpu() {
  local IFS=,
  printf '{"model":"A100-40GB","instances":[%s]}' "$*"
}
small=()
for start in 0 1 2 3 4 5 6; do small+=("$(instance $((7 + start)) 1g.5gb $start 1 0)"); done
gpus=("$(gpu "$(instance 1 3g.20gb 4 3 2)" "$(instance 3 2g.10gb 0 2 1)" "$(instance 4 2g.10gb 2 2 1)")" "$(gpu "${small[@]}")")
hardware gpu-1
gpus=("$(gpu "$(instance 7 1g.5gb 0 1 0)" "$(instance 8 1g.5gb 1 1 0)")" "$(gpu "$(instance 0 7g.40gb 0 7 4)")")
hardware gpu-2
for node in "${nodes[@]}"; do start_node "$node"; done
within 30 k get node "${nodes[@]}"
a=nos.nebuly.com
# One node has its oldest label alone.
expect labeled k label node gpu-2 $a/gpu-partitioning- n8s.nebuly.ai/auto-mig-enabled=true
expect annotated k annotate node gpu-1 $a/spec-gpu-0-3g.20gb=1 $a/spec-gpu-0-2g.10gb=2 $a/spec-gpu-1-1g.5gb=7 \
  $a/spec-partitioning-plan=1700000000 $a/status-gpu-0-3g.20gb-used=1 $a/status-gpu-0-2g.10gb-used=1 \
  $a/status-gpu-0-2g.10gb-free=1 $a/status-gpu-1-1g.5gb-free=7 $a/status-partitioning-plan=1700000000
# Its newest plan has not been carried out. It wrote profiles that it no longer wanted with a zero.
expect annotated k annotate node gpu-2 $a/spec-gpu-0-1g.5gb=2 $a/spec-gpu-0-2g.10gb=1 $a/spec-gpu-0-3g.20gb=1 \
  $a/spec-gpu-1-7g.40gb=1 $a/spec-gpu-1-1g.5gb=0 $a/spec-partitioning-plan=1700000600 \
  $a/status-gpu-0-1g.5gb-used=2 $a/status-gpu-1-7g.40gb-used=1 $a/status-partitioning-plan=1700000000
expect created from "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: nvidia-device-plugin-daemonset, namespace: gpu-operator}
spec:
  selector: {matchLabels: {${plugin/=/: }}}
  template:
    metadata: {labels: {${plugin/=/: }}}
    spec:
      nodeSelector: {$deploy: 'true'}
      containers: [{name: main, image: example/plugin}]
" k create
capacity() { [ "$(k get node "$1" -o jsonpath="{.status.allocatable.nvidia\.com/mig-${2//./\\.}}")" = "$3" ]; }
within 60 capacity gpu-1 1g.5gb 7
within 60 capacity gpu-2 7g.40gb 1

say "pods that stay, bound by kube-scheduler and by the Go scheduler"
expect created from "$(stays team-a train 3g.20gb nos-scheduler)$(stays team-a infer 2g.10gb)$(
  stays team-a note 1g.5gb nos-scheduler)$(stays team-b small 1g.5gb nos-scheduler)$(stays team-b whole 7g.40gb)" k create
# bind NAMESPACE POD NODE: as a scheduler does.
bind() {
  expect Success from "{\"apiVersion\": \"v1\", \"kind\": \"Binding\", \"metadata\": {\"name\": \"$2\", \"namespace\": \"$1\"},
    \"target\": {\"apiVersion\": \"v1\", \"kind\": \"Node\", \"name\": \"$3\"}}" k create --raw "/api/v1/namespaces/$1/pods/$2/binding"
}
bind team-a stays-train gpu-1
bind team-a stays-note gpu-2
bind team-b stays-small gpu-2
for namespace in team-a team-b; do
  expect 'condition met' k wait --for=jsonpath='{.status.phase}'=Running -n $namespace pod -l stays=yes --timeout 60s
  expect labeled k label pod -n $namespace -l stays=yes $a/capacity=in-quota
done
expect patched k patch eq q -n team-a --subresource status --type merge -p "{\"status\": {\"used\": {\"$a/gpu-memory\": \"35\"}}}"
expect patched k patch ceq both -n team-b --subresource status --type merge -p "{\"status\": {\"used\": {\"$a/gpu-memory\": \"45\"}}}"
remember_pods 5
uid=''
[ "$way" = anew ] || uid='{.metadata.uid} '
quotas_before=$(quotas "$uid")

say "pods come and go on the slices that exist"
begin_churn 5 1g.5gb:default-scheduler 2g.10gb:default-scheduler
churned

say "the way of docs/coming-from-go-nos.md, $way"
"$helm" get values nos -n "$system" -o yaml >"$work/values.yaml" || fail "no values"
sed -i '/batchWindow/d' "$work/values.yaml"
k get eq,ceq -A -o yaml >"$work/quotas.yaml" || fail "no quotas"
install=(nos "$chart" -n "$system" -f "$work/values.yaml" --set image.repository=registry.test/nos
  --set operator.webhook.enabled=false) # the API server of this test cannot reach a Service
# plugin_off: NVIDIA's plugin leaves the nodes of nos.
plugin_off() {
  local label
  for label in $a/gpu-partitioning=mig n8s.nebuly.ai/gpu-partitioning=mig n8s.nebuly.ai/auto-mig-enabled=true; do
    k label node -l "$label" "$deploy=false" --overwrite >/dev/null || fail "label $label"
  done
  for node in "${nodes[@]}"; do
    expect '' k wait --for=delete pod -n gpu-operator -l "$plugin" --field-selector "spec.nodeName=$node" --timeout 60s
  done
}
case $way in
  in-place)
    expect deleted k delete deployment,daemonset -n "$system" -l app.kubernetes.io/instance=nos
    plugin_off
    expect 'STATUS: deployed' "$helm" upgrade "${install[@]}"
    ;;
  anew)
    expect uninstalled "$helm" uninstall nos -n "$system" --wait
    refuse "resource type|could not find the requested resource" k get eq -A # with all quotas
    plugin_off
    expect 'STATUS: deployed' "$helm" install "${install[@]}" --set admissionPolicies.quotaPods=never
    within 60 k apply -f "$work/quotas.yaml"
    ;;
esac
rolled_out
service_accounts gpu-partitioner:partitioner scheduler:scheduler operator:operator
settings=$work/settings
configure "$settings"
begin "${agents[@]}" "${deciders[@]}"

say "pods get slices that nos creates, from both schedulers"
choose 1g.5gb:nos-scheduler 2g.10gb:default-scheduler 3g.20gb:nos-scheduler
churned $((2 * pods_per_step))
pods_kept
refused=$(count refused)
churned $((2 * pods_per_step))
[ "$(count refused)" -eq "$refused" ] || fail "pods were refused by the kubelet, long after the installation"

say "pods of one large profile alone make nos destroy slices that no pod holds"
choose 3g.20gb:nos-scheduler
within 60 grep -q ^destroyed "$work"/*.json.journal
choose 1g.5gb:nos-scheduler 2g.10gb:default-scheduler 3g.20gb:nos-scheduler
churned "$pods_per_step"

say "all that wait are served, and what ran still runs"
end_churn
alive
pods_kept
out=$(diff <(printf '%s\n' "$quotas_before") <(quotas "$uid")) || fail "quotas have changed"
within 30 quota_used ceq team-b both 45
within 60 plan_done gpu-1 1699999999 # may need no further plan
within 60 plan_done gpu-2 1700000599
if grep -l forbidden "$work"/*.log; then fail "a permission is missing"; fi
say ok
