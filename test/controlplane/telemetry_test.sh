#!/usr/bin/env bash
# Authorization of nos telemetry: reading, what-if questions and submitting pods follow the real API
# server's decision on the client's token.
#
#   telemetry_test.sh SCRIPT BUILD
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
nos=$2/nos
work=$(mktemp -d)
dir=$NOS_CONTROLPLANE_DIR
export KUBECONFIG=$dir/kubeconfig
[ -f "$KUBECONFIG" ] || { echo "skipped: there is no control plane"; exit 77; }
kubectl=$("$controlplane" binary kubectl) || fail "no kubectl"
server='' a=telemetry-a-$$ b=telemetry-b-$$ # others may still be terminating
end() {
  local code=$?
  [ -z "$server" ] || kill "$server" 2>/dev/null
  [ "$code" -eq 0 ] || tail -n 20 "$work"/*.log
  k delete namespace "$a" "$b" --ignore-not-found --wait=false >/dev/null 2>&1
  k delete clusterrolebinding "$a-server" "$a-chief" "$a-watch" --ignore-not-found >/dev/null 2>&1
  k delete clusterrole "$a-watch" --ignore-not-found >/dev/null 2>&1
  rm -rf "$work"
  exit "$code"
}
trap end EXIT

k create namespace "$a" >/dev/null || fail "no namespace"
k create namespace "$b" >/dev/null || fail "no namespace"
for account in server chief member maker; do
  k -n "$a" create serviceaccount "$account" >/dev/null || fail "no account"
done
k create clusterrolebinding "$a-server" --clusterrole=system:auth-delegator \
  --serviceaccount="$a:server" >/dev/null || fail "no binding"
k create clusterrolebinding "$a-chief" --clusterrole=view \
  --serviceaccount="$a:chief" >/dev/null || fail "no binding"
k -n "$a" create rolebinding member --clusterrole=view \
  --serviceaccount="$a:member" >/dev/null || fail "no binding"
# May read and create pods in its own namespace; the others may only read.
k -n "$a" create rolebinding maker --clusterrole=edit \
  --serviceaccount="$a:maker" >/dev/null || fail "no binding"
# The same role as in the chart.
k create clusterrole "$a-watch" --verb=list,watch \
  --resource=pods,nodes,persistentvolumes,persistentvolumeclaims,namespaces,services,replicationcontrollers \
  --resource=storageclasses.storage.k8s.io,csinodes.storage.k8s.io,csidrivers.storage.k8s.io \
  --resource=csistoragecapacities.storage.k8s.io,volumeattachments.storage.k8s.io \
  --resource=resourceslices.resource.k8s.io,deviceclasses.resource.k8s.io \
  --resource=resourceclaims.resource.k8s.io \
  --resource=replicasets.apps,statefulsets.apps,poddisruptionbudgets.policy >/dev/null || fail "no role"
k patch clusterrole "$a-watch" --type=json -p '[{"op":"add","path":"/rules/-","value":{"apiGroups":
  ["nos.nebuly.com","scheduling.x-k8s.io","scheduling.k8s.io"],"resources":["elasticquotas",
  "compositeelasticquotas","nodepools","podgroups","workloads"],"verbs":["list","watch"]}},
  {"op":"add","path":"/rules/-","value":{"apiGroups":["resource.k8s.io"],"resources":["devicetaintrules"],
  "verbs":["list","watch"]}}]' >/dev/null || fail "no role"
k create clusterrolebinding "$a-watch" --clusterrole="$a-watch" \
  --serviceaccount="$a:server" >/dev/null || fail "no binding"
token() { k -n "$a" create token "$1"; }
chief=$(token chief) member=$(token member) maker=$(token maker) own=$(token server)
k config view --raw --minify >"$work/server.kubeconfig"
KUBECONFIG=$work/server.kubeconfig k config set-credentials server --token="$own" >/dev/null
KUBECONFIG=$work/server.kubeconfig k config set-context --current --user=server >/dev/null

echo 'prod 0123456789abcdef' >"$work/tokens"
cat >"$work/config.yaml" <<EOF
apiVersion: config.nos.nebuly.com/v1alpha1
kind: TelemetryConfig
listen: {bindAddress: "127.0.0.1:0"}
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
ingest: {tokenFile: $work/tokens}
readers: {kubernetes: true, kubeconfig: $work/server.kubeconfig}
actions: {whatIf: true, submit: true}
audit: {file: $work/audit.log}
store: {file: $work/telemetry.db}
EOF
"$nos" telemetry --config "$work/config.yaml" >"$work/server.log" 2>&1 &
server=$!
port=
for _ in $(seq 100); do
  port=$(sed -n 's/.*"serving telemetry".*port=//p' "$work/server.log")
  [ -n "$port" ] && break
  kill -0 "$server" 2>/dev/null || fail "it has ended"
  sleep 0.1
done
[ -n "$port" ] || fail "it does not serve"
url=http://127.0.0.1:$port/api/v1

now=$(date +%s%3N)
pod() {
  printf '{"kind":"pod","at":%s,"uid":"%s","namespace":"%s","name":"p","node":"","state":"pending","requests":{"nvidia.com/gpu":1},"created":%s}' \
    "$now" "$1" "$1" "$now"
}
body="{\"schema\":1,\"cluster\":\"prod\",\"source\":\"cluster\",\"boot\":\"b\",\"sequence\":1,\"sent_at\":$now,\"lost\":0,\"records\":[$(pod "$a"),$(pod "$b")]}"
answer=$(curl -sS -H 'Authorization: Bearer 0123456789abcdef' -H 'Content-Type: application/json' \
  -d "$body" "$url/ingest")
[ "$answer" = '{"sequence":1,"refused":[]}' ] || fail "ingest: $answer"

# code PATH TOKEN
code() { curl -sS -o "$work/answer" -w '%{http_code}' ${2:+-H "Authorization: Bearer $2"} "$url/$1"; }
expect() {
  local got
  got=$(code "$2" "${3:-}")
  [ "$got" = "$1" ] || fail "$2: $got instead of $1: $(cat "$work/answer")"
}
expect 401 workloads
expect 401 workloads forged
expect 401 workloads 0123456789abcdef # a reporter's token
expect 200 workloads "$member"
grep -q '"namespace":"'"$a"'"' "$work/answer" || fail "a member sees nothing"
grep -q '"namespace":"'"$b"'"' "$work/answer" && fail "a member sees what is not theirs"
expect 403 "workloads/$b/p" "$member"
expect 200 "workloads/$b/p" "$chief"
expect 200 workloads "$chief"
grep -q '"namespace":"'"$b"'"' "$work/answer" || fail "who may list all pods does not see all"
expect 200 overview "$chief"
expect 403 overview "$member"

# act NAME TOKEN POD...: asks what-if about a pod with these fields, or submits it
act() {
  local name=$1 token=$2
  shift 2
  curl -sS -o "$work/answer" -w '%{http_code}' -H "Authorization: Bearer $token" -H 'X-Nos-Csrf: 1' \
    -H 'Content-Type: application/json' -d "{\"cluster\":\"prod\",\"pod\":\"$*\"}" "$url/$name"
}
expect_act() {
  local want=$1 got
  shift
  got=$(act "$@")
  [ "$got" = "$want" ] || fail "$1: $got instead of $want: $(cat "$work/answer")"
}
pod_of() {
  echo "{apiVersion: v1, kind: Pod, metadata: {name: $2, namespace: $1}, spec: {schedulerName: nos-scheduler, tolerations: [{operator: Exists}], containers: [{name: main, image: any, resources: {requests: {cpu: ${3:-100m}}}}]}}"
}
expect 200 session "$maker"
grep -q '"can":{"submit":true,"what_if":true,"all_namespaces":false}' "$work/answer" || fail "session: $(cat "$work/answer")"
expect 200 session "$member"
grep -q '"can":{"submit":false,"what_if":false,' "$work/answer" || fail "session: $(cat "$work/answer")"
expect_act 200 what-if "$maker" "$(pod_of "$a" try)"
grep -q '"fits":true,"node":"' "$work/answer" || fail "it would not run: $(cat "$work/answer")"
expect_act 200 what-if "$maker" "$(pod_of "$a" try 100000)"
grep -q '"fits":false' "$work/answer" || fail "it would run: $(cat "$work/answer")"
[ -z "$(k -n "$a" get pods -o name)" ] || fail "asking has made a pod"
expect_act 403 what-if "$maker" "$(pod_of "$b" try)"
expect_act 403 what-if "$member" "$(pod_of "$a" try)"
expect_act 403 submit "$member" "$(pod_of "$a" try)"
expect_act 403 submit "$maker" "$(pod_of "$b" try)"
expect_act 200 submit "$maker" "$(pod_of "$a" try)"
grep -q '{"namespace":"'"$a"'","name":"try"}' "$work/answer" || fail "submit: $(cat "$work/answer")"
expect_act 409 submit "$maker" "$(pod_of "$a" try)"
# The API server's error message about a pod is forwarded.
expect_act 400 submit "$maker" "{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: $a}, spec: {containers: []}}"
grep -q 'spec.containers: Required value' "$work/answer" || fail "submit: $(cat "$work/answer")"
made=$(k -n "$a" get pods -o name)$(k -n "$b" get pods -o name)
[ "$made" = pod/try ] || fail "other pods than asked for: $made"
code=$(curl -sS -o "$work/answer" -w '%{http_code}' -H "Authorization: Bearer $maker" \
  -H 'Content-Type: application/json' -d '{}' "$url/submit")
[ "$code" = 403 ] || fail "without X-Nos-Csrf: $code"
# A pod in a namespace that the client may not read is not named.
k -n "$b" run secret --image=any --restart=Never >/dev/null || fail "no pod"
expect_act 200 what-if "$maker" "$(pod_of "$a" try 100000)"
grep -q secret "$work/answer" && fail "another namespace's pod is named: $(cat "$work/answer")"
grep -q '"action":"submit","who":"system:serviceaccount:'"$a"':maker","from":"127.0.0.1","cluster":"prod","what":"'"$a"'/try","outcome":"done"' \
  "$work/audit.log" || fail "not in the audit log: $(cat "$work/audit.log")"
grep -qF "$maker" "$work/audit.log" "$work/server.log" && fail "a token is in a log"
# Forged tokens cost the API server a few reviews, not one each.
for i in $(seq 30); do code session "forged-$i" >/dev/null; done
expect 429 session forged-31
expect 200 session "$maker"
echo "ok"
