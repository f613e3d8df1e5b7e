# A cluster whose nos is replaced while pods come and go: a control plane of its own, two nodes with two
# doubled A100-40GB each, and the checks that no pod lost its device. Sourced after check.sh by tests of
# upgrades; $2 is the build directory. NOS_UPGRADE_SEED chooses the pods (1), NOS_UPGRADE_PODS is the
# number of pods that have to start in each step (12).
# shellcheck shell=bash disable=SC2154
build=$2
here=$(dirname "${BASH_SOURCE[0]}")
seed=${NOS_UPGRADE_SEED:-1} pods_per_step=${NOS_UPGRADE_PODS:-12}
work=$(mktemp -d)
dir=$work/plane
nodes=(gpu-1 gpu-2)
team="team-a"
churn=''
export NOS_CONTROLPLANE_DIR=$dir
finish() {
  local code=$? name
  if [ "$code" -ne 0 ] && [ "$code" -ne 77 ]; then
    k get pods -A -o wide | grep -v kube-system
    k get nodes "${nodes[@]}" -o jsonpath='{range .items[*]}{.metadata.name}{"\n"}{.metadata.annotations}{"\n"}{.status.allocatable}{"\n"}{end}'
    k get events -A --sort-by=.lastTimestamp | tail -n 25
    tail -n 15 "$work"/*.log "$work/churn/log"
  fi
  [ -z "$churn" ] || kill "$churn" 2>/dev/null
  for name in "${!pid[@]}"; do kill -9 "${pid[$name]}" 2>/dev/null; done
  "$controlplane" down --dir "$dir" >/dev/null 2>&1
  [ -n "${NOS_KEEP:-}" ] || rm -rf "$work"
  exit "$code"
}
# shellcheck source=test/controlplane/daemons.sh
. "$here/daemons.sh"
trap finish EXIT
# The checks rely on this.
printf '%s\n' 'created A' 'held A x/p' 'destroyed A' 'freed A x/p' 'held A x/q' 'freed A x/q' 'created A' 'held A x/r' \
  'held A x/s' >"$work/wrong.json.journal"
[ "$(taken_devices wrong | wc -l)" -eq 3 ] || fail "the journal's check does not work: $(taken_devices wrong)"
rm "$work/wrong.json.journal"

# begin_churn PODS PROFILE:SCHEDULER...: pods come and go from now on (churn.sh).
begin_churn() {
  mkdir "$work/churn"
  : >"$work/churn/log"
  choose "${@:2}"
  "$here/churn.sh" "$kubectl" "$team" "$seed" "$1" "$work/churn" &
  churn=$!
  disown
}
# choose PROFILE:SCHEDULER...: for the pods that come from now on; the last one is given to one at a time.
choose() {
  printf '%s\n' "$*" >"$work/churn/choice.new"
  mv "$work/churn/choice.new" "$work/churn/choice"
}
count() { grep -c "^$1 " "$work/churn/log"; }
# churned [PODS]: waits until so many pods have started since the call; prints how many were refused.
churned() {
  local pods=${1:-$pods_per_step} began refused deadline=$((SECONDS + 240))
  began=$(count started) refused=$(count refused)
  until [ $(($(count started) - began)) -ge "$pods" ]; do
    [ "$SECONDS" -lt "$deadline" ] || fail "only $(($(count started) - began)) of $pods pods have started"
    no_pod_lost
    alive
    read -rt 0.1 <> <(:)
  done
  refused=$(($(count refused) - refused))
  say "  $pods pods have started, $refused were refused by the kubelet"
}
no_pod_lost() {
  out=$(grep '^lost ' "$work/churn/log") && fail "pods were lost"
  return 0
}
# end_churn: no pod goes any more, and all that wait are served. Pods may be so placed that the last one
# that asks for the largest slice has no room: then those that run go first.
end_churn() {
  touch "$work/churn/hold"
  local deadline=$((SECONDS + 60))
  until [ -z "$(waiting)" ] || [ "$SECONDS" -ge "$deadline" ]; do read -rt 0.2 <> <(:); done
  kill "$churn" && churn=''
  if [ -n "$(waiting)" ]; then
    k get pods -n "$team" -l churn=yes --field-selector status.phase=Running -o name |
      xargs -r "$kubectl" delete -n "$team" >/dev/null
    within 120 served
  fi
  no_pod_lost
}
waiting() { k get pods -n "$team" -l churn=yes --field-selector status.phase=Pending -o name; }
served() { [ -z "$(waiting)" ]; }

# identities: the pods that are to stay, with their UIDs and phases.
identities() {
  k get pods -A -l stays=yes -o jsonpath='{range .items[*]}{.metadata.namespace}/{.metadata.name} {.metadata.uid} {.status.phase} {.spec.nodeName}{"\n"}{end}'
}
# remember_pods: they are compared by pods_kept.
remember_pods() {
  identities >"$work/identities"
  [ "$(grep -c Running "$work/identities")" -eq "$1" ] || fail "$1 pods should run: $(cat "$work/identities")"
}
# pods_kept: the pods that were to stay are the same, and no device was taken from any pod.
pods_kept() {
  local node
  out=$(diff "$work/identities" <(identities)) || fail "pods that were to stay have changed"
  for node in "${nodes[@]}"; do
    out=$(taken_devices "$node")
    [ -z "$out" ] || fail "devices were taken from pods on $node"
    out=$(grep '^freed .*/stays-' "$work/$node.json.journal") && fail "pods that were to stay lost their device on $node"
  done
  # The journal has their devices, and slices that were destroyed, else it proves nothing.
  [ "$(cat "$work"/*.json.journal | grep -c '^held .*/stays-')" -eq "$(wc -l <"$work/identities")" ] || fail "devices of pods that stay"
  return 0
}
# stays NAMESPACE NAME PROFILE [SCHEDULER]: a pod that runs until the end of the test, as YAML.
stays() {
  team=$1 pod "stays-$2" 1 "$3" "${4:-default-scheduler}" | sed "s/^metadata: {/&labels: {stays: 'yes'}, /"
}

# configure FOLDER: writes the chart's configuration of all daemons, with ports, paths and Leases of this test.
configure() {
  local to=$1 node leases
  leases="  resourceNamespace: $system\n  leaseDuration: 4\n  renewDeadline: 2\n  retryPeriod: 0.5"
  mkdir -p "$to/scheduler"
  rest() { printf '\nhealth: {healthProbeBindAddress: "0"}\nmetrics: {bindAddress: "0"}\n'; }
  {
    k get configmap nos-gpu-partitioner -n "$system" -o jsonpath='{.data.config\.yaml}' |
      sed "s|^leaderElection:|&\n$leases|; s|/etc/nos-scheduler|$to/scheduler|; s|/etc/nos/known|$to/known|"
    rest
  } >"$to/partitioner.yaml"
  k get configmap nos-gpu-partitioner -n "$system" -o jsonpath='{.data.known_mig_geometries\.yaml}' \
    >"$to/known_mig_geometries.yaml"
  {
    k get configmap nos-scheduler -n "$system" -o jsonpath='{.data.scheduler_config\.yaml}' |
      sed "0,/^leaderElection:/s|^leaderElection:|&\n  resourceNamespace: $system|; s|/etc/nos/known|$to/known|"
    rest
  } >"$to/scheduler/scheduler_config.yaml"
  {
    k get configmap nos-operator -n "$system" -o jsonpath='{.data.config\.yaml}' |
      sed "s|^leaderElection:|&\n$leases|; s|/etc/nos/known|$to/known|; s|/var/lib/nos/telemetry|$work/spool-operator|
        s|^compositeNamespacesConfigMap: \([^/]*\)\$|compositeNamespacesConfigMap: $system/\1|
        s|^webhook:|&\n  bindAddress: 127.0.0.1:${hook_port:-0}\n  secretNamespace: $system|"
    rest
  } >"$to/operator.yaml"
  for node in "${nodes[@]}"; do
    agent_config "$node" | sed "s|/etc/nos/known|$to/known|; s|/var/lib/nos/telemetry|$work/spool-$node|" \
      >"$to/agent-$node.yaml"
  done
}
# begin NAME...: starts these daemons with the program $nos and the configuration in $settings.
begin() {
  local name
  for name in "$@"; do
    case $name in
      agent-*)
        agent_account "${name#*-}"
        start "$name" env NODE_NAME="${name#*-}" NOS_NVML_DOUBLE_STATE="$work/${name#*-}.json" \
          "$nos" agent --config "$settings/$name.yaml" --kubeconfig "$work/$name.kubeconfig"
        ;;
      scheduler-*)
        start "$name" "$nos" scheduler --config "$settings/scheduler/scheduler_config.yaml" \
          --kubeconfig "$work/scheduler.kubeconfig"
        ;;
      operator-*)
        start "$name" "$nos" operator ${hook_port:+--webhook} --config "$settings/operator.yaml" \
          --kubeconfig "$work/operator.kubeconfig"
        ;;
      telemetry-*) start "$name" "$nos" telemetry --sandbox --config "$work/telemetry.yaml" ;;
      *)
        start "$name" "$nos" "${name%-*}" --config "$settings/${name%-*}.yaml" --kubeconfig "$work/${name%-*}.kubeconfig"
        ;;
    esac
  done
}
# roll NAME...: replaces them one after the other, as a rollout does.
roll() {
  local name
  for name in "$@"; do
    stop_softly "$name"
    begin "$name"
  done
}
# Tests that source this start and stop them.
# shellcheck disable=SC2034
agents=("${nodes[@]/#/agent-}")
# shellcheck disable=SC2034
deciders=(scheduler-a scheduler-b partitioner-a partitioner-b operator-a)
# alive: no daemon has ended.
alive() {
  local name
  for name in "${!pid[@]}"; do kill -0 "${pid[$name]}" || fail "$name has ended: $(tail -n 5 "$work/$name.log")"; done
}

quota() { printf -- '\n---\napiVersion: nos.nebuly.com/v1alpha1\nkind: %s\nmetadata: {namespace: %s, name: %s}\nspec: %s\n' "$@"; }
# create_quotas: of team-a, and of team-b and team-c together.
create_quotas() {
  expect created from "$(quota ElasticQuota team-a q '{min: {nos.nebuly.com/gpu-memory: 40}, max: {nos.nebuly.com/gpu-memory: 130}}')$(
    quota CompositeElasticQuota team-b both '{namespaces: [team-b, team-c], min: {nos.nebuly.com/gpu-memory: 120}}')" k create
}
# quotas FIELDS: a line for each, with these fields, such as '{.metadata.uid} '.
quotas() { k get eq,ceq -A -o jsonpath='{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name} '"$1"'{.spec}{"\n"}{end}'; }
# quota_used KIND NAMESPACE NAME GB: its status has this memory, and says that it is in force.
quota_used() {
  [ "$(k get "$1" -n "$2" "$3" -o 'jsonpath={.status.used.nos\.nebuly\.com/gpu-memory} {.status.conditions[?(@.type=="InForce")].status}')" = "$4 True" ]
}
annotation() { k get node "$1" -o jsonpath="{.metadata.annotations.nos\.nebuly\.com/$2}"; }
# plan_done NODE FIRST: the newest plan is carried out, and its number is above FIRST.
plan_done() {
  local asked
  asked=$(annotation "$1" spec-partitioning-plan)
  [ "$asked" -gt "$2" ] && [ "$asked" = "$(annotation "$1" status-partitioning-plan)" ] &&
    annotation "$1" partitioning-result | grep -q "\"$asked\".*applied"
}
rolled_out() {
  local name
  for name in gpu-partitioner scheduler operator; do
    expect 'successfully rolled out' k rollout status "deployment/nos-$name" -n "$system" --timeout 240s
  done
}
create_teams() {
  local name
  for name in team-a team-b team-c "$@"; do
    expect created k create namespace "$name"
    expect 'condition met' k wait --for=create serviceaccount/default -n "$name" --timeout 60s
  done
}
