#!/usr/bin/env bash
# In a namespace with an elastic quota a tenant with the rights of edit or admin creates no pod with GPUs that
# the quota would not count. The chart's policy on a real API server.
#
#   tenants_test.sh SCRIPT
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
shared_plane
work=$(mktemp -d)
release=nos-tenants-$$ team=team-tenants-$$ free=free-tenants-$$ covered=covered-tenants-$$
chart() {
  "$helm" template "$release" "$(dirname "$controlplane")/../deploy/helm/nos" --kube-version 1.34 \
    -s templates/quota-policies.yaml "$@"
}
end() {
  local code=$?
  k delete -f "$work/policy.yaml" --ignore-not-found >/dev/null 2>&1
  k delete namespace "$team" "$free" "$covered" --wait=false >/dev/null 2>&1
  rm -rf "$work"
  exit "$code"
}
trap end EXIT

say "the policy is there for new installations, and where it was before"
chart -n "$team" >"$work/policy.yaml" || fail "the chart has no policy"
refuse 'could not find template' chart -n "$team" --set admissionPolicies.quotaPods=never
refuse 'could not find template' chart -n "$team" --is-upgrade
expect ValidatingAdmissionPolicy chart -n "$team" --is-upgrade --set admissionPolicies.quotaPods=always
expect "in .'nos-scheduler','other'" chart -n "$team" --set 'scheduler.config.profiles[0].schedulerName=nos-scheduler' \
  --set 'scheduler.config.profiles[1].schedulerName=other'

# Other tests may have them, too.
"$helm" template nos "$(dirname "$controlplane")/../deploy/helm/nos" -n "$team" --kube-version 1.34 -s templates/crds.yaml |
  k apply --server-side --force-conflicts -f - >/dev/null || fail "no CRDs"
within 30 k get elasticquotas -A
for namespace in "$team" "$free" "$covered"; do expect created k create namespace "$namespace"; done
expect created from "
apiVersion: nos.nebuly.com/v1alpha1
kind: ElasticQuota
metadata: {name: ours, namespace: $team}
spec: {min: {nos.nebuly.com/gpu-memory: 40}}
" k create
expect 'validatingadmissionpolicybinding.*created' k create -f "$work/policy.yaml"
for role in edit admin; do
  for namespace in "$team" "$free" "$covered"; do
    expect created k create rolebinding "$role" -n "$namespace" --clusterrole "$role" --user "$role-of-$team"
  done
done

# pod NAME NAMESPACE SPEC [RESOURCES]
pod() {
  printf -- '---\napiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s}\nspec:\n  %s\n' "$1" "$2" "$3"
  printf '  containers: [{name: main, image: example/any, resources: {%s}}]\n' "$4"
}
tenant() { k --as "$role-of-$team" "$@"; }
# large initContainers|limits: a pod of about the size that can be stored, with many of them and the GPU last. An
# expression that costs too much would let it pass.
large() {
  local i
  {
    printf '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "large", "namespace": "%s"}, "spec": {' "$team"
    if [ "$1" = limits ]; then
      printf '"containers": [{"name": "main", "image": "example/any", "resources": {"limits": {'
      for i in {1..30000}; do printf '"a.b/c%s": "1", ' "$i"; done
      printf '"nvidia.com/mig-1g.5gb": "1"}}}]'
    else
      printf '"initContainers": ['
      for i in {1..15000}; do printf '{"name": "i%s", "image": "i"}, ' "$i"; done
      printf '{"name": "last", "image": "i", "resources": {"limits": {"nvidia.com/mig-1g.5gb": "1"}}}], '
      printf '"containers": [{"name": "main", "image": "example/any"}]'
    fi
    printf '}}'
  }
}
slice='limits: {nvidia.com/mig-1g.5gb: 1}'
# The API server may take a moment to read a new policy.
is_refused() {
  ! pod first "$team" 'schedulerName: default-scheduler' "$slice" | tenant create --dry-run=server -f -
}
for role in edit admin; do
  say "a tenant with the rights of $role"
  within 60 is_refused
  refuse "set spec.schedulerName to nos-scheduler" from "$(pod a "$team" 'restartPolicy: Never' "$slice")" tenant create
  refuse "set spec.schedulerName to nos-scheduler" from "$(pod b "$team" 'schedulerName: mine' 'limits: {nvidia.com/gpu: 1}')" tenant create
  refuse "leave out spec.nodeName" from "$(pod c "$team" '{schedulerName: nos-scheduler, nodeName: n1}' "$slice" | sed 's/{schedulerName: nos-scheduler, nodeName: n1}/schedulerName: nos-scheduler\n  nodeName: n1/')" tenant create
  refuse "set spec.schedulerName to nos-scheduler" from "$(pod d "$team" "initContainers: [{name: i, image: example/any, resources: {$slice}}]" '')" tenant create
  refuse "set spec.schedulerName to nos-scheduler" from "$(pod e "$team" 'resourceClaims: [{name: gpu, resourceClaimName: x}]' '')" tenant create
  refuse "set spec.schedulerName to nos-scheduler" from "$(pod g "$team" 'restartPolicy: Never' 'limits: {deviceclass.resource.kubernetes.io/gpu: 1}')" tenant create
  refuse "elastic quota ours" from "$(pod f "$team" 'ownerReferences: []' "$slice" |
    sed "s/metadata: {name: f, namespace: $team}/metadata: {name: f, namespace: $team, ownerReferences: [{apiVersion: apps\/v1, kind: DaemonSet, name: d, uid: 1-2}]}/; s/  ownerReferences: \[\]/  restartPolicy: Never/")" tenant create
  for many in initContainers limits; do
    large "$many" >"$work/large.yaml"
    refuse "set spec.schedulerName to nos-scheduler" tenant create --dry-run=server -f "$work/large.yaml"
  done
  expect created from "$(pod "good-$role" "$team" 'schedulerName: nos-scheduler' "$slice")" tenant create
  expect created from "$(pod "cpu-$role" "$team" 'restartPolicy: Never' 'limits: {cpu: 1}')" tenant create
  expect created from "$(pod "free-$role" "$free" 'restartPolicy: Never' "$slice")" tenant create
  refuse forbidden tenant delete validatingadmissionpolicy "$release-quota-pods"
  refuse forbidden tenant delete elasticquota ours -n "$team"
done

say "namespaces of composite quotas, as the operator lists them"
role=edit
covered_pod() {
  pod "$1" "$covered" 'schedulerName: default-scheduler' "$slice" | tenant create --dry-run=server -f - 2>&1
}
expect created covered_pod before
# The chart's name, in the namespace of the release.
map=$("$helm" template "$release" "$(dirname "$controlplane")/../deploy/helm/nos" -n "$team" --kube-version 1.34 \
  -s templates/operator.yaml | sed -n 's|.*compositeNamespacesConfigMap: ||p')
expect created k create configmap "$map" -n "$team" --from-literal=namespaces=",a,$covered,b,"
belongs() { covered_pod listed | grep -q 'belongs to a CompositeElasticQuota'; }
within 60 belongs
refuse "set spec.schedulerName to nos-scheduler" covered_pod a
refuse "leave out spec.nodeName" from "$(pod b "$covered" 'schedulerName: nos-scheduler' "$slice" |
  sed 's/^spec:/spec:\n  nodeName: n1/')" tenant create
expect created from "$(pod good "$covered" 'schedulerName: nos-scheduler' "$slice")" tenant create
expect created from "$(pod cpu "$covered" 'restartPolicy: Never' 'limits: {cpu: 1}')" tenant create
expect created from "$(pod longer "$free" 'restartPolicy: Never' "$slice")" tenant create
refuse forbidden tenant patch configmap "$map" -n kube-system --type merge -p '{"data": {"namespaces": ","}}'
expect patched k patch configmap "$map" -n "$team" --type merge -p "{\"data\": {\"namespaces\": \",a$covered,\"}}"
passes() { covered_pod left | grep -q created; }
within 60 passes
say ok
