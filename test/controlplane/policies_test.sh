#!/usr/bin/env bash
# The token of one node's agent, used by an intruder, writes nothing that belongs to another
# node, and on its own node only what an agent reports; the operator's token changes one label of Pods, and creates no
# Secret but that of its certificate, nor does the telemetry server's. Tests the chart's admission policies on a real API
# server.
#
#   policies_test.sh SCRIPT
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
shared_plane
work=$(mktemp -d)
system=nos-policies-$$ release=nos-policies-$$ own=own-$$ other=other-$$
chart() {
  "$helm" template "$release" "$(dirname "$controlplane")/../deploy/helm/nos" -n "$system" --kube-version 1.34 \
    --api-versions resource.k8s.io/v1 --set gpuPartitioner.migAgent.resourceClaims.enabled=true \
    --set gpuPartitioner.migAgent.devicePlugin.mode=builtin --set telemetry.enabled=true "$@" |
    awk 'BEGIN {RS = "---\n"} /(mig-agent|operator|telemetry)/ && /\nkind: (ServiceAccount|Role|RoleBinding|ClusterRole|ClusterRoleBinding|ValidatingAdmissionPolicy|ValidatingAdmissionPolicyBinding)\n/ {printf "---\n%s", $0}'
}
end() {
  local code=$?
  k patch node "$own" "$other" --type merge -p '{"metadata": {"finalizers": null}}' >/dev/null 2>&1
  k delete -f "$work/chart.yaml" --ignore-not-found >/dev/null 2>&1
  k delete namespace "$system" --wait=false >/dev/null 2>&1
  k delete node "$own" "$other" >/dev/null 2>&1
  k delete resourceslice "$own" "$other" >/dev/null 2>&1
  rm -rf "$work"
  exit "$code"
}
trap end EXIT

expect created k create namespace "$system"
chart >"$work/chart.yaml"
expect 'validatingadmissionpolicybinding.*created' k create -f "$work/chart.yaml"
for node in "$own" "$other"; do
  expect created from "
apiVersion: v1
kind: Node
metadata: {name: $node, labels: {a: b}, annotations: {their.example.com/x: theirs}, finalizers: [example.com/keep]}
spec: {taints: [{key: kept, effect: NoSchedule}]}
" k create
  expect patched k patch node "$node" --subresource status --type merge -p '{"status":
    {"capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"}, "conditions": [{"type": "Ready", "status": "True"}]}}'
done
expect kubeconfig "$controlplane" kubeconfig "$release" --namespace "$system" --serviceaccount "$release-mig-agent" --node "$own"
# A token as kubelets give it to the agent: bound to the Pod.
expect created from "
apiVersion: v1
kind: Pod
metadata: {name: agent, namespace: $system}
spec: {nodeName: $own, serviceAccountName: $release-mig-agent, containers: [{name: main, image: example/any}]}
" k create
k create token "$release-mig-agent" -n "$system" --bound-object-kind Pod --bound-object-name agent >"$work/token" || fail "no token"
mv "$work/token" "$dir/$release.token"
expect kubeconfig "$controlplane" kubeconfig "$release-free" --namespace "$system" --serviceaccount "$release-mig-agent"
agent() { "$kubectl" --kubeconfig "$dir/$release.kubeconfig" "$@"; }
unbound() { "$kubectl" --kubeconfig "$dir/$release-free.kubeconfig" "$@"; }
forbidden=0
# denied MESSAGE COMMAND...: the API server refuses with the policy's message.
denied() {
  refuse "$1" "${@:2}"
  forbidden=$((forbidden + 1))
}
server=$(k config view -o 'jsonpath={.clusters[0].cluster.server}')
# sent PATH PATCH [TYPE]: kubectl would read the object first, for which the accounts have no right.
sent() {
  curl -s --fail-with-body --cacert "$dir/pki/ca.crt" -H "Authorization: Bearer $(cat "$dir/$release.token")" \
    -H "Content-Type: application/${3:-merge-patch}+json" -X PATCH -d "$2" "$server/$1"
}
status() { sent "api/v1/nodes/$1/status" "$2" "${3:-}"; }
slice() {
  printf 'apiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: %s}\n' "$1"
  printf 'spec: {driver: %s, nodeName: %s, pool: {name: %s, generation: %s, resourceSliceCount: 1}, devices: [{name: gpu-0}]}\n' \
    "$2" "$3" "${5:-$3}" "${4:-1}"
}

say "policies are in force once the API server has read them"
within 30 bash -c "'$kubectl' --kubeconfig '$dir/$release.kubeconfig' annotate node $other nos.nebuly.com/status-x=y 2>&1 | grep -q 'its own Node'"

say "an agent writes status on its node"
expect annotated agent annotate node "$own" nos.nebuly.com/status-partitioning-plan=1
expect annotated agent annotate node "$own" nos.nebuly.com/status-layout-0=7g.40gb@0:used nos.nebuly.com/status-holders-0=7g.40gb@0=a/b
expect annotated agent annotate node "$own" 'nos.nebuly.com/partitioning-result={"plan": "1"}'
expect annotated agent annotate node "$own" n8s.nebuly.ai/status-partitioning-plan=1
expect annotated agent annotate node "$own" n8s.nebuly.ai/status-partitioning-plan-
expect '"kind": "Node"' status "$own" '{"status": {"capacity": {"nvidia.com/mig-1g.5gb": "2"}, "allocatable": {"nvidia.com/mig-1g.5gb": "2"}}}'
expect '"kind": "Node"' status "$own" '{"status": {"conditions": [{"type": "nos.nebuly.com/DeviceHandover", "status": "True"}]}}' strategic-merge-patch

say "and nothing else there"
denied 'no labels' agent label node "$own" a=c --overwrite
denied 'no labels' agent label node "$own" a-
denied 'no labels' agent label node "$own" node-role.kubernetes.io/control-plane=
denied 'no spec' agent taint node "$own" kept-
denied 'no spec' agent taint node "$own" more=x:NoExecute
denied 'no spec' agent patch node "$own" --type merge -p '{"spec": {"unschedulable": true}}'
denied 'that report status' agent annotate node "$own" their.example.com/x=z --overwrite
denied 'that report status' agent annotate node "$own" their.example.com/x-
denied 'that report status' agent annotate node "$own" cluster-autoscaler.kubernetes.io/scale-down-disabled=true
for key in nos.nebuly.com/{removal,moves-away,moved,spec-layout-0,spec-gpu-0-7g.40gb,spec-partitioning-plan,partitioning-results,x} \
  n8s.nebuly.ai/{spec-gpu-0-7g.40gb,removal}; do
  denied 'that report status' agent annotate node "$own" "$key=1" --overwrite
done
expect annotated k annotate node "$own" nos.nebuly.com/removal='{"state": "Asked"}' nos.nebuly.com/spec-layout-0=7g.40gb@0
denied 'that report status' agent annotate node "$own" nos.nebuly.com/removal-
denied 'that report status' agent annotate node "$own" nos.nebuly.com/spec-layout-0-
denied 'finalizers' agent patch node "$own" --type merge -p '{"metadata": {"finalizers": null}}'
denied 'finalizers nor owners' agent patch node "$own" --type merge -p '{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "x"}]}}'
denied 'only capacities' status "$own" '{"status": {"capacity": {"cpu": "9"}}}'
denied 'only capacities' status "$own" '{"status": {"capacity": {"example.com/x": "1"}}}'
denied 'only allocatable' status "$own" '{"status": {"allocatable": {"cpu": "0"}}}'
denied 'only allocatable' status "$own" '{"status": {"allocatable": {"cpu": null}}}'
denied 'only conditions' status "$own" '{"status": {"conditions": [{"type": "Ready", "status": "False"}]}}' strategic-merge-patch
denied 'only conditions' status "$own" '{"status": {"conditions": [{"type": "Other", "status": "True"}]}}' strategic-merge-patch
denied 'no addresses' status "$own" '{"status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.1"}]}}'
denied 'no addresses' status "$own" '{"status": {"volumesAttached": [{"name": "v", "devicePath": "/dev/x"}]}}'
denied 'no addresses' status "$own" '{"status": {"nodeInfo": {"kubeletVersion": "v1.99.0"}}}'

say "nor on another node"
denied 'its own Node' agent annotate node "$other" nos.nebuly.com/spec-layout-0=7g.40gb@0
denied 'its own Node' agent label node "$other" a=c --overwrite
denied 'its own Node' agent taint node "$other" kept-
denied 'its own Node' agent patch node "$other" --type merge -p '{"spec": {"unschedulable": true}}'
denied 'its own Node' status "$other" '{"status": {"allocatable": {"nvidia.com/mig-1g.5gb": "0"}}}'
denied 'its own Node' status "$other" '{"status": {"conditions": [{"type": "nos.nebuly.com/GpusHealthy", "status": "False"}]}}' strategic-merge-patch

if k get --raw /apis/resource.k8s.io/v1 >/dev/null 2>&1; then # from Kubernetes 1.34 on
  say "slices of its own node and driver only"
  expect created from "$(slice "$own" gpu.nos.nebuly.com "$own")" agent create
  expect created from "$(slice "$other" gpu.nos.nebuly.com "$other")" k create
  denied 'another node' from "$(slice "$other-2" gpu.nos.nebuly.com "$other")" agent create
  denied 'another node' from "$(slice "$own-2" gpu.nvidia.com "$own")" agent create
  denied 'another node' from "$(slice "$own-2" gpu.nos.nebuly.com "$own" 1 "$other")" agent create
  denied 'another node' agent delete resourceslice "$other"
  agent get resourceslices -o json >/dev/null || fail "agents list slices"
  expect 'resourceslice.*replaced' from "$(slice "$own" gpu.nos.nebuly.com "$own" 2)" agent replace
  denied 'another node' from "$(slice "$other" gpu.nos.nebuly.com "$other" 2)" agent replace
  expect deleted agent delete resourceslice "$own"

  say "reports on its own devices in claims, and no allocation"
  claim() { # POOL [RESERVED]
    printf '{"status": {"devices": [{"driver": "gpu.nos.nebuly.com", "pool": "%s", "device": "gpu-0", "conditions": [{"type": "nos.nebuly.com/Created", "status": "True", "reason": "DeviceReady", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}]%s}}' "$1" "${2:-}"
  }
  results() {
    printf '{"status": {"allocation": {"devices": {"results": [%s, %s]}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["%s"]}]}]}}}}' \
      "$(result "$own")" "$(result "$other")" "$own"
  }
  result() { printf '{"request": "r", "driver": "gpu.nos.nebuly.com", "pool": "%s", "device": "gpu-0"}' "$1"; }
  expect created from "
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c, namespace: $system}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.nos.nebuly.com, allocationMode: ExactCount, count: 2}}]}}
" k create
  expect patched k patch resourceclaim c -n "$system" --subresource status --type merge -p "$(results)"
  reported() { sent "apis/resource.k8s.io/v1/namespaces/$system/resourceclaims/c/status" "$1"; }
  expect '"DeviceReady"' reported "$(claim "$own")"
  denied 'devices of its own node|arbitrary-node' reported "$(claim "$other")"
  denied 'allocates nothing|resourceclaims/binding' reported "$(claim "$own" ', "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]')"
  denied 'allocates nothing|resourceclaims/binding' reported '{"status": {"allocation": null}}'

  denied 'not bound to a node' unbound delete resourceslice "$other"
fi

say "a token that is bound to no node writes nothing"
denied 'not bound to a node' unbound annotate node "$own" nos.nebuly.com/status-x=y

say "the operator labels Pods, and changes nothing else of them"
k create token "$release-operator" -n "$system" >"$dir/$release.token" || fail "no token"
expect created from "
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: $system, labels: {a: b}, annotations: {a: b}}
spec: {containers: [{name: main, image: example/any}], tolerations: [{key: a}]}
" k create
pod() { sent "api/v1/namespaces/$system/pods/p" "$1" "${2:-}"; }
for value in '"over-quota"' '"in-quota"' null; do
  expect '"kind": "Pod"' pod '{"metadata": {"labels": {"nos.nebuly.com/capacity": '"$value"'}}}'
done
denied 'changes only the label' pod '{"metadata": {"labels": {"a": "c"}}}'
denied 'changes only the label' pod '{"metadata": {"labels": {"a": null}}}'
denied 'changes only the label' pod '{"metadata": {"labels": {"more": "x"}}}'
denied 'changes no spec' pod '[{"op": "replace", "path": "/spec/containers/0/image", "value": "example/other"}]' json-patch
denied 'changes no spec' pod '[{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "b", "operator": "Exists"}}]' json-patch
denied 'changes no annotations' pod '{"metadata": {"annotations": {"a": null}}}'
denied 'changes no annotations' pod '{"metadata": {"annotations": {"more": "x"}}}'
denied 'finalizers or owners' pod '{"metadata": {"finalizers": ["example.com/x"]}}'

say "operator and telemetry server create the Secrets of their certificates, and no others"
# secret NAME TYPE
secret() {
  curl -s --fail-with-body --cacert "$dir/pki/ca.crt" -H "Authorization: Bearer $(cat "$dir/$release.token")" \
    -H "Content-Type: application/json" -X POST "$server/api/v1/namespaces/$system/secrets" \
    -d '{"kind": "Secret", "metadata": {"name": "'"$1"'"}, "type": "'"$2"'", "data": {"tls.crt": "", "tls.key": ""}}'
}
for account in operator telemetry; do
  k create token "$release-$account" -n "$system" >"$dir/$release.token" || fail "no token"
  case $account in operator) certificate=$release-operator-webhook ;; *) certificate=$release-telemetry-certificate ;; esac
  denied 'only the Secret of its certificate' secret "sh.helm.release.v1.$release.v999" helm.sh/release.v1
  denied 'only the Secret of its certificate' secret "other-$account" kubernetes.io/tls
  denied 'only the Secret of its certificate' secret "$certificate" Opaque
  expect '"kind": "Secret"' secret "$certificate" kubernetes.io/tls
done

say "without the policies roles alone decide"
if chart --set admissionPolicies.enabled=false | grep -q ValidatingAdmissionPolicy; then fail "policies although switched off"; fi
say "ok: $forbidden writes refused"
