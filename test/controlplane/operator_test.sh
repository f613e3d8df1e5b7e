#!/usr/bin/env bash
# Elastic quotas on the real API server, installed by the chart over the remains of the Go
# implementation: the webhook refuses invalid ones, its certificate is rotated meanwhile; pods and
# quotas report their status; two replicas share the work.
#
#   operator_test.sh SCRIPT BUILD
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
# shellcheck source=test/controlplane/permissions.sh
. "$(dirname "$0")/permissions.sh"
build=$2
work=$(mktemp -d)
dir=$work/plane
system=nos-system
export NOS_CONTROLPLANE_ONLY="etcd kube-apiserver"
declare -A pid
end() {
  local code=$?
  for name in "${!pid[@]}"; do kill -9 "${pid[$name]}" 2>/dev/null; done
  if [ "$code" -ne 0 ] && [ "$code" -ne 77 ]; then tail -n 20 "$work"/operator-*.log; fi
  "$controlplane" down --dir "$dir" >/dev/null 2>&1
  rm -rf "$work"
  exit "$code"
}
trap end EXIT

export NOS_FLAGS_KUBE_APISERVER="--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,DefaultTolerationSeconds"
own_plane 0
use_plane
# says TEXT COMMAND...: the output is exactly TEXT.
says() { out=$("${@:2}" 2>&1) && [ "$out" = "$1" ]; }

# definition KIND PLURAL NAMES EXTRA_OF_SPEC EXTRA_OF_SCHEMA: the CRDs of the Go implementation.
definition() {
  cat <<Y

---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: $2.nos.nebuly.com}
spec:
  group: nos.nebuly.com
  scope: Namespaced
  names: {kind: $1, listKind: $1List, plural: $2, singular: ${1,,}, shortNames: [$3, $3s]}$4
  versions:
  - name: v1alpha1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:$5
              min: &amounts
                type: object
                additionalProperties:
                  anyOf: [{type: integer}, {type: string}]
                  x-kubernetes-int-or-string: true
              max: *amounts
          status: {type: object, properties: {used: *amounts}}
Y
}
# quota NAMESPACE NAME SPEC: as YAML.
quota() {
  printf -- '\n---\napiVersion: nos.nebuly.com/v1alpha1\nkind: ElasticQuota\nmetadata: {namespace: %s, name: %s}\nspec: %s\n' "$@"
}
composite() { quota "$@" | sed 's/kind: ElasticQuota/kind: CompositeElasticQuota/'; }
# pod NAMESPACE NAME CPU
pod() {
  printf -- '\n---\napiVersion: v1\nkind: Pod\nmetadata: {namespace: %s, name: %s}\nspec:\n  nodeName: here\n' "$1" "$2"
  printf '  terminationGracePeriodSeconds: 0\n  containers: [{name: main, image: any, resources: {requests: {cpu: %s}}}]\n' "$3"
}

say "what the Go system left"
conversion='
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: {service: {namespace: nos-system, name: nos-webhook-service, path: /convert}}'
namespaces='
              namespaces: {type: array, minItems: 1, items: {type: string}}'
expect created from "$(definition ElasticQuota elasticquotas eq "$conversion" "")$(definition \
  CompositeElasticQuota compositeelasticquotas ceq "" "$namespaces")" k create
within 20 k get eq,ceq -A
for name in $system team-a team-b team-c team-d; do expect created k create namespace "$name"; done
expect created from "$(quota team-a old '{min: {cpu: 2, nos.nebuly.com/gpu-memory: "16"}, max: {cpu: "4"}}')$(
  composite team-c old '{namespaces: [team-c, team-d], min: {cpu: "1"}}')" k create
expect patched k patch eq old -n team-a --subresource status --type merge -p '{"status": {"used": {"cpu": "1"}}}'

say "the chart is installed over it"
port=$((20000 + RANDOM % 10000))
expect 'STATUS: deployed' "$helm" install nos "$(dirname "$controlplane")/../deploy/helm/nos" -n $system \
  --take-ownership --set gpuPartitioner.enabled=false --set scheduler.enabled=false \
  --set operator.config.webhook.certificateLifetimeSeconds=60
within 20 says 2 k get eq old -n team-a -o 'jsonpath={.spec.min.cpu}'
expect 'USED +OVER-QUOTA' k get eq -A
# The API server of this test is outside the cluster, so it cannot reach the Service.
for hook in validating/validate-quotas mutating/choose-slices; do
  expect patched k patch "${hook%/*}webhookconfiguration" nos-operator --type json -p "[{\"op\": \"replace\",
    \"path\": \"/webhooks/0/clientConfig\", \"value\": {\"url\": \"https://localhost:$port/${hook#*/}\"}}]"
done
expect kubeconfig "$controlplane" kubeconfig operator --dir "$dir" --namespace $system --serviceaccount nos-operator
# operator NAME PORT: a replica.
operator() {
  k get configmap nos-operator -n $system -o 'jsonpath={.data.config\.yaml}' |
    sed "s/^webhook:/&\n  hostName: localhost\n  bindAddress: 127.0.0.1:$2\n  secretNamespace: $system/
      s/^compositeNamespacesConfigMap: /&$system\\//
      s/^leaderElection:/&\n  resourceNamespace: $system\n  leaseDuration: 4\n  renewDeadline: 2\n  retryPeriod: 0.5/" \
      >"$work/$1.yaml"
  printf 'health: {healthProbeBindAddress: "127.0.0.1:%s"}\nmetrics: {bindAddress: "0"}\n' $(($2 + 1)) >>"$work/$1.yaml"
  "$build/nos" operator --webhook --config "$work/$1.yaml" --kubeconfig "$dir/operator.kubeconfig" \
    >>"$work/operator-$1.log" 2>&1 &
  pid[$1]=$!
  disown
}
ready() { curl -sSf "http://127.0.0.1:$(($1 + 1))/readyz"; }
operator a $((port + 2))
within 30 ready $((port + 2))
operator b "$port"
within 30 ready "$port"
served() {
  openssl s_client -connect "127.0.0.1:$1" -servername localhost </dev/null 2>/dev/null | openssl x509 -noout -serial
}
told() { k get validatingwebhookconfiguration nos-operator -o 'jsonpath={.webhooks[0].clientConfig.caBundle}' | grep .; }
within 20 told
[ "$(served "$port")" = "$(served $((port + 2)))" ] || fail "replicas do not share the certificate"

say "good quotas are taken, bad ones refused, and why"
bad() { from "$(quota team-a second '{min: {cpu: 1}}')" k create --dry-run=server; }
refused() {
  out=$(bad 2>&1) && return 1
  grep -q 'denied the request: namespace team-a has an ElasticQuota already, old: change' <<<"$out"
}
within 20 refused
expect created from "$(quota team-b q '{min: {cpu: 3}, max: {cpu: 9}}')" k create
refuse 'CompositeElasticQuota team-c/old covers namespace team-d already' \
  from "$(quota team-d q '{min: {cpu: 1}}')" k create
refuse 'namespace team-d belongs to the CompositeElasticQuota team-c/old already' \
  from "$(composite team-a q '{namespaces: [team-d], min: {cpu: 1}}')" k create
refuse 'max must be at least min|less than the 3 of spec.min' \
  from "$(quota team-x q '{min: {cpu: 3}, max: {cpu: 2}}' | sed s/team-x/$system/)" k create
refuse 'Duplicate value|has team-a twice' \
  from "$(composite team-a q '{namespaces: [team-a, team-a]}')" k create
refuse 'should match|quantity' from "$(quota $system q '{min: {cpu: much}}')" k create
refuse 'is this quota or below it' k patch eq q -n team-b --type merge -p '{"spec": {"parent": "team-b/q"}}'
refuse 'guaranteed 9 of cpu together, and it has 3' \
  from "$(quota $system q '{min: {cpu: 9}, parent: team-b/q}')" k create
expect 'Warning: there is no quota team-x/q yet' \
  from "$(quota $system q '{min: {cpu: 1}, parent: team-x/q}')" k create
within 20 says 'its parent team-x/q does not exist' \
  k get eq q -n $system -o 'jsonpath={.status.conditions[?(@.type=="InForce")].message}'
expect deleted k delete eq q -n $system
# An invalid quota written before the webhook existed.
expect patched k patch eq old -n team-a --type merge -p '{"spec": {"max": {"cpu": "5"}}}'

say "pods and quotas tell where they stand"
expect created from $'apiVersion: v1\nkind: Node\nmetadata: {name: here}' k create
expect created from "$(pod team-a p1 2)" k create
label() { k get pod "$2" -n "$1" -o 'jsonpath={.metadata.labels.nos\.nebuly\.com/capacity}'; }
status() { k get "$1" "$2" -n "$3" -o "jsonpath={.status.$4}"; }
within 20 says in-quota label team-a p1
sleep 1.1 # ages of pods have a resolution of one second
expect created from "$(pod team-a p2 1)$(pod team-d p1 2)" k create
within 20 says over-quota label team-a p2
within 20 says over-quota label team-d p1
within 20 says '{"cpu":"3","nos.nebuly.com/gpu-memory":"0"}' status eq old team-a used
within 20 says '{"cpu":"1"}' status eq old team-a borrowed
within 20 says '{"cpu":"2"}' status eq q team-b lent
within 20 says 1 status ceq old team-c podsOverQuota
within 20 says True status eq old team-a 'conditions[?(@.type=="InForce")].status'
events() { k get events -n team-a -o 'jsonpath={.items[*].reason}' | grep -w "$1"; }
within 20 events Borrowing
expect deleted k delete pod p1 -n team-a --force
within 20 says in-quota label team-a p2
within 20 events BorrowingEnded
expect deleted k delete ceq old -n team-c
within 20 says '' label team-d p1

say "a pod asks for a slice by need"
expect created from "
apiVersion: v1
kind: Node
metadata:
  name: gpu
  labels: {nos.nebuly.com/gpu-partitioning: mig, nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB, nvidia.com/gpu.count: '1'}
  annotations: {nos.nebuly.com/status-layout-0: ''}
" k create
expect patched k patch node gpu --subresource status --type merge \
  -p '{"status": {"capacity": {"cpu": "8", "memory": "8Gi", "pods": "10"}, "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}}}'
# needs NAME ANNOTATIONS: a pod with GPU requirements.
needs() {
  printf -- '\n---\napiVersion: v1\nkind: Pod\nmetadata: {namespace: team-a, name: %s, annotations: {%s}}\n' "$@"
  printf 'spec:\n  terminationGracePeriodSeconds: 0\n  containers: [{name: main, image: any, resources: {limits: {cpu: 1}}}]\n'
}
chosen() { from "$(needs n1 'nos.nebuly.com/need-memory: 9Gi')" k create; }
within 20 chosen # the operator may not know the node yet
expect 'Warning: nos: nvidia.com/mig-1g.10gb: the cheapest that meets the need and has room now .gpu.' echo "$out"
expect '^1 1 nvidia.com/mig-1g.10gb$' k get pod n1 -n team-a -o \
  'jsonpath={.spec.containers[0].resources.limits.nvidia\.com/mig-1g\.10gb} {.spec.containers[0].resources.requests.cpu} {.metadata.annotations.nos\.nebuly\.com/chosen-slice}'
refuse 'the largest is 40320 MiB .A100-40GB.' from "$(needs n2 'nos.nebuly.com/need-memory: 50Gi')" k create
refuse 'need-compute needs|needs nos.nebuly.com/need-memory beside it' \
  from "$(needs n2 'nos.nebuly.com/need-compute: "0.5"')" k create

say "the certificate is rotated, and nobody notices"
before=$(served "$port")
deadline=$((SECONDS + 90))
while [ "$(served "$port")" = "$before" ]; do
  refused || fail "the webhook has a gap"
  [ "$SECONDS" -lt "$deadline" ] || fail "it is not rotated"
  sleep 0.5
done
refused || fail "the new certificate is not trusted"
rotated() { [ "$(served "$port")" = "$(served $((port + 2)))" ]; }
within 20 rotated
[ "$(told | base64 -d | grep -c BEGIN)" -eq 2 ] || fail "both authorities are trusted meanwhile"

say "the leader is killed"
kill -9 "${pid[a]}"
expect created from "$(pod team-b p1 4)" k create
within 30 says over-quota label team-b p1
refused || fail "the webhook of the other replica answers no more"

say "hostile clients"
ask=(curl -sS -o "$work/said" -w '%{http_code}' --cacert "$work/ca" "https://localhost:$port/validate-quotas")
told | base64 -d >"$work/ca"
expect '^405$' "${ask[@]}"
expect '^400$' "${ask[@]}" -d 'nonsense'
head -c 9000000 /dev/zero >"$work/much"
expect '^413$' "${ask[@]}" --data-binary "@$work/much" # curl sends "Expect: 100-continue" first
"${ask[@]}" -H Expect: --data-binary "@$work/much" >/dev/null 2>&1 # without it, it may be cut
refused || fail "it has not outlived them"

say "a certificate that somebody else provides"
cat >"$work/c.yaml" <<Y
apiVersion: config.nos.nebuly.com/v1alpha1
kind: OperatorConfig
webhook:
  bindAddress: 127.0.0.1:$((port + 4))
  tlsCertFile: $dir/pki/server.crt
  tlsKeyFile: $dir/pki/server.key
leaderElection: {resourceNamespace: $system}
health: {healthProbeBindAddress: "127.0.0.1:$((port + 5))"}
metrics: {bindAddress: "0"}
Y
"$build/nos" operator --webhook --config "$work/c.yaml" --kubeconfig "$dir/operator.kubeconfig" >>"$work/operator-c.log" 2>&1 &
pid[c]=$!
disown
within 20 ready $((port + 4))
expect '^405$' curl -sS -o "$work/said" -w '%{http_code}' --cacert "$dir/pki/ca.crt" \
  "https://localhost:$((port + 4))/validate-quotas"

say "no permission lacks, and none is there for nothing"
if grep -l forbidden "$work"/operator-*.log; then fail "a permission is missing"; fi
needless=$(comm -23 \
  <({ granted clusterrole/nos-operator; granted role/nos-operator; granted role/nos-operator-webhook; } | sort -u) <(used nos-operator) |
  grep -vxE 'patch events|create leases')
[ -z "$needless" ] || fail "granted by the chart, and never asked for: $needless"

kill -TERM "${pid[b]}"
expect uninstalled "$helm" uninstall nos -n $system --no-hooks # no controller runs Jobs here
expect 'team-a +old' k get eq -A
say ok
