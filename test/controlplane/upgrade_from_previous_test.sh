#!/usr/bin/env bash
# From an earlier version of nos to this one and back, while pods come and go: the chart first, then agents
# before the others, the others before agents, all; a rollback of chart and programs; and all at once with
# kill -9. Beside that, the telemetry database is opened by both versions in turn, and receives records
# of both. No pod that runs ends, no device is taken from a pod, all that wait are served, quotas, node
# pools and the webhook's certificate stay, and the database loses no pod.
#
#   upgrade_from_previous_test.sh SCRIPT BUILD
#
# $NOS_PREVIOUS is a folder with the earlier program `nos` and its `chart`; else script/previous names it.
# shellcheck disable=SC2034
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
root=$(cd "$(dirname "$0")/../.." && pwd)
previous=${NOS_PREVIOUS:-$("$root/script/previous" --path 2>&1)}
if [ ! -x "$previous/nos" ]; then
  echo "skipped: $previous"
  exit 77
fi
# shellcheck source=test/controlplane/upgrade.sh
. "$(dirname "$0")/upgrade.sh"
# shellcheck source=test/controlplane/components.sh
port=$(. "$here/components.sh" && free_port) hook_port=$(. "$here/components.sh" && free_port)
system="nos-system"
old=$previous/nos new=$build/nos
telemetry=gpuPartitioner.migAgent.telemetry
own_plane 2
use_plane

# with WORD: the next daemons are of this version, with the configuration of its chart, as pods of a rollout.
with() { nos=${!1} settings=$work/settings-$1; }
# settings_of WORD: the chart that is installed now is that of this version.
settings_of() {
  rolled_out
  configure "$work/settings-$1"
}

# known_pods: names of the pods that the telemetry server knows.
known_pods() {
  local page after='' base="http://127.0.0.1:$port/api/v1/history?cluster=prod&kind=pod&limit=10000"
  while :; do
    page=$(curl -sSf "$base${after:+&after=$after}") || return
    grep -oE '"name":"churn-[0-9]+"' <<<"$page"
    after=$(grep -oE '"next":"[^"]*"' <<<"$page" | sed 's/.*:"//; s/"//')
    [ -n "$after" ] || break
  done | sort -u
}
# database_of WORD: this version opens the database of the other; everything it had is still there.
serves() { curl -sSf "http://127.0.0.1:$port/api/v1/session" | grep -q '"prod"'; }
database_of() {
  local missing
  known_pods >"$work/known"
  with "$1"
  roll telemetry-a
  within 30 serves
  missing=$(comm -23 "$work/known" <(known_pods))
  [ -z "$missing" ] || fail "the database lost pods with the $1 version: $missing"
  say "  the $1 version serves the database: $(wc -l <"$work/known") pods"
}
# No component knows pods that came and went while no operator led.
mark() { marked=$(wc -l <"$work/churn/log"); }
# reported: all pods that came and started since the mark are in the database.
reported() {
  awk -v marked="$marked" '$1 == "created" && NR > marked {came[$2] = 1}
    $1 == "started" && came[$2] {print "\"name\":\"" $2 "\""}' "$work/churn/log" | sort -u >"$work/came"
  [ -z "$(comm -23 "$work/came" <(known_pods))" ]
}

# The certificate of the webhook is one for all versions, and API servers trust it after each upgrade. (They
# cannot reach the Service here: they ignore that, as failurePolicy says.)
certificate_there() { k get secret nos-operator-webhook -n $system; }
certificate() { k get secret nos-operator-webhook -n $system -o 'jsonpath={.data}' | sha256sum; }
trusted() {
  local authority
  authority=$(k get validatingwebhookconfiguration nos-operator -o 'jsonpath={.webhooks[0].clientConfig.caBundle}' | base64 -d)
  openssl s_client -connect "127.0.0.1:$hook_port" -servername "nos-operator-webhook.$system.svc" -verify_return_error \
    -CAfile <(printf '%s\n' "$authority") </dev/null
}
# step TEXT: pods come and go meanwhile; then what was to stay is there.
step() {
  say "$1"
  churned "$pods_per_step"
  pods_kept
  within 30 trusted
  [ "$(certificate)" = "$certificate_before" ] || fail "the webhook has another certificate"
  out=$(diff <(printf '%s\n' "$objects_before") <(objects)) || fail "quotas or pools have changed"
}
# objects: those of the chart's CRDs, as users have written them.
objects() {
  quotas '{.metadata.uid} '
  k get nodepools.nos.nebuly.com -o jsonpath='{range .items[*]}{.metadata.uid} {.metadata.name} {.spec}{"\n"}{end}'
}

say "the earlier version: $(basename "$previous")"
expect 'STATUS: deployed' "$helm" install nos "$previous/chart" -n $system --create-namespace \
  --set autoscaler.crds.enabled=true --set gpuPartitioner.config.planBudgetSeconds=4 --set $telemetry.endpoint="http://127.0.0.1:$port" --set $telemetry.cluster=prod
settings_of old
service_accounts gpu-partitioner:partitioner scheduler:scheduler operator:operator
create_teams team-d
create_quotas
gpus=('{"model": "A100-40GB"}' '{"model": "A100-40GB"}')
for node in "${nodes[@]}"; do
  hardware "$node"
  start_node "$node"
done
within 30 k get node "${nodes[@]}"
expect 'condition met' k wait --for=condition=Ready "${nodes[@]/#/node/}" --timeout 30s
cat >"$work/telemetry.yaml" <<Y
apiVersion: config.nos.nebuly.com/v1alpha1
kind: TelemetryConfig
listen: {bindAddress: "127.0.0.1:$port"}
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
store: {file: $work/telemetry.db}
Y
with old
begin telemetry-a "${agents[@]}" "${deciders[@]}"
expect created from "$(stays team-a train 3g.20gb nos-scheduler)$(stays team-a infer 2g.10gb)$(
  stays team-a note 1g.5gb nos-scheduler)$(stays team-b small 1g.5gb nos-scheduler)$(stays team-b wide 4g.20gb)" k create
for namespace in team-a team-b; do
  expect 'condition met' k wait --for=jsonpath='{.status.phase}'=Running -n $namespace pod -l stays=yes --timeout 60s
done
remember_pods 5
expect created from "
apiVersion: nos.nebuly.com/v1alpha1
kind: NodePool
metadata: {name: a100}
spec:
  gpu: {model: A100-40GB, count: 2, partitioning: mig}
  cpu: 96
  memory: 512Gi
  min: 0
  max: 4
  price: '20.5'
  nodeSelector: {pool: a100}
  scaleTargetRef: {apiVersion: cluster.x-k8s.io/v1beta1, kind: MachineDeployment, namespace: machines, name: a100}
" k create
objects_before=$(objects)
within 30 certificate_there
certificate_before=$(certificate)
begin_churn 5 1g.5gb:nos-scheduler 2g.10gb:default-scheduler 3g.20gb:nos-scheduler
step "all of the earlier version"

expect 'STATUS: deployed' "$helm" upgrade nos "$root/deploy/helm/nos" -n $system --reuse-values
settings_of new
step "the chart's objects of this version, with its roles and CRDs; the earlier programs"
database_of new
with new
roll "${agents[@]}"
step "agents of this version, the others of the earlier one"
with old
roll "${agents[@]}"
with new
roll "${deciders[@]}"
step "agents of the earlier version, the others of this one"
database_of old
with new
roll "${agents[@]}"
mark
step "all of this version, and the telemetry server of the earlier one"
within 60 reported
say "  it has all $(wc -l <"$work/came") pods that came meanwhile"
expect 'Rollback was a success' "$helm" rollback nos 1 -n $system
rolled_out
nos=$new settings=$work/settings-old
roll "${deciders[@]}" "${agents[@]}"
step "the earlier chart's objects after a rollback, the programs of this version with its configuration"
with old
roll "${deciders[@]}" "${agents[@]}"
step "all of the earlier version again"
database_of new
expect 'STATUS: deployed' "$helm" upgrade nos "$root/deploy/helm/nos" -n $system --reset-then-reuse-values
settings_of new
with new
for name in "${agents[@]}" "${deciders[@]}" telemetry-a; do kill_hard "$name"; done
for name in "${agents[@]}" "${deciders[@]}"; do mv "$work/$name.log" "$work/$name.log.earlier"; done
begin telemetry-a "${agents[@]}" "${deciders[@]}"
step "all of this version at once, after kill -9"
mark
step "the same, an operator leads again"

say "all that wait are served, and what ran still runs"
end_churn
alive
pods_kept
grep -q ^destroyed "$work"/*.json.journal || fail "no slice was destroyed, so nothing was tried"
within 30 quota_used ceq team-b both 25
for node in "${nodes[@]}"; do within 60 plan_done "$node" 0; done
within 60 reported
if grep -l forbidden "$work"/*.log; then fail "a permission is missing"; fi
say ok
