#!/usr/bin/env bash
# Karpenter itself beside nos, with its provider of simulated nodes, installed by its own chart with its own
# rights. It buys the nodes that nos asks for and nodes for pods without slices that nothing can place, and
# nothing for pods that nos places. Its consolidation leaves nodes with slices in use alone. A static NodePool
# grows and shrinks by nos. The settings are those of docs/autoscaling.md.
#
#   karpenter_test.sh SCRIPT BUILD
# shellcheck disable=SC2034,SC2154
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
here=$(dirname "$(readlink -f "$0")")
karpenter=$("$controlplane" binary karpenter)
case $? in
  0) ;;
  77) exit 77 ;;
  *) fail "no karpenter" ;;
esac
karpenter_chart=$("$controlplane" chart karpenter) || fail "no chart of Karpenter"
class_crd=$("$controlplane" crd kwoknodeclasses) || fail "no CRD of Karpenter's provider"

# One node that Karpenter does not own. It and all nodes with slices have a taint, so that other pods stay away.
nodes=(base)
gpus=('{"model": "A100-40GB"}')
taint=example.com/slices
tolerations='[{"key": "example.com/slices", "operator": "Exists"}]'
values=(--set autoscaler.enabled=true --set autoscaler.config.settleSeconds=1
  --set autoscaler.config.poolSyncIntervalSeconds=1 --set autoscaler.config.scaleDown.afterSeconds=3
  --set autoscaler.config.scaleDown.utilizationThresholdPercent=100
  --set-json "gpuPartitioner.migAgent.tolerations=$tolerations"
  --set-json 'autoscaler.scaleTargets=[{"apiGroup": "karpenter.sh", "resource": "nodepools"}]')
before_agents() { expect tainted k taint node base "$taint=:NoSchedule"; }
# Karpenter's provider leaves the kubelet to kwok. Nodes with this annotation get the double of a kubelet with
# GPUs instead.
doubled=test.nos.nebuly.com/kubelet
export NOS_FLAGS_KWOK="--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake,$doubled!=doubled"
# CRDs of both are cluster-wide.
plane=$(mktemp -d)
export NOS_CONTROLPLANE_DIR=$plane/plane
at_end() {
  if [ "${code:-0}" -ne 0 ]; then
    k get nodepools.karpenter.sh,nodeclaims,nospools -o wide
    k get pods -A -o wide
  fi
  "$controlplane" down --dir "$NOS_CONTROLPLANE_DIR" >/dev/null 2>&1
  rm -rf "$plane"
}
own_plane 2 "$NOS_CONTROLPLANE_DIR" "$plane/up"
# shellcheck source=test/controlplane/installed.sh
. "$here/installed.sh"

# instance_type NAME PRICE CPU MEMORY [GPUS]: one of those that the provider sells, as JSON.
instance_type() {
  cat <<J
{"name": "$1", "architecture": "amd64", "operatingSystems": ["linux"],
 "resources": {"cpu": "$3", "memory": "$4", "pods": "250"${5:+, \"nvidia.com/gpu\": \"$5\"}},
 "offerings": [{"Price": $2, "Requirements": [
   {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
   {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["zone-a"]}]}]}
J
}
# node_class NAME DELAY: how long its nodes take to join, as YAML.
node_class() {
  cat <<Y

---
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: {name: $1}
spec: {nodeRegistrationDelay: $2}
Y
}
# theirs NAME CLASS TYPES HOW MORE: a NodePool of Karpenter, as YAML. HOW is the rest of its spec, MORE that of
# its nodes' spec.
theirs() {
  cat <<Y

---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: $1}
spec:
  $4
  template:
    metadata: $5
    spec:
      nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: $2}
      expireAfter: Never
      requirements: [{key: node.kubernetes.io/instance-type, operator: In, values: [$3]}]
      $6
Y
}
sliced='{labels: {nos.nebuly.com/gpu-partitioning: mig}, annotations: {test.nos.nebuly.com/kubelet: doubled}}'
tainted='taints: [{key: example.com/slices, effect: NoSchedule}]'
# ours NAME HOW: the NodePool of nos for the nodes of Karpenter's with this name, as YAML.
ours() {
  cat <<Y

---
apiVersion: nos.nebuly.com/v1alpha1
kind: NodePool
metadata: {name: $1}
spec:
  gpu: {model: A100-40GB, count: 1, partitioning: mig}
  cpu: 95
  memory: 500Gi
  taints: [{key: $taint, effect: NoSchedule}]
  nodeSelector: {karpenter.sh/nodepool: $1}
  max: 3
  price: "3"
  startSeconds: 60
  $2
Y
}

# install_karpenter: starts it as its pod would, with ports of this machine.
install_karpenter() {
  local environment port=$((20000 + RANDOM % 10000))
  expect created k apply -f "$class_crd"
  expect 'STATUS: deployed' "$helm" install karpenter "$karpenter_chart" -n karpenter --create-namespace \
    --set replicas=0 --set settings.batchMaxDuration=2s \
    --set settings.featureGates.staticCapacity=true --set settings.featureGates.capacityBuffer=false
  mapfile -t environment < <(k get deployment karpenter -n karpenter -o \
    jsonpath='{range .spec.template.spec.containers[0].env[?(@.value)]}{.name}={.value}{"\n"}{end}')
  expect kubeconfig "$controlplane" kubeconfig karpenter --namespace karpenter --serviceaccount karpenter
  start karpenter env "${environment[@]}" KUBECONFIG="$dir/karpenter.kubeconfig" DISABLE_LEADER_ELECTION=true \
    METRICS_PORT=0 HEALTH_PROBE_PORT="$port" INSTANCE_TYPES_FILE_PATH="$work/types.json" "$karpenter"
  within 60 curl -sSf "http://127.0.0.1:$port/readyz"
}
# kubelet_account: rights of a kubelet that does not create its Node again after its removal.
kubelet_account() {
  expect created k create serviceaccount kubelet -n karpenter
  expect created k create clusterrole kubelet --verb get,list,watch,patch,delete \
    --resource nodes/status,pods,pods/status
  expect created k create clusterrolebinding kubelet --clusterrole kubelet --serviceaccount karpenter:kubelet
  expect kubeconfig "$controlplane" kubeconfig kubelet --namespace karpenter --serviceaccount kubelet
}
# The configuration that the chart has written, without values from the pod's environment.
autoscaler_config() {
  k get configmap nos-autoscaler -n "$system" -o 'jsonpath={.data.config\.yaml}' |
    sed "s|^leaderElection:|&\n  resourceNamespace: $system|; /^schedulerConfigFile:/d"
  printf 'health: {healthProbeBindAddress: "0"}\nmetrics: {bindAddress: "0"}\n'
}
start_daemons() {
  mkdir "$work/scheduler"
  scheduler_config >"$work/scheduler/config.yaml"
  start_scheduler a
  service_accounts autoscaler:autoscaler
  autoscaler_config >"$work/autoscaler.yaml"
  start autoscaler "$nos" autoscaler --config "$work/autoscaler.yaml" --kubeconfig "$work/autoscaler.kubeconfig"
}

folder_of() { printf '%s/%s\n' "$work" "$(cksum <<<"$1" | cut -d ' ' -f 1)"; }

joined=()
# join POOL: each new node of Karpenter's pool gets its labels of GPU feature discovery, its kubelet, which
# starts without devices, and its agent.
join() {
  local name
  for name in $(k get nodes -l "karpenter.sh/nodepool=$1" -o 'jsonpath={.items[*].metadata.name}'); do
    [[ " ${joined[*]} " != *" $name "* ]] || continue
    joined+=("$name")
    hardware "$name"
    agent_config "$name" >"$work/agent-$name.yaml"
    expect labeled k label node "$name" nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/gpu.count=1
    expect patched k patch node "$name" --subresource status --type merge \
      -p '{"status": {"capacity": {"nvidia.com/gpu": "0"}, "allocatable": {"nvidia.com/gpu": "0"}}}'
    KUBECONFIG=$dir/kubelet.kubeconfig start_node "$name"
    start_agent "$name"
  done
}
# joins POOL NUMBER: so many of its nodes have joined.
joins() {
  local deadline=$((SECONDS + 60))
  until join "$1" && [ "${#joined[@]}" -ge "$2" ]; do
    [ "$SECONDS" -lt "$deadline" ] || fail "not $2 nodes: ${joined[*]}"
    read -rt 0.2 <> <(:)
  done
}
# removed NODE: Karpenter has removed it.
removed() {
  expect 'condition met' k wait --for=delete "node/$1" --timeout 120s
  kill_hard "$1"
  kill_hard "agent-$1"
}
# bought: the NodeClaims that Karpenter has ever created.
bought() {
  grep -hF '"verb":"create"' "$dir"/audit*.log | grep -cF '"resource":"nodeclaims"'
}
# has_bought NUMBER
has_bought() { [ "$(bought)" = "$1" ] || fail "Karpenter bought $(bought) nodes, not $1"; }

# slice_pod NAME PROFILE: as YAML.
slice_pod() { pod "$1" 1 "$2" nos-scheduler | sed "s|^  schedulerName.*|&\n  tolerations: $tolerations|"; }
# other_pod NAME REQUESTS: without slices, as YAML.
other_pod() {
  cat <<Y

---
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: $team}
spec:
  schedulerName: nos-scheduler
  containers: [{name: main, image: example/any, resources: {requests: $2, limits: $2}}]
Y
}
# finished_pod NAME NODE: it ends at once, as YAML.
finished_pod() {
  cat <<Y

---
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: $team, annotations: {test.nos.nebuly.com/run-seconds: "0"}}
spec:
  nodeName: $2
  containers: [{name: main, image: example/any}]
Y
}
# node_of POD
node_of() { k get pod "$1" -n "$team" -o 'jsonpath={.spec.nodeName}'; }
# uids POD...
uids() { k get pods "$@" -n "$team" --no-headers -o custom-columns=UID:.metadata.uid; }
# demand: the pods by which nos asks for nodes.
demand() { k get pods -n nos-placeholders -l nos.nebuly.com/demand-of -o name; }
# refused POD: messages of Karpenter about a pod for which it buys nothing.
refused() {
  k get events -n "$team" --field-selector "reason=FailedScheduling,source=karpenter,involvedObject.name=$1" \
    -o 'jsonpath={.items[*].message}'
}
# scaling POD: status and reason of the condition by which nos says what it does for the pod.
scaling() {
  local filter='.status.conditions[?(@.type=="nos.nebuly.com/Scaling")]'
  k get pod "$1" -n "$team" -o "jsonpath={$filter.status} {$filter.reason}"
}

say "Karpenter is installed beside nos"
printf '[%s, %s, %s]\n' "$(instance_type gpu.a100 3 96 512Gi 1)" "$(instance_type cpu.large 1 64 128Gi)" \
  "$(instance_type cpu.small 0.1 4 8Gi)" >"$work/types.json"
install_karpenter
kubelet_account
consolidates='disruption: {consolidationPolicy: WhenEmpty, consolidateAfter: 10s}'
expect created from "$(node_class fast 0s)$(node_class slow 5s)$(
  theirs slices fast gpu.a100 "$consolidates" "$sliced" "$tainted"
)$(theirs others slow 'gpu.a100, cpu.large, cpu.small' 'disruption: {consolidateAfter: Never}' '{}' '')$(
  theirs fixed fast gpu.a100 'replicas: 0
  limits: {nodes: 4}' "$sliced" "$tainted"
)" k create --validate=strict
expect 'condition met' k wait --for=condition=Ready nodepools.karpenter.sh --all --timeout 30s
expect created from "$(ours slices 'signal: Pods')" k create
start_daemons
soon 'status-layout-0' k get node base -o json # else its GPUs are unknown

say "a pod that repartitioning serves: Karpenter buys nothing"
expect created from "$(slice_pod small 1g.5gb)" k create
wait_running small
expect '^base$' node_of small
has_bought 0

say "nos asks for two nodes, and Karpenter buys two"
expect created from "$(slice_pod one 7g.40gb)$(slice_pod two 7g.40gb)" k create
joins slices 2
wait_running one two
soon '^$' demand
has_bought 2
soon 'no instance type|incompatible' refused one

say "pods without slices: Karpenter buys for them, and nos does not ask too"
one=$(node_of one) two=$(node_of two)
expect deleted k delete pod one -n "$team"
expect created from "$(other_pod cpu '{cpu: 40}')" k create
soon '^False NoPoolFits$' scaling cpu
expect '^$' demand
wait_running cpu
expect created from "$(other_pod gpu '{nvidia.com/gpu: 1}')" k create
soon '^False NoPoolFits$' scaling gpu
expect '^$' demand
wait_running gpu
expect '^cpu.large gpu.a100 $' k get nodeclaims -l karpenter.sh/nodepool=others --sort-by=.metadata.creationTimestamp \
  -o 'jsonpath={range .items[*]}{.metadata.labels.node\.kubernetes\.io/instance-type} {end}'
has_bought 4

say "consolidation removes the empty node, and not the one whose slice is used"
before=$(uids two)
removed "$one"
expect "^$before$" uids two
expect "^$two$" node_of two
expect '^$' demand
has_bought 4

say "a static NodePool grows by nos"
expect deleted k delete nospool slices
joined=()
expect created from "$(ours fixed 'deleteAnnotation: nos.nebuly.com/goes
  scaleTargetRef: {apiVersion: karpenter.sh/v1, kind: NodePool, name: fixed}')" k create
expect created from "$(slice_pod three 7g.40gb)$(slice_pod four 7g.40gb)" k create
joins fixed 2
wait_running three four
has_bought 6

say "and shrinks by the node that nos has drained, although Karpenter counts finished pods as running ones"
three=$(node_of three)
expect created from "$(finished_pod done-1 "$three")$(finished_pod done-2 "$three")" k create
expect 'condition met' k wait --for=jsonpath='{.status.phase}'=Succeeded -n "$team" pod/done-1 pod/done-2 --timeout 30s
before=$(uids four two small)
expect deleted k delete pod three -n "$team"
removed "$three"
expect '^1$' k get nodepools.karpenter.sh fixed -o 'jsonpath={.spec.replicas}'
wait_running two four
[ "$(uids four two small)" = "$before" ] || fail "pods were replaced"
has_bought 6

say "no right was missing"
if grep -l forbidden "$work"/{karpenter,autoscaler,scheduler-a,partitioner-a,partitioner-b,agent-*}.log; then
  fail "a permission is missing"
fi
say ok
