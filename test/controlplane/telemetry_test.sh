#!/usr/bin/env bash
# Who reads what of nos telemetry, as the real API server says of their tokens.
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
k() { "$kubectl" "$@"; }
server='' a=telemetry-a-$$ b=telemetry-b-$$ # others may be ending still
end() {
  local code=$?
  [ -z "$server" ] || kill "$server" 2>/dev/null
  [ "$code" -eq 0 ] || tail -n 20 "$work"/*.log
  k delete namespace "$a" "$b" --ignore-not-found --wait=false >/dev/null 2>&1
  k delete clusterrolebinding "$a-server" "$a-chief" --ignore-not-found >/dev/null 2>&1
  rm -rf "$work"
  exit "$code"
}
trap end EXIT

k create namespace "$a" >/dev/null || fail "no namespace"
k create namespace "$b" >/dev/null || fail "no namespace"
for account in server chief member; do
  k -n "$a" create serviceaccount "$account" >/dev/null || fail "no account"
done
k create clusterrolebinding "$a-server" --clusterrole=system:auth-delegator \
  --serviceaccount="$a:server" >/dev/null || fail "no binding"
k create clusterrolebinding "$a-chief" --clusterrole=view \
  --serviceaccount="$a:chief" >/dev/null || fail "no binding"
k -n "$a" create rolebinding member --clusterrole=view \
  --serviceaccount="$a:member" >/dev/null || fail "no binding"
token() { k -n "$a" create token "$1"; }
chief=$(token chief) member=$(token member) own=$(token server)
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
store: {file: $work/telemetry.db}
EOF
"$nos" telemetry --config "$work/config.yaml" >"$work/server.log" 2>&1 &
server=$!
port=
for _ in $(seq 100); do
  port=$(sed -n 's/.*"telemetry is served".*port=//p' "$work/server.log")
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
expect 401 workloads 0123456789abcdef # of reporters
expect 200 workloads "$member"
grep -q '"namespace":"'"$a"'"' "$work/answer" || fail "a member sees nothing"
grep -q '"namespace":"'"$b"'"' "$work/answer" && fail "a member sees what is not theirs"
expect 403 "workloads/$b/p" "$member"
expect 200 "workloads/$b/p" "$chief"
expect 200 workloads "$chief"
grep -q '"namespace":"'"$b"'"' "$work/answer" || fail "who may list all pods does not see all"
expect 200 overview "$chief"
expect 403 overview "$member"
echo "ok"
