#!/usr/bin/env bash
# The chart's ServiceMonitors and its PrometheusRule: accepted by the real API server with the
# Prometheus operator's own schema, refused by it if wrong, and each selects its own Service.
#
#   service_monitor_test.sh SCRIPT     with NOS_CONTROLPLANE_DIR
#
# The CRDs stay after the test: removing a kind can block the garbage collector, which concurrent
# tests need.
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
chart=$(cd "$(dirname "$0")/../.." && pwd)/deploy/helm/nos
shared_plane
for kind in servicemonitors prometheusrules; do
  crd=$("$controlplane" crd "$kind")
  case $? in
    0) crds+=("$crd") ;;
    77) exit 77 ;;
    *) fail "no CRD of $kind" ;;
  esac
done
namespace=monitor-$$
work=$(mktemp -d)
end() {
  "$kubectl" delete namespace "$namespace" --wait=false >/dev/null 2>&1
  rm -rf "$work"
}
trap end EXIT
# render FILE ARGUMENTS...
render() {
  "$helm" template nos "$chart" -n "$namespace" --kube-version 1.28.0 \
    --set metrics.serviceMonitor.enabled=true --set metrics.prometheusRule.enabled=true \
    --set autoscaler.enabled=true --set autoscaler.placeholders.namespace="$namespace" "${@:2}" >"$work/$1" || fail "render"
}
dry_run() { k apply --server-side --dry-run=server --validate=strict -f "$work/$1"; }

refuse "no CRD 'nonsense'" "$controlplane" crd nonsense
for crd in "${crds[@]}"; do
  expect 'serverside-applied' k apply --server-side -f "$crd"
done
# A new CRD has null conditions, on which kubectl wait fails.
for kind in servicemonitors prometheusrules; do
  expect 'condition met' k wait --for=jsonpath='{.status.acceptedNames.plural}'=$kind \
    --timeout 60s crd/$kind.monitoring.coreos.com
  expect 'condition met' k wait --for=condition=Established --timeout 60s crd/$kind.monitoring.coreos.com
done
expect created k create namespace "$namespace"

# Objects that the API server accepts, and objects that it refuses.
render plain
expect "servicemonitor.monitoring.coreos.com/nos-mig-agent serverside-applied" dry_run plain
expect "prometheusrule.monitoring.coreos.com/nos serverside-applied" dry_run plain
render tuned --set metrics.serviceMonitor.interval=1m \
  --set metrics.serviceMonitor.labels.release=prometheus
expect 'serverside-applied' dry_run tuned
# They go to what the daemons serve: TLS and a token, unless metrics are open.
expect 'bearerTokenFile: ' cat "$work/plain"
expect 'insecureSkipVerify: true' cat "$work/plain"
render verified --set metrics.certificateSecret=c
expect 'serverside-applied' dry_run verified
expect_no insecureSkipVerify cat "$work/verified"
expect 'serverName: nos-metrics' cat "$work/verified"
render open --set metrics.secure=false
expect 'serverside-applied' dry_run open
expect_no 'bearerToken|scheme: https' cat "$work/open"
sed 's/interval:/often:/' "$work/plain" >"$work/unknown"
refuse 'often: field not declared in schema' dry_run unknown
sed 's/interval: 15s/interval: soon/' "$work/plain" >"$work/soon"
refuse 'interval.* should match' dry_run soon

# Each selects exactly the Service of its component, and an existing port of it.
awk -v RS='(^|\n)---\n' '/\nkind: Service(Monitor)?\n/ {print "---\n" $0}' "$work/plain" >"$work/services"
expect 'serverside-applied' k apply --server-side -f "$work/services"
for component in gpu-partitioner mig-agent scheduler operator autoscaler; do
  # shellcheck disable=SC2016 # a template of kubectl
  selector=$(k get servicemonitor "nos-$component" -n "$namespace" -o go-template='{{
    range $key, $value := .spec.selector.matchLabels}}{{$key}}={{$value}},{{end}}') ||
    fail "no ServiceMonitor nos-$component"
  port=$(k get servicemonitor "nos-$component" -n "$namespace" -o jsonpath='{.spec.endpoints[*].port}')
  out=$(k get service -n "$namespace" -l "${selector%,}" -o go-template='{{
    range .items}}{{.metadata.name}}{{range .spec.ports}} {{.name}}{{end}}{{"\n"}}{{end}}')
  [ "$out" = "nos-$component-metrics $port" ] || fail "the Service of nos-$component"
done
echo ok
