#!/usr/bin/env bash
# The real kube-scheduler asks nos about GPUs: nos scheduler --extender over TLS with certificates
# on both sides, once with node names, once with whole node objects.
#
#   extender_test.sh SCRIPT BUILD
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
build=$2
work=$(mktemp -d)
dir=$work/plane
nos=
export NOS_CONTROLPLANE_ONLY="etcd kube-apiserver kube-scheduler"
end() {
  [ -z "$nos" ] || kill "$nos" 2>/dev/null
  wait 2>/dev/null
  "$controlplane" down --dir "$dir" >/dev/null 2>&1
  rm -rf "$work"
}
trap end EXIT

port=$((20000 + RANDOM % 12000))
pki=$dir/pki
# $1: verbs of both extenders; $2: the resource; $3: further lines
extender() {
  cat <<EOF
- urlPrefix: https://127.0.0.1:$port/v1
  filterVerb: filter
  prioritizeVerb: prioritize
  preemptVerb: preempt
  weight: 10
  enableHTTPS: true
  httpTimeout: 10s
  tlsConfig: {caFile: $pki/ca.crt, certFile: $pki/kube-scheduler.crt, keyFile: $pki/kube-scheduler.key}
EOF
  printf '  %s\n' "$@"
}
cat >"$work/kube-scheduler.yaml" <<EOF
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: $dir/kube-scheduler.kubeconfig}
leaderElection: {leaderElect: false}
podMaxBackoffSeconds: 1
extenders:
$(extender 'nodeCacheCapable: true' 'bindVerb: bind' \
  'managedResources: [{name: nvidia.com/mig-1g.5gb, ignoredByScheduler: true}]')
$(extender 'nodeCacheCapable: false' 'managedResources: [{name: nvidia.com/mig-2g.10gb}]')
EOF
plugins=ServiceAccount,TaintNodesByCondition,DefaultTolerationSeconds
export NOS_FLAGS_KUBE_APISERVER="--disable-admission-plugins=$plugins"
export NOS_FLAGS_KUBE_SCHEDULER="--config=$work/kube-scheduler.yaml"
own_plane 0
kubectl=$("$controlplane" binary kubectl) || fail "no kubectl"
k() { "$kubectl" --kubeconfig "$dir/kubeconfig" "$@"; }

# node NAME: an A100 in MIG mode with seven slices.
node() {
  cat <<EOF
---
apiVersion: v1
kind: Node
metadata:
  name: $1
  labels: {nos.nebuly.com/gpu-partitioning: mig, nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB,
    nvidia.com/gpu.count: "1"}
  annotations: {nos.nebuly.com/status-gpu-0-1g.5gb-free: "7"}
status:
  allocatable: {cpu: "8", memory: 16Gi, pods: "20", nvidia.com/mig-1g.5gb: "7"}
  capacity: {cpu: "8", memory: 16Gi, pods: "20", nvidia.com/mig-1g.5gb: "7"}
EOF
}
# pod NAME RESOURCE [FIELD...]: requests one device, and ends at once on SIGTERM.
pod() {
  cat <<EOF
---
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - {name: main, image: example/any, resources: {requests: {cpu: 100m}, limits: {$2: 1}}}
EOF
  [ $# -lt 3 ] || printf '  %s\n' "${@:3}"
}
slice=nvidia.com/mig-1g.5gb
larger=nvidia.com/mig-2g.10gb
{
  node whole
  node partitioned
  for i in 1 2 3 4 5 6; do pod "running-$i" $slice 'nodeName: partitioned'; done
  for i in 1 2 3; do pod "waiting-$i" nvidia.com/mig-3g.20gb 'schedulerName: nobody'; done
} >"$work/cluster.yaml"
expect created k create -f "$work/cluster.yaml"

# --- without nos, kube-scheduler does not schedule pods that need the extender
expect created from "$(pod early $slice)" k create
expect 'connection refused' k wait --for=jsonpath='{.status.conditions[0].reason}'=SchedulerError \
  pod/early --timeout 30s -o jsonpath='{.status.conditions[0].message}'

# --- a client certificate is required
refuse 'requires --tls-cert-file' "$build/nos" scheduler --extender=127.0.0.1:$port \
  --kubeconfig "$dir/kubeconfig"
refuse 'requires --client-ca-file' "$build/nos" scheduler --extender :$port \
  --kubeconfig "$dir/kubeconfig" --tls-cert-file "$pki/server.crt" --tls-key-file "$pki/server.key"
refuse 'requires --extender' "$build/nos" scheduler --kubeconfig "$dir/kubeconfig" \
  --tls-cert-file "$pki/server.crt"
"$build/nos" scheduler --extender=127.0.0.1:$port --kubeconfig "$dir/kubeconfig" \
  --tls-cert-file "$pki/server.crt" --tls-key-file "$pki/server.key" --client-ca-file "$pki/ca.crt" \
  2>"$work/nos.log" &
nos=$!

# --- the slice is placed where it strands the least capacity, and nos binds the pod
expect condition k wait --for=jsonpath='{.spec.nodeName}'=partitioned pod/early --timeout 60s
# --- its refusals appear as kube-scheduler's reasons, because kube-scheduler itself does not count
# these slices
for i in 1 2 3 4 5 6 7 8; do pod "next-$i" $slice; done >"$work/next.yaml"
expect created k create -f "$work/next.yaml"
# The pods next-* with their nodes, or with the reason why they have none.
outcomes() {
  k get pods --no-headers -o custom-columns='N:.metadata.name,A:.spec.nodeName,R:.status.conditions[0].reason' |
    sed -n 's/^next-[0-9]* *//p' | sort | uniq -c | tr -s ' \n' ' '
}
deadline=$((SECONDS + 60))
until out=$(outcomes) && [ "$out" = ' 1 <none> Unschedulable 7 whole <none> ' ]; do
  [ "$SECONDS" -lt "$deadline" ] || fail "seven of eight pods get a slice, one hears why not"
  sleep 0.1
done
expect '0/2 nodes are available: 2 Insufficient nvidia.com/mig-1g.5gb' \
  k get pods -o jsonpath='{.items[*].status.conditions[0].message}'

# --- whole node objects, and preemption
expect created from "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
---
apiVersion: v1
kind: Node
metadata: {name: plain}
status:
  allocatable: {cpu: '8', memory: 16Gi, pods: '20', $larger: '1'}
  capacity: {cpu: '8', memory: 16Gi, pods: '20', $larger: '1'}
" k create
expect created from "$(pod first $larger)" k create
expect condition k wait --for=jsonpath='{.spec.nodeName}'=plain pod/first --timeout 60s
expect created from "$(pod urgent $larger 'priorityClassName: urgent')" k create
expect condition k wait --for=jsonpath='{.spec.nodeName}'=plain pod/urgent --timeout 60s
refuse 'not found' k get pod first

# --- hostile clients
tls=(--cacert "$pki/ca.crt" --cert "$pki/kube-scheduler.crt" --key "$pki/kube-scheduler.key")
refuse 'alert|SSL|reset' curl -sS --cacert "$pki/ca.crt" -d '{}' "https://127.0.0.1:$port/v1/filter"
expect '^400$' curl -sS "${tls[@]}" -o "$work/said" -w '%{http_code}' -d '{"Pod": 7}' \
  "https://127.0.0.1:$port/v1/filter"
expect '^404$' curl -sS "${tls[@]}" -o "$work/said" -w '%{http_code}' -d '{}' \
  "https://127.0.0.1:$port/v1/delete"
expect '^405$' curl -sS "${tls[@]}" -o "$work/said" -w '%{http_code}' \
  "https://127.0.0.1:$port/v1/filter"

kill -TERM "$nos"
wait "$nos" || fail "nos ends with $?: $(cat "$work/nos.log")"
nos=
echo ok
