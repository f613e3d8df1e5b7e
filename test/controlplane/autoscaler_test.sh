#!/usr/bin/env bash
# Tests node pools on the real control plane: a pool whose size is the scale subresource of a
# Cluster API-like object grows from zero for pending pods, and shrinks to its minimum by deleting
# the named machine; a disruption budget keeps a node; if another autoscaler creates the nodes,
# placeholder pods or a ProvisioningRequest ask it for them. This script plays the infrastructure:
# it creates and removes machines and nodes on request.
#
#   autoscaler_test.sh SCRIPT BUILD_FOLDER
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
here=$(dirname "$(readlink -f "$0")")
# One permanent node, and nodes of pools, each with one GPU.
nodes=(base)
gpus=('{"model": "A100-40GB"}')
values=(--set autoscaler.enabled=true --set autoscaler.provisioningRequests=true
  --set autoscaler.config.settleSeconds=1 --set autoscaler.config.poolSyncIntervalSeconds=1
  --set autoscaler.config.scaleDown.afterSeconds=3 --set autoscaler.config.scaleDown.utilizationThresholdPercent=100
  --set autoscaler.config.relocations.evictionRetrySeconds=1)
# On its own control plane, because this test adds cluster-wide CRDs.
plane=$(mktemp -d)
export NOS_CONTROLPLANE_DIR=$plane/plane
at_end() {
  if [ "${code:-0}" -ne 0 ]; then k get nospools,machinedeployments,machines -A -o yaml; fi
  "$controlplane" down --dir "$NOS_CONTROLPLANE_DIR" >/dev/null 2>&1
  rm -rf "$plane"
}
own_plane 2 "$NOS_CONTROLPLANE_DIR" "$plane/up"
# shellcheck source=test/controlplane/installed.sh
. "$here/installed.sh"

# definition GROUP VERSION KIND PLURAL SUBRESOURCES: a CRD without a schema.
definition() {
  cat <<Y

---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: $4.$1}
spec:
  group: $1
  scope: Namespaced
  names: {kind: $3, listKind: $3List, plural: $4, singular: ${3,,}}
  versions:
  - name: $2
    served: true
    storage: true
    subresources: {$5}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {
      spec: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {replicas: {type: integer}}}}}}
Y
}
# pool NAME MAX HOW: a NodePool, as YAML; HOW is the rest of its spec.
pool() {
  cat <<Y

---
apiVersion: nos.nebuly.com/v1alpha1
kind: NodePool
metadata: {name: $1}
spec:
  gpu: {model: A100-40GB, count: 1, partitioning: mig}
  cpu: 95
  memory: 500Gi
  labels: {test.nos.nebuly.com/pool: $1}
  nodeSelector: {test.nos.nebuly.com/pool: $1}
  max: $2
  price: "3"
  startSeconds: 60
  $3
Y
}

machines=() serial=0
# add_node POOL: sets $name.
add_node() {
  name=$1-$((++serial))
  nodes+=("$name")
  node_flags=(--label "test.nos.nebuly.com/pool=$1")
  (
    IFS=,
    echo "{\"node\": \"$name\", \"gpus\": [${gpus[*]}]}" >"$work/$name.json"
  )
  agent_config "$name" >"$work/agent-$name.yaml"
  start_node "$name"
  expect 'condition met' k wait --for=create "node/$name" --timeout 30s
  start_agent "$name"
}
# A machine that has joined: node and machine refer to each other, as in Cluster API.
add_machine() {
  add_node ours
  expect annotated k annotate node "$name" cluster.x-k8s.io/machine="$name" cluster.x-k8s.io/cluster-namespace="$system"
  expect created from "
apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata: {name: $name, namespace: $system}
status: {nodeRef: {name: $name}}
" k create
  machines+=("$name")
}
# Removes the machine that is named for deletion. Without one, a shrink request is an error.
remove_machine() {
  local each kept=()
  name=$(k get machines -n "$system" \
    -o 'jsonpath={range .items[?(@.metadata.annotations.cluster\.x-k8s\.io/delete-machine)]}{.metadata.name}{"\n"}{end}' | head -n 1)
  [ -n "$name" ] || fail "fewer machines are wanted, and none is named"
  # shellcheck disable=SC2016 # a template of kubectl
  expect '^$' k get pods -n "$team" --field-selector "spec.nodeName=$name" \
    -o go-template='{{range .items}}{{if not .metadata.deletionTimestamp}}{{.metadata.name}} {{end}}{{end}}'
  kill_hard "agent-$name"
  kill_hard "$name"
  expect deleted k delete machine "$name" -n "$system"
  expect deleted k delete node "$name"
  for each in "${machines[@]}"; do [ "$each" = "$name" ] || kept+=("$each"); done
  machines=("${kept[@]}")
  say "machine $name is gone"
}
wanted() { k get machinedeployment ours -n "$system" -o 'jsonpath={.spec.replicas}'; }
# One round of the infrastructure.
turn() {
  local want
  want=$(wanted) || return 0
  while [ "${#machines[@]}" -lt "$want" ]; do add_machine; done
  while [ "${#machines[@]}" -gt "$want" ]; do remove_machine; done
}
# soon TEXT COMMAND...: the output contains TEXT in time, while the infrastructure keeps working.
soon() {
  local text=$1 deadline=$((SECONDS + 90))
  shift
  until turn && out=$("$@" 2>&1) || true && grep -qE -- "$text" <<<"$out"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "$* : expected /$text/"
    read -rt 0.2 <> <(:)
  done
}
# stays SECONDS TEXT COMMAND...: the output contains TEXT all the time.
stays() {
  local text=$2 deadline=$((SECONDS + $1))
  shift 2
  while [ "$SECONDS" -lt "$deadline" ]; do
    turn
    expect "$text" "$@"
    read -rt 0.2 <> <(:)
  done
}
ready() { k get rs "$1" -n "$team" -o 'jsonpath={.status.readyReplicas}'; }
nodes_of() { k get pods -n "$team" -l "app=$1" -o 'jsonpath={.items[*].spec.nodeName}'; }
uid_of() { k get pods -n "$team" -l "app=$1" -o 'jsonpath={.items[*].metadata.uid}'; }
pool_says() { k get nospool "$1" -o "jsonpath={.status.$2}"; }
ours() { k get pods -n nos-placeholders -l "$1" -o 'jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{"\n"}{end}'; }

# The configuration that the chart has written, without values from the pod's environment.
autoscaler_config() {
  k get configmap nos-autoscaler -n "$system" -o 'jsonpath={.data.config\.yaml}' |
    sed "s|^leaderElection:|&\n  resourceNamespace: $system\n  leaseDuration: 4\n  renewDeadline: 2\n  retryPeriod: 0.5|
      /^schedulerConfigFile:/d"
  printf 'health: {healthProbeBindAddress: "0"}\nmetrics: {bindAddress: "0"}\n'
}
start_autoscaler() {
  start "autoscaler-$1" "$build/nos" autoscaler --config "$work/autoscaler.yaml" \
    --kubeconfig "$work/autoscaler.kubeconfig"
}

say "an infrastructure that makes machines, none of them yet"
scale='status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}'
expect created from "$(definition cluster.x-k8s.io v1beta1 MachineDeployment machinedeployments "$scale")$(
  definition cluster.x-k8s.io v1beta1 Machine machines ''
)$(definition autoscaling.x-k8s.io v1 ProvisioningRequest provisioningrequests 'status: {}')" k create
expect 'condition met' k wait --for=condition=Established --timeout 60s crd/nodepools.nos.nebuly.com \
  crd/machinedeployments.cluster.x-k8s.io crd/machines.cluster.x-k8s.io crd/provisioningrequests.autoscaling.x-k8s.io
expect created from "
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachineDeployment
metadata: {name: ours, namespace: $system}
spec: {replicas: 0}
" k create
refuse 'must validate one and only one|oneOf|exactly one' from "$(pool wrong 1 'signal: Pods
  webhook: {url: "https://hooks.test/"}')" k create
refuse 'max must be at least min' from "$(pool wrong 1 'signal: Pods
  min: 2')" k create
expect created from "$(pool ours 3 "deleteAnnotation: cluster.x-k8s.io/delete-machine
  scaleTargetRef: {apiVersion: cluster.x-k8s.io/v1beta1, kind: MachineDeployment, namespace: $system, name: ours}")" k create
expect kubeconfig "$controlplane" kubeconfig e2e-autoscaler --namespace "$system" --serviceaccount nos-autoscaler
cp "$dir/e2e-autoscaler.kubeconfig" "$work/autoscaler.kubeconfig"
autoscaler_config >"$work/autoscaler.yaml"
# An earlier version kept its objects beside the other components.
left() {
  printf -- '\n---\napiVersion: %s\nkind: %s\nmetadata: {name: left-%s, namespace: %s, labels: {%s}}\n' "$1" "$2" "$3" \
    "$system" "$4"
}
held='spec: {schedulerName: nobody, containers: [{name: hold, image: example/any}]}'
expect created from "$(left v1 Pod place 'nos.nebuly.com/placeholder: r-1')
$held
$(left v1 Pod demand 'nos.nebuly.com/demand-of: gone')
$held
$(left v1 Pod other 'app: other')
$held
$(left v1 PodTemplate asked 'nos.nebuly.com/demand-of: gone')
template: {metadata: {labels: {a: b}}, $held}
$(left autoscaling.x-k8s.io/v1 ProvisioningRequest asked 'nos.nebuly.com/demand-of: gone')" k create
start_autoscaler a
soon '^True$' pool_says ours 'conditions[?(@.type=="Ready")].status'

say "what an earlier version left is removed, and nothing else"
left_over() { k get pods,podtemplates,provisioningrequests -n "$system" -o name | grep /left- | tr '\n' ' '; }
soon '^pod/left-other $' left_over
as_autoscaler() { "$kubectl" --kubeconfig "$work/autoscaler.kubeconfig" "$@"; }
refuse 'deletes only its own Pods' as_autoscaler delete pod left-other -n "$system" --wait=false
refuse 'forbidden' from "$(left v1 Pod more 'nos.nebuly.com/placeholder: r-1')
$held" as_autoscaler create
refuse 'violates PodSecurity "restricted' from "$(left v1 Pod root 'nos.nebuly.com/placeholder: r-1' |
  sed "s/namespace: $system/namespace: nos-placeholders/")
spec: {hostPID: true, containers: [{name: hold, image: example/any}]}" as_autoscaler create

soon 'status-layout-0' k get node base -o json # else its GPUs are unknown

say "growth from zero: one pod has room, two get nodes of their own"
expect created from "$(replica_set mover 3 7g.40gb)" k create
soon '^2$' wanted
soon '^3$' ready mover
expect 'base' nodes_of mover
[ "$(wanted)" = 2 ] || fail "more nodes than are needed: $(wanted)"
soon '^2$' pool_says ours nodes

say "the autoscaler is killed; the next one shrinks the pool to its minimum"
kill_hard autoscaler-a
start_autoscaler b
expect patched k patch nospool ours --type merge -p '{"spec": {"min": 1}}'
expect scaled k scale rs mover -n "$team" --replicas 1
soon '^1$' wanted
stays 8 '^1$' wanted
soon '^1$' ready mover
expect patched k patch nospool ours --type merge -p '{"spec": {"min": 0}}'
expect deleted k delete rs mover -n "$team"
soon '^0$' wanted
soon '^0$|^$' pool_says ours nodes
[ "$(k get nodes -l test.nos.nebuly.com/pool=ours -o name)" = '' ] || fail "a node is left"

say "a budget that lets nobody go keeps a node that could be emptied"
expect cordoned k cordon base
expect created from "$(replica_set mover 1 1g.5gb)
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: mover, namespace: $team}
spec: {maxUnavailable: 0, selector: {matchLabels: {app: mover}}}" k create
soon '^1$' ready mover
expect '^ours-' nodes_of mover
before=$(uid_of mover)
expect uncordoned k uncordon base
stays 10 "^$before$" uid_of mover
[ "$(wanted)" = 1 ] || fail "the node is taken away"

say "without it the pod moves to a place that is held for it, and its node goes"
expect deleted k delete pdb mover -n "$team"
soon '^base$' nodes_of mover
soon '^1$' ready mover
soon '^0$' wanted
soon '^$' ours nos.nebuly.com/placeholder
expect '^$' k get node base -o 'jsonpath={.spec.unschedulable}'
expect deleted k delete rs mover -n "$team"

say "pods show another autoscaler which nodes are missing"
expect deleted k delete nospool ours
expect cordoned k cordon base
expect created from "$(pool theirs 3 'signal: Pods')" k create
expect created from "$(replica_set shared 2 7g.40gb)" k create
soon 'nos-demand-theirs-1' ours nos.nebuly.com/demand-of=theirs
expect '^-10 Never$' k get pod nos-demand-theirs-0 -n nos-placeholders -o 'jsonpath={.spec.priority} {.spec.preemptionPolicy}'
expect '^theirs$' k get pod nos-demand-theirs-0 -n nos-placeholders \
  -o 'jsonpath={.spec.nodeSelector.test\.nos\.nebuly\.com/pool}'
add_node theirs
add_node theirs
soon '^2$' ready shared
soon '^$' ours nos.nebuly.com/demand-of=theirs
expect deleted k delete rs shared -n "$team"

say "and so does a ProvisioningRequest"
expect deleted k delete nospool theirs
expect cordoned k cordon theirs-$((serial - 1)) theirs-$serial
expect created from "$(pool asked 3 'signal: ProvisioningRequest')" k create
expect created from "$(replica_set shared 2 7g.40gb)" k create
asked() { k get provisioningrequest nos-demand-asked -n nos-placeholders -o 'jsonpath={.spec.podSets[0].count}'; }
soon '^2$' asked
expect 'best-effort-atomic-scale-up.autoscaling.x-k8s.io nos-demand-asked' k get provisioningrequest nos-demand-asked \
  -n nos-placeholders -o 'jsonpath={.spec.provisioningClassName} {.spec.podSets[0].podTemplateRef.name}'
expect '^asked$' k get podtemplate nos-demand-asked -n nos-placeholders \
  -o 'jsonpath={.template.spec.nodeSelector.test\.nos\.nebuly\.com/pool}'
expect patched k patch provisioningrequest nos-demand-asked -n nos-placeholders --subresource status --type merge \
  -p '{"status": {"conditions": [{"type": "Provisioned", "status": "True"}]}}'
add_node asked
add_node asked
soon '^2$' ready shared
soon 'NotFound' asked
soon 'NotFound' k get podtemplate nos-demand-asked -n nos-placeholders

say "no permission lacks, and none is there for nothing"
if grep -l forbidden "$work"/autoscaler-*.log; then fail "a permission is missing"; fi
# Repeated Events and new leases are rare; CRDs of gangs and quotas are not installed here, and taint rules of
# devices are not served by default.
unasked='patch events|create leases|(get|update) machinepools/scale|watch (podgroups|workloads|devicetaintrules|(composite)?elasticquotas)'
needless=$(comm -23 \
  <({ granted clusterrole/nos-autoscaler; granted role/nos-autoscaler; granted role/nos-autoscaler-former
    granted role/nos-autoscaler-places nos-placeholders; } | sort -u) \
  <(used nos-autoscaler) | grep -vxE "$unasked")
[ -z "$needless" ] || fail "granted by the chart, and never asked for: $needless"
say ok
