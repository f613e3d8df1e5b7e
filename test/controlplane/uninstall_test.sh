#!/usr/bin/env bash
# nos uninstall on the real API server, with the account and the roles of the chart's hook: placeholders and pods that
# show demand go, nodes that nos cordoned are open again, marks and conditions are gone; nothing of others changes.
#
#   uninstall_test.sh SCRIPT BUILD_FOLDER
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
build=$2
# On its own control plane, because it changes all nodes.
work=$(mktemp -d)
dir=$work/plane
system=nos-system
end() {
  local code=$?
  "$controlplane" down --dir "$dir" >/dev/null 2>&1
  rm -rf "$work"
  exit "$code"
}
trap end EXIT
own_plane 1
use_plane
chart=$(dirname "$controlplane")/../deploy/helm/nos

say "the chart is installed, and its daemons leave something behind"
expect 'STATUS: deployed' "$helm" install nos "$chart" -n "$system" --create-namespace \
  --set autoscaler.enabled=true
expect 'pod-security.kubernetes.io/enforce":"restricted' k get namespace nos-placeholders -o 'jsonpath={.metadata.labels}'
mark() { printf '{"pool":"a100","id":"%s","since":"2026-01-01T00:00:00Z","state":"Emptying"%s}' "$1" "${2:-}"; }
# node NAME UNSCHEDULABLE [ANNOTATION VALUE]
node() {
  printf -- '\n---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, annotations: {theirs: x}}\nspec: {unschedulable: %s}\n' "$1" "$2"
}
expect created from "$(node ours true)$(node theirs true)$(node plain true)" k create
expect annotated k annotate node ours "nos.nebuly.com/removal=$(mark r-1)" nos.nebuly.com/moved={} nos.nebuly.com/spec-layout-0=7g.40gb@0
expect annotated k annotate node theirs "nos.nebuly.com/removal=$(mark r-2 ',"cordoned":true')"
expect patched k patch node ours --subresource status --type merge -p '{"status": {"conditions": [
  {"type": "Ready", "status": "True"}, {"type": "nos.nebuly.com/GpusHealthy", "status": "False", "reason": "Lost"}]}}'
# pod NAMESPACE NAME LABEL
pod() {
  printf -- '\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s, labels: {%s: r-1}}\n' "$2" "$1" "$3"
  printf 'spec: {schedulerName: nobody, containers: [{name: hold, image: example/any}]}\n'
}
expect 'condition met' k wait --for=create serviceaccount/default -n default --timeout 60s
expect 'condition met' k wait --for=create serviceaccount/default -n "$system" --timeout 60s
expect created from "$(pod "$system" place-r-1-0 nos.nebuly.com/placeholder)$(pod "$system" nos-demand-a-0 nos.nebuly.com/demand-of
)$(pod "$system" other app)$(pod default forged nos.nebuly.com/placeholder)" k create

say "with the rights of the hook: first what would be done"
"$helm" get hooks nos -n "$system" >"$work/hooks.yaml" || fail "no hook"
expect 'args: .uninstall, --namespace, nos-system.$' cat "$work/hooks.yaml"
awk 'BEGIN {RS = "---\n"} !/\nkind: Job\n/ {printf "---\n%s", $0}' "$work/hooks.yaml" >"$work/account.yaml"
expect created k create -n "$system" -f "$work/account.yaml"
expect kubeconfig "$controlplane" kubeconfig uninstall --dir "$dir" --namespace "$system" --serviceaccount nos-uninstall
uninstall() { "$build/nos" uninstall --kubeconfig "$dir/uninstall.kubeconfig" -n "$system" "$@"; }
expect '^would delete Pod nos-system/place-r-1-0$' uninstall --dry-run
expect '^true$' k get node ours -o 'jsonpath={.spec.unschedulable}'
expect 'place-r-1-0' k get pods -n "$system" -o name

say "then it is done, once"
expect '^removed marks and cordon and conditions of Node ours$' uninstall
expect '^nothing is left$' uninstall
expect '^$' k get node ours -o 'jsonpath={.spec.unschedulable}'
expect_no 'removal|moved' k get nodes -o 'jsonpath={.items[*].metadata.annotations}'
expect 'spec-layout-0' k get node ours -o 'jsonpath={.metadata.annotations}'
expect '\bReady\b' k get node ours -o 'jsonpath={.status.conditions[*].type}'
expect_no 'nos.nebuly.com' k get nodes -o 'jsonpath={.items[*].status.conditions[*].type}'
for name in theirs plain; do expect '^true$' k get node "$name" -o 'jsonpath={.spec.unschedulable}'; done
within 30 sh -c "! $(printf '%q ' "$kubectl" get pods -n "$system" -o name) | grep -E 'place-r-1-0|nos-demand-a-0'"
expect 'pod/other' k get pods -n "$system" -o name
expect 'pod/forged' k get pods -n default -o name

say "helm runs it by a Job, whose account goes with it"
expect deleted k delete -n "$system" -f "$work/account.yaml"
expect uninstalled "$helm" uninstall nos -n "$system" --timeout 3m
expect_no 'nos-uninstall' k get serviceaccounts,roles,rolebindings,jobs,clusterroles,clusterrolebindings -A -o name
soon 'NotFound' k get namespace nos-placeholders
say ok
