#!/usr/bin/env bash
# Kueue itself beside nos: installed by its own chart, with its own rights, called by the API server.
# It admits Jobs and pods by quota on slices and on GPU memory; nos partitions for admitted ones only,
# and places them. Kueue's preemption and the quotas of nos evict side by side, and no Job is lost.
# Objects and configurations are those of docs/kueue.md.
#
#   kueue_test.sh SCRIPT BUILD
# shellcheck disable=SC2034,SC2154
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
here=$(dirname "$(readlink -f "$0")")
page=$here/../../docs/kueue.md
kueue=$("$controlplane" binary kueue)
case $? in
  0) ;;
  77) exit 77 ;;
  *) fail "no kueue" ;;
esac
kueue_chart=$("$controlplane" chart kueue) || fail "no chart of Kueue"
# One node with 14 slices of 1g.10gb, or another mixture of 160 GB.
nodes=(gpu-1)
gpus=('{"model": "A100-80GB"}' '{"model": "A100-80GB"}')
node_flags=(--label nvidia.com/gpu.product=NVIDIA-A100-SXM4-80GB)
values=(--set operator.crds.enabled=true)
# Kueue's CRDs and webhooks are cluster-wide.
plane=$(mktemp -d)
export NOS_CONTROLPLANE_DIR=$plane/plane
at_end() {
  if [ "${code:-0}" -ne 0 ]; then
    k get workloads,jobs,pods -A -o wide
    instances gpu-1
  fi
  "$controlplane" down --dir "$NOS_CONTROLPLANE_DIR" >/dev/null 2>&1
  rm -rf "$plane"
}
own_plane 2 "$NOS_CONTROLPLANE_DIR" "$plane/up"
# shellcheck source=test/controlplane/installed.sh
. "$here/installed.sh"
mkdir "$work/scheduler"
scheduler_config >"$work/scheduler/config.yaml"
start_scheduler a

kueue_system='kueue-system'
port=$((20000 + RANDOM % 10000))
# kueue_config [MORE]: its configuration, with addresses of this machine and short times.
kueue_config() {
  cat <<Y
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
health: {healthProbeBindAddress: "127.0.0.1:$((port + 1))"}
metrics: {bindAddress: "0"}
webhook: {host: 127.0.0.1, port: $port, certDir: $work/kueue-webhook}
leaderElection: {leaderElect: false}
featureGates: {VisibilityOnDemand: false}
waitForPodsReady:
  timeout: 60s
  recoveryTimeout: 3s
  requeuingStrategy: {backoffBaseSeconds: 1, backoffMaxSeconds: 2}
integrations: {frameworks: [batch/job, pod]}
${1:-}
Y
}
# The API server is outside the cluster: the webhooks' Service is this machine. There is no server of
# pending workloads.
cat >"$work/local" <<Y
#!/bin/sh
awk 'BEGIN { RS = "\n---\n" } !/kind: APIService/ { printf "\n---\n%s", \$0 }' | sed "
  s#^\( *\)path: /\(mutate\|validate\|convert\)#\1port: $port\n&#
  s|^  type: '\?ExternalName'\?\$|&\n  externalName: localhost|"
Y
chmod +x "$work/local"
# install_kueue [MORE_OF_CONFIGURATION]: or changes its configuration; starts it as its pod would.
install_kueue() {
  kueue_config "${1:-}" >"$work/kueue-values.yaml"
  expect 'STATUS: deployed' "$helm" upgrade --install kueue "$kueue_chart" -n "$kueue_system" --create-namespace \
    --set-file managerConfig.controllerManagerConfigYaml="$work/kueue-values.yaml" \
    --set webhookService.type=ExternalName --post-renderer "$work/local"
  k get configmap kueue-manager-config -n "$kueue_system" \
    -o jsonpath='{.data.controller_manager_config\.yaml}' >"$work/kueue.yaml"
  if [ -n "${pid[kueue]:-}" ]; then kill_hard kueue; fi
  expect kubeconfig "$controlplane" kubeconfig kueue --namespace "$kueue_system" \
    --serviceaccount kueue-controller-manager
  start kueue env KUBECONFIG="$dir/kueue.kubeconfig" "$kueue" --config "$work/kueue.yaml"
  within 60 mounted
  within 60 curl -sSf "http://127.0.0.1:$((port + 1))/readyz"
}
# mounted: its certificate is there, as a kubelet mounts the Secret.
mounted() {
  local key
  [ ! -d "$work/kueue-webhook" ] || return 0
  mkdir -p "$work/secret"
  for key in ca.crt ca.key tls.crt tls.key; do
    k get secret kueue-webhook-server-cert -n "$kueue_system" -o "jsonpath={.data.${key/./\\.}}" |
      base64 -d >"$work/secret/$key"
    [ -s "$work/secret/$key" ] || return 1
  done
  mv "$work/secret" "$work/kueue-webhook"
}

# job NAMESPACE NAME PODS PROFILE [PRIORITY_CLASS]: as YAML; each pod has one slice.
job() {
  cat <<Y

---
apiVersion: batch/v1
kind: Job
metadata: {namespace: $1, name: $2, labels: {kueue.x-k8s.io/queue-name: gpus}}
spec:
  parallelism: $3
  completions: $3
  podFailurePolicy:
    rules:
    - {action: Ignore, onPodConditions: [{type: DisruptionTarget}]}
  template:
    spec:
      schedulerName: nos-scheduler
      priorityClassName: "${5:-}"
      restartPolicy: Never
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: example/any, resources: {limits: {nvidia.com/mig-$4: 1}}}]
Y
}
# in_namespace NAMESPACE: pods of the standard input go there, by Kueue's queue if there is one.
in_namespace() { sed "s/namespace: $team/namespace: $1${2:+, labels: {kueue.x-k8s.io\/queue-name: $2\}}/"; }
# runs NAMESPACE JOB PODS: all its pods are ready. After failures, as evicted pods are to it, the
# controller of Jobs waits longer each time: 20 s after two.
runs() {
  expect 'condition met' k wait --for=jsonpath='{.status.ready}'="$3" -n "$1" "job/$2" --timeout 150s
  expect "^false $3$" k get job "$2" -n "$1" -o jsonpath='{.spec.suspend} {.status.active}'
}
# condition NAMESPACE JOB TYPE: status and reason of its Workload's condition.
condition() {
  local workload filter=".status.conditions[?(@.type=='$3')]"
  workload=$(k get workloads -n "$1" -o name | grep -m1 "/job-$2-") &&
    k get "$workload" -n "$1" -o jsonpath="{$filter.status} {$filter.reason}"
}
# pods_of NAMESPACE JOB: as a number.
pods_of() { k get pods -n "$1" -l "job-name=$2" -o name | grep -c .; }
# waits NAMESPACE JOB: Kueue keeps it waiting, so it has no pods.
waits() {
  soon '^False Pending$' condition "$1" "$2" QuotaReserved
  soon '^0$' pods_of "$1" "$2"
  expect '^true$' k get job "$2" -n "$1" -o jsonpath='{.spec.suspend}'
}
# slices PROFILE: how many the driver has.
slices() { instances gpu-1 | grep -cF "\"profile\":\"$1\""; }
# preempted NAMESPACE: pods that nos has evicted there.
preempted() {
  k get events -n "$1" --field-selector reason=Preempted \
    -o jsonpath='{range .items[*]}{.involvedObject.kind} {.involvedObject.name}{"\n"}{end}' | sed -n 's/^Pod //p'
}
# block HEADING PATTERN: of the page, the first indented block below the heading with this start.
block() {
  awk -v heading="$1" -v pattern="$2" '
    /^#/ { on = $0 == heading; next }
    on && /^    / && (found || substr($0, 5) ~ pattern) { found = 1; print substr($0, 5); next }
    found { exit }' "$page" | grep . || fail "docs/kueue.md has no $2 below '$1'"
}

say "Kueue's chart is installed beside nos; the API server calls its webhooks"
install_kueue
for name in research shared production; do expect created k create namespace "$name"; done
block '## Quota on slices' '^apiVersion: kueue' >"$work/slices.yaml"
within 60 k apply --validate=strict -f "$work/slices.yaml"
expect 'condition met' k wait --for=condition=Active clusterqueue/research --timeout 60s
expect '/v1beta1$' k get clusterqueues.v1beta1.kueue.x-k8s.io research -o jsonpath='{.apiVersion}'
refuse 'denied the request' k patch clusterqueue research --type json -p \
  '[{"op": "add", "path": "/spec/resourceGroups/0/flavors/0/resources/0/lendingLimit", "value": "1"}]'
refuse 'unknown field "spec.resourceGroups\[0\].coveredResource' k create --dry-run=server --validate=strict \
  -f <(sed 's/coveredResources:/coveredResource:/; s/name: research/name: other/' "$work/slices.yaml")

say "quota on slices: nos partitions for Jobs that Kueue has admitted"
expect created from "$(job research wide 10 1g.10gb)" k create
runs research wide 10
expect '^mig$' k get pods -n research -l job-name=wide \
  -o jsonpath='{.items[0].spec.nodeSelector.nos\.nebuly\.com/gpu-partitioning}'
expect created from "$(job research late 6 1g.10gb)" k create
waits research late
expect deleted k delete job wide -n research
runs research late 6
expect deleted k delete job late -n research

say "a pod that Kueue holds by a gate gets no slice until it is admitted"
expect patched k patch localqueue gpus -n research --type merge -p '{"spec": {"stopPolicy": "Hold"}}'
expect created from "$(pod held 1 3g.40gb nos-scheduler | in_namespace research gpus)" k create
soon '^SchedulingGated kueue.x-k8s.io/admission$' k get pod held -n research \
  -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].reason} {.spec.schedulingGates[0].name}'
expect 'scheduling gate' "$build/nos" explain pod research/held
expect created from "$(pod free 1 2g.20gb nos-scheduler)" k create
wait_running free
[ "$(slices 3g.40gb)" -eq 0 ] || fail "a slice for a pod that is not admitted: $(instances gpu-1)"
expect patched k patch localqueue gpus -n research --type merge -p '{"spec": {"stopPolicy": "None"}}'
expect 'condition met' k wait --for=jsonpath='{.status.phase}'=Running -n research pod/held --timeout 90s
expect deleted k delete pod free -n "$team"
expect deleted k delete pod held -n research

say "quota on GPU memory: one quota for slices of all profiles"
install_kueue "$(block '## Quota on GPU memory' '^resources:')"
cat >"$work/memory.yaml" <<Y
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: shared}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [nos.nebuly.com/gpu-memory]
    flavors:
    - {name: a100, resources: [{name: nos.nebuly.com/gpu-memory, nominalQuota: 160}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: gpus, namespace: shared}
spec: {clusterQueue: shared}
Y
within 60 k apply --validate=strict -f "$work/memory.yaml"
expect created from "$(job shared large 2 3g.40gb)" k create
runs shared large 2
expect created from "$(job shared small 7 1g.10gb)" k create
runs shared small 7
expect '^150$' k get clusterqueue shared -o jsonpath='{.status.flavorsReservation[0].resources[0].total}'
expect created from "$(job shared next 7 1g.10gb)" k create
waits shared next
expect deleted k delete job large -n shared
runs shared next 7
[ "$(slices 3g.40gb) $(slices 1g.10gb)" = '0 14' ] || fail "not repartitioned: $(instances gpu-1)"

say "Kueue preempts: it suspends a Job, and nos gives the slices on and evicts nothing"
expect created k create priorityclass urgent --value=1000
expect created from "$(job shared urgent 7 1g.10gb urgent)" k create
runs shared urgent 7
if [ "$(k get job next -n shared -o jsonpath='{.spec.suspend}')" = true ]; then loser=next stays=small; else loser=small stays=next; fi
expect '^True Preempted$' condition shared $loser Evicted
waits shared $loser
runs shared $stays 7
expect_no . preempted shared

say "nos reclaims a quota from an admitted Job: Kueue queues it again, and it goes on later"
expect deleted k delete job small next urgent -n shared
expect created from "$(job shared one 2 3g.40gb)$(job shared two 2 3g.40gb)" k create
runs shared one 2
runs shared two 2
expect created from "apiVersion: nos.nebuly.com/v1alpha1
kind: ElasticQuota
metadata: {namespace: production, name: quota}
spec: {min: {nos.nebuly.com/gpu-memory: 80}}" k create
expect created from "$(pod claim 1 7g.80gb nos-scheduler | in_namespace production)" k create
expect 'condition met' k wait --for=jsonpath='{.status.phase}'=Running -n production pod/claim --timeout 90s
victims=$(preempted shared | sed 's/-[^-]*$//' | sort -u)
[ -n "$victims" ] || fail "no pod of Kueue's had to go"
for victim in $victims; do soon '^True PodsReadyTimeout$' condition shared "$victim" Evicted; done
expect deleted k delete pod claim -n production
runs shared one 2
runs shared two 2
expect_no . k get jobs -n shared -o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Failed")].reason}{end}'

say "with reclaimFromPodsWithoutQuota off, nos waits for Kueue's Jobs"
before=$(preempted shared | sort)
block '## One of them owns the quotas' '^scheduler:' >"$work/no-reclaim.yaml"
expect 'STATUS: deployed' "$helm" upgrade nos "$here/../../deploy/helm/nos" -n "$system" --reuse-values -f "$work/no-reclaim.yaml"
scheduler_config >"$work/scheduler/new"
mv "$work/scheduler/new" "$work/scheduler/config.yaml"
within 30 grep -q 'reloaded configuration files' "$work/scheduler-a.log"
expect created from "$(pod patient 1 7g.80gb nos-scheduler | in_namespace production)" k create
soon '^Unschedulable$' k get pod patient -n production -o jsonpath='{.status.conditions[?(@.type=="PodScheduled")].reason}'
runs shared one 2
runs shared two 2
expect deleted k delete job one two -n shared
expect 'condition met' k wait --for=jsonpath='{.status.phase}'=Running -n production pod/patient --timeout 90s
[ "$(preempted shared | sort)" = "$before" ] || fail "evicted: $(preempted shared)"

say "no right was missing"
if grep -l forbidden "$work"/{kueue,scheduler-a,partitioner-a,partitioner-b,agent-gpu-1}.log; then fail "a permission is missing"; fi
say ok
