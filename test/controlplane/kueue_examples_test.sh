#!/usr/bin/env bash
# The objects that docs/kueue.md shows are what Kueue's CRDs demand, by the real API server; a
# misspelt field is refused. Kueue itself does not run.
#
#   kueue_examples_test.sh SCRIPT
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
page=$(cd "$(dirname "$0")/../.." && pwd)/docs/kueue.md
work=$(mktemp -d)
dir=$work/plane
end() {
  "$controlplane" down --dir "$dir" >/dev/null 2>&1
  rm -rf "$work"
}
trap end EXIT

export NOS_CONTROLPLANE_ONLY="etcd kube-apiserver"
own_plane 0
use_plane
for kind in resourceflavors clusterqueues localqueues; do
  crd=$("$controlplane" crd "$kind")
  case $? in
    0) ;;
    77) exit 77 ;;
    *) fail "no CRD of $kind" ;;
  esac
  # Nothing here converts between versions.
  sed '/^  conversion:/,/^  group:/{/^  group:/!d}' "$crd" >"$work/$kind.yaml"
  expect created k create -f "$work/$kind.yaml"
done
expect 'condition met' k wait --for=condition=Established crd --all --timeout 60s

# The block of Kueue's objects: indented by four, from its first apiVersion on.
sed -n '/^    apiVersion: kueue/,/^[^ ]/s/^    //p' "$page" >"$work/objects.yaml"
expect created k create namespace research
soon 'clusterqueue.kueue.x-k8s.io/research created' k create --validate=strict -f "$work/objects.yaml"
expect '^1$' k get resourceflavors -o go-template='{{len .items}}'
expect '^gpus research$' k get localqueues -n research \
  -o jsonpath='{.items[*].metadata.name} {.items[*].spec.clusterQueue}'
expect '14' k get clusterqueue research \
  -o jsonpath='{.spec.resourceGroups[0].flavors[0].resources[2].nominalQuota}'
expect deleted k delete clusterqueue research
refuse 'unknown field "spec.resourceGroups\[0\].coveredResource' k create --validate=strict \
  -f <(sed 's/coveredResources:/coveredResource:/' "$work/objects.yaml")
echo ok
