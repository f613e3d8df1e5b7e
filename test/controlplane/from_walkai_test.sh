#!/usr/bin/env bash
# From walk:ai's nos to this one: types the commands of docs/coming-from-walkai.md on a real control plane
# where walk:ai's chart is installed with the values of its manual. The namespace with its Jobs, the account of
# the API with its token, and the priority classes are the same objects afterwards, and belong to the new
# release. No program of either project runs.
#
#   from_walkai_test.sh SCRIPT
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
dir=$work/plane system=nos-system
finish() {
  local code=$?
  "$controlplane" down --dir "$dir" >/dev/null 2>&1
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
own_plane 1
use_plane
mkdir "$work/programs"
ln -s "$helm" "$work/programs/helm"
ln -s "$kubectl" "$work/programs/kubectl"
cp -r "$root/test/data/charts/walkai-nos" "$work/walkai"
cp "$root/test/data/values/walkai.yaml" "$work/walkai/values.yaml"

# typed SECTION: the commands of the page's section.
typed() {
  awk -v section="$1" '/^## / { on = $0 == "## " section; next } on && sub(/^    /, "")' \
    "$root/docs/coming-from-walkai.md" | sed -E "s|oci://ghcr.io/walkai-org/helm-charts/nos --version [^ ]*|$work/walkai|
      s|RELEASE|nos|g; s|deploy/helm/nos|$root/deploy/helm/nos|g; s|REGISTRY|registry.test|g" >"$work/commands"
  [ "$(grep -c '^helm' "$work/commands")" -ge "$2" ] || fail "the page has other commands below $1: $(cat "$work/commands")"
  (cd "$work" && PATH=$work/programs:$PATH bash -eux "$work/commands") >"$work/typed.log" 2>&1 ||
    fail "docs/coming-from-walkai.md, $1: $(cat "$work/typed.log")"
}
kept=(namespace/walkai clusterrole/discovery-minimal clusterrolebinding/discovery-minimal-for-walkai-api-client
  priorityclass/nos-priority-{low,medium,high,extra-high})
inside=(serviceaccount/api-client secret/api-client-permanent-token rolebinding/walkai-api-client-admin
  job/training persistentvolumeclaim/data)
identities() {
  k get "${kept[@]}" -o jsonpath='{range .items[*]}{.kind}/{.metadata.name} {.metadata.uid}{"\n"}{end}'
  k get -n walkai "${inside[@]}" -o jsonpath='{range .items[*]}{.kind}/{.metadata.name} {.metadata.uid}{"\n"}{end}'
}

say "while the API server does not know the kind of quotas, the policy about them refuses no pod"
"$helm" template nos "$root/deploy/helm/nos" -n "$system" --kube-version 1.34 -s templates/quota-policies.yaml >"$work/policy.yaml" ||
  fail "the chart has no policy"
expect created k create -f "$work/policy.yaml"
# The API server reads this one later than the other.
expect created from "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: marker}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: \"object.metadata.name != 'marker'\"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: marker}
spec: {policyName: marker, validationActions: [Deny]}
" k create
expect 'condition met' k wait --for=create serviceaccount/default -n default --timeout 60s
pod() { printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: default}\nspec: {containers: [{name: main, image: example/any}]}\n' "$1"; }
marked() { ! pod marker | k create --dry-run=server -f -; }
within 60 marked
expect created from "$(pod plain)" k create
expect deleted k delete -f "$work/policy.yaml"
expect deleted k delete validatingadmissionpolicy,validatingadmissionpolicybinding marker

say "walk:ai's chart, and work in its namespace"
expect 'STATUS: deployed' "$helm" install nos "$work/walkai" -n "$system" --create-namespace \
  -f "$root/test/data/values/walkai-install.yaml"
expect labeled k label nodes --all nos.nebuly.com/gpu-partitioning=mig
within 30 k get secret api-client-permanent-token -n walkai -o jsonpath='{.data.token}'
expect created from "
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: walkai}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: batch/v1
kind: Job
metadata: {name: training, namespace: walkai}
spec:
  suspend: true
  template:
    spec:
      serviceAccountName: api-client
      priorityClassName: nos-priority-medium
      restartPolicy: Never
      containers: [{name: main, image: example/any}]
" k create
before=$(identities)
[ "$(wc -l <<<"$before")" -eq 12 ] || fail "objects are missing: $before"
token=$(k get secret api-client-permanent-token -n walkai -o jsonpath='{.data.token}')

say "the page's commands"
typed Migrate 4
out=$(diff <(echo "$before") <(identities)) || fail "not all was kept"
[ "$(k get secret api-client-permanent-token -n walkai -o jsonpath='{.data.token}')" = "$token" ] || fail "the token is another"
expect '^4$' sh -c "$(printf '%q ' "$kubectl" get priorityclasses -l helm.sh/chart=nos-0.1.0 -o name) | wc -l"
expect '^registry.test/nos:0.1.0$' k get deployment nos-gpu-partitioner -n "$system" -o jsonpath='{.spec.template.spec.containers[0].image}'
expect '^false$' k get nodes -o jsonpath='{.items[*].metadata.labels.nvidia\.com/gpu\.deploy\.device-plugin}'
refuse NotFound k get secret cluster-info-exporter-secrets -n "$system"

say "the snapshots, with what was kept"
typed "Snapshots for walk:ai's API" 1
out=$(diff <(echo "$before") <(identities)) || fail "not all was kept"
expect '^(nos-0.1.0 nos.){7}$' sh -c "$(printf '%q ' "$kubectl" get "${kept[@]}" -o \
  'jsonpath={range .items[*]}{.metadata.labels.helm\.sh/chart} {.metadata.annotations.meta\.helm\.sh/release-name};{end}')"
expect 'url: https://api.example.com/cluster/insights' k get configmap nos-telemetry -n "$system" -o jsonpath='{.data.config\.yaml}'
expect . k get secret cluster-info-exporter-secrets -n "$system" -o jsonpath='{.data.apiToken}'

say "classes that preempt"
typed Preemption 1
expect '^(PreemptLowerPriority ?){4}$' k get priorityclass nos-priority-{low,medium,high,extra-high} -o jsonpath='{.items[*].preemptionPolicy}'

say "without this chart the work is still there"
expect uninstalled "$helm" uninstall nos -n "$system" --no-hooks
expect Active k get namespace walkai -o jsonpath='{.status.phase}'
expect training k get job training -n walkai -o name
say ok
