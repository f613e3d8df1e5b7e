#!/usr/bin/env bash
# Tests the report of nos operator to nos telemetry about Jobs, Kueue's queues and Events, on the
# real API server with the rights of the chart: a suspended Job, one whose pods a ResourceQuota
# denies, one that waits in Kueue, and the Events of an unschedulable pod.
#
#   collector_test.sh SCRIPT BUILD
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
# shellcheck source=test/controlplane/permissions.sh
. "$(dirname "$0")/permissions.sh"
build=$2
work=$(mktemp -d)
dir=$work/plane
system=nos-system
declare -A pid
end() {
  local code=$?
  for name in "${!pid[@]}"; do kill "${pid[$name]}" 2>/dev/null; done
  if [ "$code" -ne 0 ] && [ "$code" -ne 77 ]; then tail -n 20 "$work"/*.log; fi
  "$controlplane" down --dir "$dir" >/dev/null 2>&1
  for name in "${!pid[@]}"; do kill -9 "${pid[$name]}" 2>/dev/null; done
  rm -rf "$work"
  exit "$code"
}
trap end EXIT

export NOS_CONTROLPLANE_ONLY="etcd kube-apiserver kube-controller-manager kube-scheduler"
own_plane 0
use_plane
for name in $system team; do expect created k create namespace "$name"; done

say "a server, and the chart's rights and configuration for who reports to it"
token=0123456789abcdef0123
echo "prod $token" >"$work/tokens"
printf %s "$token" >"$work/token"
cat >"$work/telemetry.yaml" <<Y
apiVersion: config.nos.nebuly.com/v1alpha1
kind: TelemetryConfig
listen: {bindAddress: "127.0.0.1:0"}
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
ingest: {tokenFile: $work/tokens}
readers: {kubernetes: true, kubeconfig: $KUBECONFIG}
store: {file: $work/telemetry.db}
Y
"$build/nos" telemetry --config "$work/telemetry.yaml" >"$work/telemetry.log" 2>&1 &
pid[telemetry]=$!
port=
for _ in $(seq 100); do
  port=$(sed -n 's/.*"serving telemetry".*port=//p' "$work/telemetry.log")
  [ -n "$port" ] && break
  sleep 0.1
done
[ -n "$port" ] || fail "telemetry is not served"
expect 'STATUS: deployed' "$helm" install nos "$(dirname "$controlplane")/../deploy/helm/nos" -n $system \
  --set gpuPartitioner.enabled=false --set scheduler.enabled=false --set operator.webhook.enabled=false \
  --set gpuPartitioner.migAgent.telemetry.endpoint="http://127.0.0.1:$port" \
  --set gpuPartitioner.migAgent.telemetry.cluster=prod
expect kubeconfig "$controlplane" kubeconfig operator --dir "$dir" --namespace $system --serviceaccount nos-operator
k get configmap nos-operator -n $system -o 'jsonpath={.data.config\.yaml}' |
  sed "s/^leaderElection:/&\n  resourceNamespace: $system/; s|^telemetry:|&\n  tokenFile: $work/token|
    s|^compositeNamespacesConfigMap: |&$system/|; s|spoolFolder: .*|spoolFolder: $work/spool|" >"$work/operator.yaml"
printf 'health: {healthProbeBindAddress: "0"}\nmetrics: {bindAddress: "0"}\n' >>"$work/operator.yaml"
"$build/nos" operator --config "$work/operator.yaml" --kubeconfig "$dir/operator.kubeconfig" \
  >"$work/operator.log" 2>&1 &
pid[operator]=$!

expect created k create serviceaccount chief -n team
expect created k create clusterrolebinding chief --clusterrole=cluster-admin --serviceaccount=team:chief
expect created k create serviceaccount member -n team
expect created k create rolebinding member -n $system --clusterrole=view --serviceaccount=team:member
chief=$(k create token chief -n team) member=$(k create token member -n team)
# asked TOKEN PATH
asked() { curl -sS -H "Authorization: Bearer $1" "http://127.0.0.1:$port/api/v1/$2"; }
# shows TEXT PATH: the answer contains TEXT within half a minute.
shows() {
  local deadline=$((SECONDS + 30))
  until out=$(asked "$chief" "$2") && grep -qF -- "$1" <<<"$out"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "$2 never shows $1"
    sleep 0.2
  done
}
# job NAME EXTRA_OF_SPEC: four pods with a slice each; two may run at once.
job() {
  cat <<Y
apiVersion: batch/v1
kind: Job
metadata: {namespace: team, name: $1}
spec:
  parallelism: 2
  completions: 4
  $2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: any, resources: {limits: {nvidia.com/mig-1g.5gb: 1}}}]
Y
}

say "a suspended Job is known, and goes on"
expect created from "$(job train 'suspend: true')" k create
shows '"state":"suspended","why":"","pods":{}' jobs
shows '"wanted":4,"parallelism":2,"active":0,"failed":0,"suspended":true,"requests":{"nvidia.com/mig-1g.5gb":2' jobs
expect patched k patch job train -n team --type merge -p '{"spec": {"suspend": false}}'
shows '"pods":{"pending":2}' jobs

say "its pods find no place: the scheduler's Events are theirs"
shows '"reason":"FailedScheduling"' history?kind=event
pod=$(k get pods -n team -o 'jsonpath={.items[0].metadata.name}')
shows '"source":"default-scheduler"' "workloads/team/$pod"
out=$(asked "$member" history?kind=event)
[ "$out" = '{"events":[],"next":null}' ] || fail "a member of another namespace sees Events"

say "a Job whose pods a quota denies says so"
expect created from 'apiVersion: v1
kind: ResourceQuota
metadata: {namespace: team, name: gpus}
spec: {hard: {requests.nvidia.com/mig-1g.5gb: 2}}' k create
counted() { [ "$(k get resourcequota gpus -n team -o 'jsonpath={.status.hard}')" != "" ]; }
for _ in $(seq 100); do counted && break; sleep 0.1; done
expect created from "$(job denied '')" k create
shows 'exceeded quota: gpus' jobs

say "Kueue's queues and what it says of a job, once it is there"
definition() { # KIND PLURAL SCOPE
  cat <<Y

---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: $2.kueue.x-k8s.io
  annotations: {api-approved.kubernetes.io: "https://github.com/kubernetes-sigs/kueue"}
spec:
  group: kueue.x-k8s.io
  scope: $3
  names: {kind: $1, listKind: $1List, plural: $2, singular: ${1,,}}
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
Y
}
expect created from "$(definition ClusterQueue clusterqueues Cluster)$(
  definition LocalQueue localqueues Namespaced)$(definition Workload workloads Namespaced)" k create
queues() {
  from 'apiVersion: kueue.x-k8s.io/v1beta1
kind: LocalQueue
metadata: {namespace: team, name: gpus}
spec: {clusterQueue: all}
status: {pendingWorkloads: 1, reservingWorkloads: 0, admittedWorkloads: 0}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: all}
status: {pendingWorkloads: 1, conditions: [{type: Active, status: "False", reason: FlavorNotFound, message: no flavor}]}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: Workload
metadata:
  namespace: team
  name: pytorchjob-tune
  ownerReferences: [{apiVersion: kubeflow.org/v1, kind: PyTorchJob, name: tune, uid: u, controller: true}]
spec:
  queueName: gpus
  podSets:
  - count: 4
    template: {spec: {containers: [{name: m, resources: {limits: {nvidia.com/gpu: 2}}}]}}
status: {conditions: [{type: QuotaReserved, status: "False", reason: Pending, message: no quota is left}]}' k create
}
for _ in $(seq 100); do queues >/dev/null 2>&1 && break; sleep 0.1; done
# Discovery runs once a minute.
deadline=$((SECONDS + 90))
until out=$(asked "$chief" jobs) && grep -qF '"id":"team/PyTorchJob/tune"' <<<"$out"; do
  [ "$SECONDS" -lt "$deadline" ] || fail "Kueue is never found"
  sleep 0.5
done
shows '"queue":"gpus","state":"queued","why":"no quota is left","pods":{}' jobs
shows '"workloads":{"pending":1,"reserving":0,"admitted":0},"active":true,"why":"","cluster_queue":"all"' jobs
shows '"active":false,"why":"no flavor"' jobs

say "what the chart permits is what was used, and enough"
for what in 'list jobs' 'watch jobs' 'list events' 'watch events' 'list workloads' 'watch localqueues' 'list clusterqueues' \
  'list nodepools'; do
  granted clusterrole/nos-operator | grep -qx "$what" || fail "the chart does not permit: $what"
  used nos-operator | grep -qx "$what" || fail "never used: $what"
done
grep -q 'may not list' "$work/operator.log" && fail "something was not permitted"
echo passed
