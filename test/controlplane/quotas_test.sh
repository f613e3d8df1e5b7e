#!/usr/bin/env bash
# Two teams share a cluster of the real API server, with nos scheduler and nos operator: one borrows
# the other's idle quota, and loses it when the other reclaims it; then a composite quota over both.
#
#   quotas_test.sh SCRIPT BUILD
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
build=$2
work=$(mktemp -d)
dir=$work/plane
export NOS_CONTROLPLANE_ONLY="etcd kube-apiserver kwok"
pids=()
end() {
  local code=$?
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
  if [ "$code" -ne 0 ] && [ "$code" -ne 77 ]; then tail -n 20 "$work"/*.log; fi
  "$controlplane" down --dir "$dir" >/dev/null 2>&1
  rm -rf "$work"
  exit "$code"
}
trap end EXIT

export NOS_FLAGS_KUBE_APISERVER="--disable-admission-plugins=ServiceAccount,TaintNodesByCondition,DefaultTolerationSeconds"
own_plane 0
use_plane

chart=$(dirname "$controlplane")/../deploy/helm/nos
"$helm" template nos "$chart" -n nos-system --kube-version 1.34.2 -s templates/crds.yaml >"$work/crds.yaml" || fail "no definitions"
expect created k create -f "$work/crds.yaml"
within 20 k get eq,ceq -A
for name in nos-system team-a team-b team-c; do expect created k create namespace "$name"; done

# node NAME: four cores, simulated by kwok.
node() {
  printf -- '\n---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, annotations: {kwok.x-k8s.io/node: fake}}\n' "$1"
  printf 'status: {allocatable: {cpu: "4", memory: 8Gi, pods: "20"}, capacity: {cpu: "4", memory: 8Gi, pods: "20"}}\n'
}
# quota KIND NAMESPACE NAME SPEC
quota() {
  printf -- '\n---\napiVersion: nos.nebuly.com/v1alpha1\nkind: %s\nmetadata: {namespace: %s, name: %s}\nspec: %s\n' "$@"
}
# pods NAMESPACE COUNT PREFIX: one core each.
pods() {
  for ((i = 1; i <= $2; ++i)); do
    printf -- '\n---\napiVersion: v1\nkind: Pod\nmetadata: {namespace: %s, name: %s%d}\nspec:\n' "$1" "$3" "$i"
    printf '  schedulerName: nos-scheduler\n  terminationGracePeriodSeconds: 1\n'
    printf '  containers: [{name: main, image: any, resources: {requests: {cpu: "1"}}}]\n'
  done
}
# bound NAMESPACE COUNT: exactly COUNT of its pods have a node.
bound() {
  [ "$(k get pods -n "$1" -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | grep -c .)" -eq "$2" ]
}
# labelled NAMESPACE LABEL COUNT
labelled() { [ "$(k get pods -n "$1" -l "nos.nebuly.com/capacity=$2" -o name | grep -c .)" -eq "$3" ]; }
status() { [ "$(k get "$2" "$3" -n "$4" -o "jsonpath={.status.$5}")" = "$1" ]; }
# evicted NAMESPACE COUNT: exactly COUNT Events report an eviction there.
evicted() {
  [ "$(k get events -n "$1" -o 'jsonpath={range .items[*]}{.reason}{"\n"}{end}' | grep -cx Preempted)" -eq "$2" ]
}

expect created from "$(node one)$(node two)" k create
expect created from "$(quota ElasticQuota team-a q '{min: {cpu: 4}}')$(
  quota ElasticQuota team-b q '{min: {cpu: 4}}')" k create
minimal_scheduler_config >"$work/scheduler.yaml"
cat >"$work/operator.yaml" <<Y
apiVersion: config.nos.nebuly.com/v1alpha1
kind: OperatorConfig
leaderElection: {leaderElect: false}
health: {healthProbeBindAddress: "127.0.0.1:0"}
metrics: {bindAddress: "0"}
Y
scheduler() {
  "$build/nos" scheduler --config "$work/scheduler.yaml" >>"$work/scheduler.log" 2>&1 &
  scheduler=$!
  pids+=("$scheduler")
  disown
}
scheduler
"$build/nos" operator --config "$work/operator.yaml" >"$work/operator.log" 2>&1 &
pids+=($!)
disown

say "team-a borrows all that team-b leaves idle"
expect created from "$(pods team-a 9 p)" k create
within 30 bound team-a 8
within 20 labelled team-a in-quota 4
within 20 labelled team-a over-quota 4
within 20 status '{"cpu":"4"}' eq q team-a borrowed
within 20 status '{"cpu":"4"}' eq q team-b lent
expect '4 .*team-b/q 4' "$build/nos" get quotas

say "team-b gets its own back, and nobody goes for nothing"
expect created from "$(pods team-b 3 p)" k create
within 60 bound team-b 3
within 30 bound team-a 5
within 20 labelled team-b in-quota 3
within 20 labelled team-a over-quota 1
within 20 evicted team-a 3

say "the scheduler is killed, and the next one goes on"
kill -9 "$scheduler"
expect created from "$(pods team-b 2 late)" k create
scheduler
within 60 bound team-b 4
within 30 bound team-a 4
expect 'team-b/q' "$build/nos" explain pod team-b/late2
within 20 evicted team-a 4

say "a composite quota counts for both of its namespaces"
expect deleted k delete pods --all -n team-a --wait=false
expect deleted k delete pods --all -n team-b --wait=false
within 30 bound team-b 0
expect deleted k delete eq q -n team-a
expect deleted k delete eq q -n team-b
expect created from "$(quota CompositeElasticQuota team-a both '{namespaces: [team-a, team-b], min: {cpu: 3}}')$(
  quota ElasticQuota team-c q '{min: {cpu: 5}, max: {cpu: 5}}')" k create
expect created from "$(pods team-a 2 q)$(pods team-b 6 q)" k create
within 30 bound team-b 6
within 30 bound team-a 2
within 20 status '{"cpu":"8"}' ceq both team-a used
expect created from "$(pods team-c 6 q)" k create
within 60 bound team-c 5
within 20 status '{"cpu":"3"}' ceq both team-a used
within 20 labelled team-c in-quota 5
say ok
