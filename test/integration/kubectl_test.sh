#!/bin/bash
# Drives stock kubectl through its verbs against the simulated API server.
#
#   kubectl_test.sh NOS_APISERVER     (KUBECTL=/path/to/kubectl tests another version)
#
# Exits with 77 (skipped) without kubectl. Every step states its expectation; the first failure ends
# the test.
set -u

server=$1
kubectl=${KUBECTL:-$(command -v kubectl || true)}
if [ -z "$kubectl" ]; then
  echo "skipped: no kubectl on this machine (Debian: apt-get install kubernetes-client)"
  exit 77
fi

work=$(mktemp -d)
watch_pid=
wait_pid=
mkfifo "$work/stdin"
"$server" "$work/kubeconfig" < "$work/stdin" > "$work/log" 2>&1 &
server_pid=$!
exec 9> "$work/stdin"
end() {
  exec 9>&-
  kill $watch_pid $wait_pid 2>/dev/null
  wait "$server_pid" 2>/dev/null
  rm -rf "$work"
}
trap end EXIT
for _ in $(seq 100); do
  grep -q ready "$work/log" && break
  sleep 0.05
done

port=$(grep -o '[0-9]*$' < <(grep server: "$work/kubeconfig"))
export KUBECONFIG=$work/kubeconfig HOME=$work
k() { "$kubectl" "$@"; }
steps=0
fail() {
  echo "FAILED: $1"
  echo "--- output"
  echo "$out"
  exit 1
}
# expect TEXT COMMAND...: the command succeeds and its output contains TEXT.
expect() {
  local text=$1
  shift
  out=$("$@" 2>&1) || fail "$* (exit $?)"
  grep -qE -- "$text" <<< "$out" || fail "$* : expected /$text/"
  steps=$((steps + 1))
}
# refuse TEXT COMMAND...: the command fails and its output contains TEXT.
refuse() {
  local text=$1
  shift
  out=$("$@" 2>&1) && fail "$* : expected a failure"
  grep -qE -- "$text" <<< "$out" || fail "$* : expected /$text/"
  steps=$((steps + 1))
}
# api METHOD PATH TYPE BODY: a plain request, for operations without a kubectl verb.
api() {
  exec 3<> "/dev/tcp/127.0.0.1/$port" || return 1
  printf '%s %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nContent-Type: %s\r\nContent-Length: %s\r\n' \
    "$1" "$2" "$port" "$3" "${#4}" >&3
  printf 'Connection: close\r\n\r\n%s' "$4" >&3
  cat <&3
  exec 3>&-
}
from() { "$kubectl" "${@:2}" -f - <<< "$1"; }

node() {
  cat <<EOF
apiVersion: v1
kind: Node
metadata:
  name: $1
  labels: {kubernetes.io/hostname: $1, node-role.kubernetes.io/worker: ""}
spec: {}
status:
  capacity: {cpu: "8", memory: 32Gi, pods: "110", nvidia.com/mig-1g.5gb: "7"}
  allocatable: {cpu: "8", memory: 32Gi, pods: "110", nvidia.com/mig-1g.5gb: "7"}
  addresses: [{type: InternalIP, address: 10.0.0.1}, {type: Hostname, address: $1}]
  nodeInfo: {kubeletVersion: v1.32.4, osImage: Debian 12, kernelVersion: "6.1",
    containerRuntimeVersion: containerd://1.7, architecture: amd64, bootID: b, kubeProxyVersion: "",
    machineID: m, operatingSystem: linux, systemUUID: u}
  conditions:
  - {type: Ready, status: "True", reason: KubeletReady, message: ok,
    lastHeartbeatTime: "2026-01-01T00:00:00Z", lastTransitionTime: "2026-01-01T00:00:00Z"}
EOF
}
pod() {
  cat <<EOF
apiVersion: v1
kind: Pod
metadata:
  name: $1
  labels: {app: demo}
spec:
  containers:
  - name: main
    image: registry.example/app:1
    env: [{name: A, value: "1"}]
    resources: {limits: {nvidia.com/mig-1g.5gb: 1, cpu: 500m}}
EOF
}

# --- discovery
expect 'Server Version' k version
expect 'pods +po +v1 +true +Pod' k api-resources
expect 'coordination.k8s.io/v1' k api-versions
expect ok k get --raw /readyz

# --- nodes
expect 'node/n1 created' from "$(node n1)" create
expect 'node/n2 created' from "$(node n2)" apply
expect 'n1 +Ready +worker +[0-9]+s +v1.32.4' k get nodes
expect 'n1 .*10.0.0.1 +<none> +Debian 12 +6.1 +containerd://1.7' k get nodes -o wide
expect 'node/n1 cordoned' k cordon n1
expect 'n1 +Ready,SchedulingDisabled' k get nodes
expect 'n1' k get nodes --field-selector spec.unschedulable=true
expect 'node/n1 uncordoned' k uncordon n1
expect 'node/n1 labeled' k label node n1 zone=a
expect 'node/n1 annotate' k annotate node n1 nos.nebuly.com/spec-gpu-0-1g.5gb=7
expect 'n1' k get nodes -l 'zone in (a,b),!missing' -o name
expect 'node/n1 tainted' k taint node n1 gpu=yes:NoSchedule
expect 'gpu=yes:NoSchedule' k describe node n1
expect 'nvidia.com/mig-1g.5gb: +7' k describe node n1
expect 'node/n1 untainted' k taint node n1 gpu-
refuse 'Node in version "v1" .* status: it must be an object, not a string' \
  k patch node n1 --type=merge -p '{"status":"x"}'
refuse 'metadata.labels\[a\]: it must be a string, not a number' \
  k patch node n1 --type=json -p '[{"op":"add","path":"/metadata/labels/a","value":1}]'
refuse 'status.capacity\[cpu\]: "many" is not a quantity' \
  from "$(node n3 | sed 's/capacity: {cpu: "8"/capacity: {cpu: many/')" create

# --- namespaces
expect 'namespace/team-a created' k create namespace team-a
expect 'team-a +Active' k get ns
refuse 'AlreadyExists' k create namespace team-a
refuse 'namespaces "nowhere" not found' from "$(pod p)" create -n nowhere

# --- pods
expect 'pod/p1 created' from "$(pod p1)" apply
expect 'pod/p1 unchanged|pod/p1 configured' from "$(pod p1)" apply
expect 'p1 +0/1 +Pending +0 +[0-9]+s' k get pods
expect '^default +p1 ' k get pods -A
expect 'p1 .*<none> +<none> +<none>' k get pods -o wide
expect 'default-scheduler' k get pod p1 -o yaml
expect '"restartPolicy": "Always"' k get pod p1 -o json
expect '^Pending$' k get pod p1 -o 'jsonpath={.status.phase}{"\n"}'
expect '^NAME +NODE' k get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName
expect 'No resources found' k get pods --field-selector spec.nodeName=n1
expect 'QoS Class: +Burstable' k describe pod p1
expect 'pod/p1 labeled' k label pod p1 tier=x
expect 'pod/p1 patched' k patch pod p1 -p '{"metadata":{"labels":{"tier":"y"}}}'
expect 'pod/p1 patched' k patch pod p1 --type=merge -p '{"metadata":{"labels":{"a":"b"}}}'
expect 'pod/p1 patched' k patch pod p1 --type=json \
  -p '[{"op":"test","path":"/metadata/labels/a","value":"b"},{"op":"remove","path":"/metadata/labels/a"}]'
refuse 'failed test|The request is invalid' k patch pod p1 --type=json \
  -p '[{"op":"test","path":"/metadata/labels/tier","value":"zzz"}]'
expect '^y $' k get pod p1 -o 'jsonpath={.metadata.labels.tier} {.metadata.labels.a}'
expect 'image updated' k set image pod/p1 main=registry.example/app:2
expect 'app:2 1$' k get pod p1 \
  -o 'jsonpath={.spec.containers[0].image} {.spec.containers[0].env[0].value}'
refuse 'pod updates may not change fields' k patch pod p1 -p '{"spec":{"nodeName":"n1"}}'
refuse 'spec.containers\[0\].image: Required value' \
  from '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bad"},"spec":{"containers":[{"name":"c"}]}}' create
refuse 'spec.containers\[0\].resources.limits\[cpu\]: "500x" is not a quantity' \
  from "$(pod bad | sed s/500m/500x/)" create
refuse 'RFC 1123' \
  from '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"Bad_Name"},"spec":{"containers":[{"name":"c","image":"i"}]}}' create
out=$(k logs p1 2>&1) || fail "kubectl logs"
[ -z "$out" ] || fail "the log of a pod without a node: expected nothing"
refuse 'PriorityClass with name none' \
  from '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bad"},"spec":{"priorityClassName":"none","containers":[{"name":"c","image":"i"}]}}' create

typo() { pod typo | sed 's/resources:/resorces:/'; }
# kubectl before 1.24 never asks the server for strict validation.
if "$kubectl" create --help | grep -q 'validate=.strict'; then
  refuse 'strict decoding error: unknown field "spec.containers\[0\].resorces"' from "$(typo)" create
  refuse 'resorces: field not declared in schema' from "$(typo)" apply --server-side
  expect 'Warning: unknown field "spec.containers\[0\].resorces"' \
    from "$(typo)" create --validate=warn
  expect '^{}$' k get pod typo -o 'jsonpath={.spec.containers[0].resources}'
  expect 'deleted' k delete pod typo
fi
expect 'duplicate field \\"data.a\\"' api POST \
  '/api/v1/namespaces/default/configmaps?fieldValidation=Strict' application/json \
  '{"metadata":{"name":"two"},"data":{"a":"1","a":"2"}}'
out=$(k debug p1 --image=x 2>&1)
grep -q 'panic' <<< "$out" && fail "kubectl debug panics"
grep -q 'does not serve pods/ephemeralcontainers' <<< "$out" || fail "kubectl debug"
expect 'HTTP/1.1 422 .*' api DELETE '/api/v1/namespaces/default/pods/p1?dryRun=true' application/json ''
expect 'p1' k get pod p1

# --- kinds that are not served
refuse 'does not serve selfsubjectaccessreviews.authorization.k8s.io' k auth can-i get pods
if "$kubectl" create --help | grep -q '  token '; then
  refuse 'does not serve serviceaccounts/token' k create token default
fi
expect 'HTTP/1.1 200' api HEAD /api/v1/pods '' ''

# --- binding, status, wait, watch
"$kubectl" get pods -w > "$work/watch" 2>&1 9>&- &
watch_pid=$!
"$kubectl" wait pod/p1 --for=condition=Ready --timeout=30s > "$work/wait" 2>&1 9>&- &
wait_pid=$!
seen() { for _ in $(seq 200); do grep -q "$1" "$work/watch" && return; sleep 0.05; done; }
seen Pending
bind() {
  api POST /api/v1/namespaces/default/pods/p1/binding application/json \
    "{\"apiVersion\":\"v1\",\"kind\":\"Binding\",\"metadata\":{\"name\":\"p1\"},\"target\":{\"kind\":\"Node\",\"name\":\"$1\"}}"
}
expect 'HTTP/1.1 201' bind n1
expect 'already assigned' bind n2
expect 'HTTP/1.1 200' api PATCH /api/v1/namespaces/default/pods/p1/status \
  application/strategic-merge-patch+json '{"status":{"phase":"Running",
    "conditions":[{"type":"Ready","status":"True"}],"podIP":"10.1.0.7","containerStatuses":[
    {"name":"main","ready":true,"restartCount":0,"image":"i","imageID":"i",
     "state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]}}'
wait $wait_pid
expect 'pod/p1 condition met' cat "$work/wait"
expect 'p1 +1/1 +Running +0 .* 10.1.0.7 +n1' k get pods -o wide
expect 'p1' k get pods --field-selector spec.nodeName=n1,status.phase=Running -o name
expect 'Non-terminated Pods: +\(1 in total\)' k describe node n1
seen Running
kill $watch_pid
wait $watch_pid 2>/dev/null
expect 'p1 +0/1 +Pending' cat "$work/watch"
expect 'p1 +1/1 +Running' cat "$work/watch"

# --- events, leases, config
expect 'event/e1 created' from '{"apiVersion":"v1","kind":"Event","metadata":{"name":"e1"},
  "involvedObject":{"apiVersion":"v1","kind":"Pod","name":"p1","namespace":"default"},"type":"Normal",
  "reason":"Planned","message":"1g.5gb on GPU 0","source":{"component":"nos"},
  "firstTimestamp":"2026-01-01T00:00:00Z","lastTimestamp":"2026-01-01T00:00:00Z","count":1}' create
expect 'Normal +Planned +pod/p1 +1g.5gb on GPU 0' k get events
expect 'Normal +Planned +pod/p1' k get events.events.k8s.io
expect 'lease.coordination.k8s.io/l1 created' from '{"apiVersion":"coordination.k8s.io/v1",
  "kind":"Lease","metadata":{"name":"l1"},"spec":{"holderIdentity":"me","leaseDurationSeconds":15}}' create
expect 'l1 +me ' k get leases
expect 'configmap/c1 created' k create configmap c1 --from-literal=a=1
expect 'c1 +1 ' k get cm
expect 'secret/s1 created' k create secret generic s1 --from-literal=a=1
expect 's1 +Opaque +1 ' k get secrets
expect 'system-node-critical +2000001000 +false' k get priorityclasses
expect 'priorityclass.scheduling.k8s.io/high created' k create priorityclass high --value=1000

# --- deployments and dry runs
expect 'deployment.apps/d1 created' k create deployment d1 --image=registry.example/app:1
expect 'd1 +0/1 +0 +0 ' k get deployments
expect 'deployment.apps/d1' k get all
expect 'deployment.apps/d1 scaled' k scale deployment d1 --replicas=3
expect 'server dry run' k create deployment d2 --image=i --dry-run=server
refuse 'NotFound' k get deployment d2

# --- server-side apply and conflicts
cm() { printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ssa}\ndata: {%s}\n' "$1"; }
expect 'configmap/ssa serverside-applied' from "$(cm 'a: "1", b: "2"')" apply --server-side
expect 'configmap/ssa serverside-applied' from "$(cm 'c: "3"')" apply --server-side --field-manager=other
refuse 'conflict with "kubectl" using v1: .data.a' \
  from "$(cm 'a: "9"')" apply --server-side --field-manager=other
expect 'configmap/ssa serverside-applied' \
  from "$(cm 'a: "9"')" apply --server-side --field-manager=other --force-conflicts
expect 'configmap/ssa serverside-applied' from "$(cm 'd: "4"')" apply --server-side
expect '^\{"a":"9","d":"4"\}$' k get cm ssa -o 'jsonpath={.data}'
expect 'pod/p1 serverside-applied' from "$(pod p1 | sed s/app:1/app:2/)" apply --server-side --force-conflicts

# --- custom resources
expect 'customresourcedefinition.apiextensions.k8s.io/quotas.nos.example.com created' from '
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: quotas.nos.example.com}
spec:
  group: nos.example.com
  names: {plural: quotas, kind: Quota, shortNames: [nq]}
  scope: Namespaced
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.min, statusReplicasPath: .status.n}
    additionalPrinterColumns:
    - {name: Min, type: integer, jsonPath: .spec.min}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [min]
            properties: {min: {type: integer, minimum: 0}, max: {type: integer, default: 9}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}' apply
expect 'condition met' k wait --for=condition=Established crd/quotas.nos.example.com --timeout=10s
quota() {
  printf 'apiVersion: nos.example.com/v1alpha1\nkind: Quota\nmetadata: {name: q1}\nspec: {min: %s}\n' "$1"
}
expect 'quota.nos.example.com/q1 created' from "$(quota 3)" apply
expect 'quota.nos.example.com/q1 configured' from "$(quota 4)" apply
expect 'q1 +4 +[0-9]+s' k get nq
expect '^9$' k get quota q1 -o 'jsonpath={.spec.max}'
refuse 'spec.min' from "$(quota -1)" apply
refuse 'spec.min' from "$(quota '"x"')" apply
expect 'quota.nos.example.com/q1 patched' k patch quota q1 --type=merge -p '{"spec":{"min":5}}'
expect 'quota.nos.example.com/q1 scaled' k scale quota q1 --replicas=7
expect '^7$' k get quota q1 -o 'jsonpath={.spec.min}'
expect 'deleted' k delete crd quotas.nos.example.com
refuse "doesn't have a resource type|NotFound" k get quotas

# --- explain, which uses OpenAPI v3 from kubectl 1.27 on
if "$kubectl" explain --help 2>&1 | grep -q openapiv2; then
  expect 'image\s+<string>' k explain pod.spec.containers
  expect 'capacity\s+<map\[string\]Quantity>' k explain nodes.status
  expect 'replicas\s+<integer>' k explain deployment.spec
  refuse 'does not exist' k explain pod.spec.nothing
fi

# --- replace, diff
expect 'configmap/c1 replaced' from "$(k create configmap c1 --from-literal=a=before --dry-run=client -o yaml)" replace
expect '^before$' k get cm c1 -o 'jsonpath={.data.a}'
out=$(k diff -f - <<< "$(k create configmap c1 --from-literal=a=changed --dry-run=client -o yaml)" 2>&1)
grep -q '+  a: changed' <<< "$out" || fail "kubectl diff"
expect '^before$' k get cm c1 -o 'jsonpath={.data.a}'
expect 'configmap/c1 edited' env KUBE_EDITOR="sed -i s/before/after/" "$kubectl" edit cm c1
expect '^after$' k get cm c1 -o 'jsonpath={.data.a}'

# --- deletion
expect 'pod "p1" deleted|pod "p1" force deleted' k delete pod p1 --grace-period=0 --force
refuse 'NotFound' k get pod p1
expect 'pod/p2 created' from "$(pod p2)" create -n team-a
expect 'pod/p3 created' from "$(pod p3)" create -n team-a
expect 'p2' k get pods -n team-a --sort-by=.metadata.name
expect 'evicted|deleted' k delete pods -n team-a -l app=demo --wait=false
expect 'configmap/x created' k create configmap x -n team-a
expect 'namespace "team-a" deleted' k delete ns team-a --timeout=20s
refuse 'NotFound' k get ns team-a
refuse 'may not be deleted' k delete ns kube-system
expect 'node "n2" deleted' k delete node n2
expect 'pod/p4 created' from "$(pod p4 | sed 's/^spec:/spec:\n  terminationGracePeriodSeconds: 0/')" create
expect 'HTTP/1.1 201' api POST /api/v1/namespaces/default/pods/p4/binding application/json \
  '{"target":{"kind":"Node","name":"n1"}}'
expect 'node/n1 drained|node/n1 evicted' k drain n1 --force --ignore-daemonsets --timeout=20s
refuse 'NotFound' k get pod p4

echo "passed: $steps steps with $("$kubectl" version --client 2>/dev/null | head -1)"
