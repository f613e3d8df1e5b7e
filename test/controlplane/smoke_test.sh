#!/usr/bin/env bash
# The shared control plane is real and complete: kwok's nodes become Ready, the scheduler binds,
# kwok runs bound pods, RBAC refuses, the disruption controller counts.
#
#   smoke_test.sh SCRIPT     with NOS_CONTROLPLANE_DIR
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
shared_plane
namespace=smoke-$$
trap 'k delete namespace "$namespace" --wait=false >/dev/null 2>&1' EXIT

expect 'Server Version: v1\.[0-9]+' k version
expect '^ok$' k get --raw /readyz
expect 'condition met' k wait --for=condition=Ready node --selector type=kwok --timeout 60s
expect "created" k create namespace "$namespace"
expect 'condition met' k wait --for=create serviceaccount/default -n "$namespace" --timeout 30s

# Exercises the deployment and replica set controllers, the scheduler, and kwok.
expect created from "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: $namespace}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: 'example/any:1', resources: {requests: {cpu: 1}}}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: $namespace}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
" k create
expect 'condition met' k wait --for=condition=Available deployment/web -n "$namespace" --timeout 60s
expect '^(kwok-[0-9]+ Running ){2}$' k get pods -n "$namespace" \
  -o jsonpath='{range .items[*]}{.spec.nodeName} {.status.phase} {end}'
expect 'condition met' k wait --for=jsonpath='{.status.currentHealthy}'=2 pdb/web -n "$namespace" \
  --timeout 60s
pod=$(k get pods -n "$namespace" -o jsonpath='{.items[0].metadata.name}')
eviction='{"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "'$pod'"}}'
refuse 'disruption budget' from "$eviction" \
  k create --raw "/api/v1/namespaces/$namespace/pods/$pod/eviction"

# A pod with too large requests stays pending, with the scheduler's reason.
expect created from "
apiVersion: v1
kind: Pod
metadata: {name: large, namespace: $namespace}
spec:
  containers:
  - {name: main, image: 'example/any:1', resources: {limits: {nvidia.com/mig-1g.5gb: 1}}}
" k create
expect 'condition met' k wait --for=jsonpath='{.status.conditions[0].reason}'=Unschedulable \
  pod/large -n "$namespace" --timeout 30s
expect 'Insufficient nvidia.com/mig-1g.5gb' k get pod large -n "$namespace" \
  -o jsonpath='{.status.conditions[0].message}'

# A service account may do exactly what its role allows.
expect created k create serviceaccount reader -n "$namespace"
expect created k create role reader -n "$namespace" --verb get,list --resource pods
expect created k create rolebinding reader -n "$namespace" --role reader \
  --serviceaccount "$namespace:reader"
expect '/smoke-reader.kubeconfig$' "$controlplane" kubeconfig smoke-reader --namespace "$namespace" \
  --serviceaccount reader
expect 'web-' "$kubectl" --kubeconfig "$dir/smoke-reader.kubeconfig" get pods
refuse 'cannot list resource "nodes"' "$kubectl" --kubeconfig "$dir/smoke-reader.kubeconfig" get nodes
echo ok
