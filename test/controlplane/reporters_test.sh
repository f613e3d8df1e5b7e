#!/usr/bin/env bash
# Telemetry by one value, telemetry.enabled: nos telemetry runs with the configuration and the rights
# that the chart gives it. It issues its own certificate and publishes the authority, and only agents
# and operator deliver, by tokens of their service accounts that are for this server alone. An agent's
# token delivers for its own node.
#
#   reporters_test.sh SCRIPT BUILD     with NOS_CONTROLPLANE_DIR
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
nos=$2/nos
dir=$NOS_CONTROLPLANE_DIR
chart=$(cd "$(dirname "$0")/../.." && pwd)/deploy/helm/nos
[ -f "$dir/kubeconfig" ] || { echo "skipped: there is no control plane"; exit 77; }
use_plane
work=$(mktemp -d)
release=reporters-$$ own=own-$$ other=other-$$
server=
end() {
  local code=$?
  [ -z "$server" ] || kill "$server" 2>/dev/null
  [ "$code" -eq 0 ] || tail -n 20 "$work/server.log"
  k delete pod -n default "agent-$$" --ignore-not-found --force >/dev/null 2>&1
  k delete -f "$work/objects.yaml" --ignore-not-found >/dev/null 2>&1
  k delete node "$own" "$other" --ignore-not-found >/dev/null 2>&1
  k delete secret -n default "$release-telemetry-certificate" --ignore-not-found >/dev/null 2>&1
  rm -rf "$work" "$dir/$release.kubeconfig" "$dir/$release.token"
  exit "$code"
}
trap end EXIT

# Outside of a pod, nos takes the namespace default for its own.
"$helm" template "$release" "$chart" -n default --kube-version 1.34.0 --set allowDefaultNamespace=true \
  --set telemetry.enabled=true >"$work/rendered.yaml" || fail "render"
awk -v RS='(^|\n)---\n' '/\nkind: (ServiceAccount|Role|RoleBinding|ConfigMap)\n/ || /\nkind: ClusterRoleBinding\n.*auth-delegator/ {
  print "---\n" $0}' "$work/rendered.yaml" >"$work/objects.yaml"
expect 'serverside-applied' k apply --server-side -f "$work/objects.yaml"
expect '' env NOS_CONTROLPLANE_DIR="$dir" "$controlplane" kubeconfig "$release" --namespace default \
  --serviceaccount "$release-telemetry"
awk '/^  config.yaml: \|/ {on = 1; text = ""; next} on && /^    / {text = text substr($0, 5) "\n"; next}
  on {if (text ~ "kind: TelemetryConfig") printf "%s", text; on = 0}' "$work/rendered.yaml" |
  sed "s|:8443|127.0.0.1:0|; s|/var/lib/nos-telemetry|$work|; s|^  kubernetes: true|&\n  kubeconfig: $dir/$release.kubeconfig|" \
    >"$work/config.yaml"
printf 'health: {healthProbeBindAddress: "127.0.0.1:0"}\nmetrics: {bindAddress: "0"}\n' >>"$work/config.yaml"
"$nos" telemetry --config "$work/config.yaml" >"$work/server.log" 2>&1 &
server=$!
serving() { sed -n 's/.*"serving telemetry".*port=//p' "$work/server.log" | grep .; }
within 60 serving
port=$(serving)

# The authority is where the reporters' pods mount it, and vouches for the Service's name.
host=$release-telemetry.default.svc
authority() { k get configmap -n default "$release-telemetry-ca" -o jsonpath='{.data.ca\.crt}'; }
published() { authority | grep -q 'BEGIN CERTIFICATE'; }
within 60 published
authority >"$work/ca.crt"
expect '^kubernetes.io/tls$' k get secret -n default "$release-telemetry-certificate" -o jsonpath='{.type}'
# code PATH TOKEN [ARGUMENTS...]
code() {
  curl -sS -o "$work/answer" -w '%{http_code}\n' --cacert "$work/ca.crt" --resolve "$host:$port:127.0.0.1" \
    -H "Authorization: Bearer $2" "${@:3}" "https://$host:$port/api/v1/$1"
}
expect '^401$' code workloads none
refuse 'certificate' curl -sS --resolve "other.test:$port:127.0.0.1" --cacert "$work/ca.crt" "https://other.test:$port/"

token() { k create token "$1" -n default "${@:2}"; }
for node in "$own" "$other"; do
  expect created from "
apiVersion: v1
kind: Node
metadata: {name: $node}
" k create
done
# A token as kubelets give it to the agent: bound to the Pod, and so to its node.
expect created from "
apiVersion: v1
kind: Pod
metadata: {name: agent-$$, namespace: default}
spec: {nodeName: $own, serviceAccountName: $release-mig-agent, containers: [{name: main, image: example/any}]}
" k create
bound() { token "$release-mig-agent" --bound-object-kind Pod --bound-object-name "agent-$$" "$@"; }
agent=$(bound --audience nos-telemetry) || fail "no token"
operator=$(token "$release-operator" --audience nos-telemetry) || fail "no token"
# deliver TOKEN SOURCE [CLUSTER] [RECORDS]
deliver() {
  local now
  now=$(date +%s%3N)
  code ingest "$1" -H 'Content-Type: application/json' -d "{\"schema\":1,\"cluster\":\"${3:-default}\",\"source\":\"$2\",
    \"boot\":\"b\",\"sequence\":$now,\"sent_at\":$now,\"lost\":0,\"records\":[${4:-}]}"
}
expect '^200$' deliver "$agent" "node/$own"
expect '^200$' deliver "$operator" cluster
expect '^403$' deliver "$agent" "node/$own" other
expect '^401$' deliver "$(bound)" "node/$own" # for the API server
expect '^401$' deliver "$(bound --audience another)" "node/$own"
expect '^401$' deliver "$(token "$release-scheduler" --audience nos-telemetry)" cluster
expect '^401$' deliver "${agent%?????}AAAAA" "node/$own"
# With a stolen node's token records of this node alone are accepted.
expect '^403$' deliver "$agent" cluster
expect '^403$' deliver "$agent" "node/$other"
expect '^403$' deliver "$(token "$release-mig-agent" --audience nos-telemetry)" "node/$own" # bound to no node
at=$(date +%s%3N)
expect '^200$' deliver "$agent" "node/$own" default '{"kind":"layout","at":'"$at"',"node":"'"$other"'","gpus":[]},
  {"kind":"pod","at":'"$at"',"uid":"u","namespace":"a","name":"p","state":"failed"},
  {"kind":"gpu","at":'"$at"',"gpu":"GPU-1","metrics":{"power":1}}'
expect '"record":0,"why":"layout: node/[^"]* does not report for node.*"record":1,"why":"pod: node/[^"]* reports only its GPUs"' \
  cat "$work/answer"
# A reporter's token reads nothing, here and at the API server.
expect '^401$' code workloads "$agent"
refuse 'Unauthorized|must be logged in' "$kubectl" --kubeconfig /dev/null --server "$(k config view --minify -o jsonpath='{.clusters[0].cluster.server}')" \
  --insecure-skip-tls-verify --token "$agent" get pods
grep -qF "$agent" "$work/server.log" && fail "a token is in the log"
echo ok
