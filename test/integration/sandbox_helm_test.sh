#!/bin/bash
# Installs nos's own chart into `nos sandbox` with helm, upgrades it and removes it.
#
#   sandbox_helm_test.sh NOS
#
# helm comes from script/controlplane, which builds it with Go; exits with 77 (skipped) without it.
# The first failure ends the test.
set -u

nos=$1
root=$(cd "$(dirname "$0")/../.." && pwd)
helm=$("$root/script/controlplane" binary helm) || {
  echo "skipped: no helm, and it cannot be built (see above)"
  exit 77
}

work=$(mktemp -d)
"$nos" sandbox --workload none --nodes 2 --gpus 1 --speed 20 --dashboard-port 0 \
  --kubeconfig "$work/kubeconfig" > "$work/log" 2>&1 &
sandbox=$!
end() {
  kill "$sandbox" 2>/dev/null
  wait "$sandbox" 2>/dev/null
  rm -rf "$work"
}
trap end EXIT
for _ in $(seq 200); do
  [ -s "$work/kubeconfig" ] && break
  sleep 0.05
done

export KUBECONFIG=$work/kubeconfig HOME=$work
h() { timeout 300 "$helm" "$@" -n nos-system; }
port=$(grep -o '[0-9]*$' < <(grep server: "$work/kubeconfig"))
# get PATH: an object of the API server, as JSON.
get() {
  exec 3<> "/dev/tcp/127.0.0.1/$port" || return 1
  printf 'GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n\r\n' "$1" "$port" >&3
  cat <&3
  exec 3>&-
}
fail() {
  echo "FAILED: $1"
  echo "--- output"
  echo "$out"
  echo "--- the sandbox's log"
  tail -n 30 "$work/log"
  exit 1
}
# expect TEXT COMMAND...: the command succeeds and its output contains TEXT.
expect() {
  local text=$1
  shift
  out=$("$@" 2>&1) || fail "$* (exit $?)"
  grep -qE -- "$text" <<< "$out" || fail "$* : expected /$text/"
}

chart=$root/deploy/helm/nos
deployments=/apis/apps/v1/namespaces/nos-system/deployments
expect 'STATUS: deployed' h install nos "$chart" --create-namespace --wait --timeout 4m
expect '^nos[[:space:]]+nos-system[[:space:]]+1[[:space:]].*deployed' h list
expect '"availableReplicas":' get $deployments/nos-gpu-partitioner
expect '"desiredNumberScheduled":2' get /apis/apps/v1/namespaces/nos-system/daemonsets
expect 'STATUS: deployed' h upgrade nos "$chart" --reuse-values --set scheduler.replicaCount=1 --wait --timeout 4m
expect '"availableReplicas":1' get $deployments/nos-scheduler
expect '^2[[:space:]].*deployed' h history nos
expect 'REVISION: 2' h status nos
expect 'Rollback was a success' h rollback nos 1 --wait --timeout 4m
expect 'kind: Deployment' h get manifest nos
expect 'release "nos" uninstalled' h uninstall nos --wait --timeout 4m
expect '"items":\[\]' get $deployments
expect '"items":\[\]' get '/api/v1/namespaces/nos-system/pods'
# A quota that teams have written must survive the chart.
expect 'HTTP/1.1 200' get /apis/nos.nebuly.com/v1alpha1/elasticquotas
out=$(h list 2>&1)
grep -q '^nos[[:space:]]' <<< "$out" && fail "helm list after uninstall"
echo "passed with $("$helm" version --short)"
