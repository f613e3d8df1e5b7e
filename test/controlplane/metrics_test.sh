#!/usr/bin/env bash
# Metrics of a daemon on the real API server: served over TLS to accounts with the chart's role alone, with the rights
# that the chart gives the daemon to ask. Probes need none.
#
#   metrics_test.sh SCRIPT BUILD_FOLDER
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
build=$2
shared_plane
work=$(mktemp -d)
system=nos-metrics-$$ release=nos-metrics-$$
chart() {
  "$helm" template "$release" "$(dirname "$controlplane")/../deploy/helm/nos" -n "$system" --kube-version 1.34 \
    --set operator.crds.enabled=false -s templates/metrics-access.yaml -s templates/partitioner-rbac.yaml
}
daemon=
end() {
  local code=$?
  [ -z "$daemon" ] || kill "$daemon" 2>/dev/null
  [ "$code" -eq 0 ] || tail -n 20 "$work/log"
  k delete -f "$work/chart.yaml" --ignore-not-found >/dev/null 2>&1
  k delete clusterrolebinding "$release-scraper" --ignore-not-found >/dev/null 2>&1
  k delete namespace "$system" --wait=false >/dev/null 2>&1
  rm -rf "$work"
  exit "$code"
}
trap end EXIT

expect created k create namespace "$system"
chart >"$work/chart.yaml"
expect created k create -f "$work/chart.yaml"
for account in visitor scraper; do expect created k create serviceaccount "$account" -n "$system"; done
expect created k create clusterrolebinding "$release-scraper" --clusterrole "$release-metrics-reader" \
  --serviceaccount "$system:scraper"
expect kubeconfig "$controlplane" kubeconfig "$release" --namespace "$system" \
  --serviceaccount "$release-gpu-partitioner"

port=$((20000 + RANDOM % 10000))
cat >"$work/config.yaml" <<Y
apiVersion: config.nos.nebuly.com/v1alpha1
kind: GpuPartitionerConfig
health: {healthProbeBindAddress: "127.0.0.1:$((port + 1))"}
metrics: {bindAddress: "127.0.0.1:$port"}
leaderElection: {leaderElect: false}
Y
# serve FLAG...: starts the daemon, in place of the one before.
serve() {
  if [ -n "$daemon" ]; then
    kill "$daemon"
    tail --pid="$daemon" -f /dev/null
  fi
  "$build/nos" partitioner --config "$work/config.yaml" --kubeconfig "$dir/$release.kubeconfig" "$@" >>"$work/log" 2>&1 &
  daemon=$!
  within 60 curl -fsS "http://127.0.0.1:$((port + 1))/readyz"
}
url=https://127.0.0.1:$port
# as ACCOUNT PATH: the HTTP code of an answer to its token.
as() {
  curl -sk -o /dev/null -w '%{http_code}\n' -H "Authorization: Bearer $(k create token "$1" -n "$system")" "$url/$2"
}
anybody() { curl -sk -o /dev/null -w '%{http_code}\n' "$@"; }

serve --secure-metrics
expect '^401$' anybody "$url/metrics"
expect '^401$' anybody -H 'Authorization: Bearer forged' "$url/metrics"
expect '^403$' as visitor metrics
expect '^200$' as scraper metrics
expect '^nos_build_info' curl -fsSk -H "Authorization: Bearer $(k create token scraper -n "$system")" "$url/metrics"
refuse . curl -fsS "http://127.0.0.1:$port/metrics"
# Probes are for kubelets, which have no token; without TLS they show no metrics.
expect '^200$' anybody "http://127.0.0.1:$((port + 1))/healthz"
expect '^403$' anybody "http://127.0.0.1:$((port + 1))/metrics"
if grep -i forbidden "$work/log"; then fail "a permission is missing"; fi

# With a certificate that others issue, clients verify it.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=nos-metrics \
  -addext subjectAltName=DNS:nos-metrics -keyout "$work/tls.key" -out "$work/tls.crt" 2>/dev/null || fail "no certificate"
serve --secure-metrics --metrics-cert-file "$work/tls.crt" --metrics-key-file "$work/tls.key"
expect '^nos_build_info' curl -fsS --cacert "$work/tls.crt" --resolve "nos-metrics:$port:127.0.0.1" \
  -H "Authorization: Bearer $(k create token scraper -n "$system")" "https://nos-metrics:$port/metrics"
refuse . curl -fsS "$url/metrics"

# Without the flag nothing is asked.
serve
expect '^nos_build_info' curl -fsS "http://127.0.0.1:$port/metrics"
echo ok
