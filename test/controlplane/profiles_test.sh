#!/usr/bin/env bash
# Scheduler profiles mean the same as for kube-scheduler: from one configuration, both derive the
# same plugins at every extension point, in the same order and with the same weights.
#
#   profiles_test.sh SCRIPT BUILD_FOLDER     with NOS_CONTROLPLANE_DIR
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
build=$2
shared_plane
scheduler=$("$controlplane" binary kube-scheduler) || fail "no kube-scheduler"
work=$(mktemp -d)
trap 'kill "$pid" 2>/dev/null; rm -rf "$work"' EXIT
cat >"$work/profiles.yaml" <<Y
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: "$dir/kubeconfig"}
profiles:
- schedulerName: default-$$
- schedulerName: points-go-first-$$
  plugins:
    multiPoint:
      enabled: [{name: NodeAffinity, weight: 7}, {name: ImageLocality}]
      disabled: [{name: NodePorts}]
    score:
      enabled: [{name: ImageLocality, weight: 9}, {name: TaintToleration}]
      disabled: [{name: PodTopologySpread}]
    filter:
      enabled: [{name: VolumeZone}, {name: NodeName}, {name: NodePorts}]
      disabled: [{name: NodeUnschedulable}]
    preFilter: {enabled: [{name: InterPodAffinity}], disabled: [{name: "*"}]}
- schedulerName: few-$$
  plugins:
    multiPoint:
      disabled: [{name: "*"}]
      enabled:
      - {name: PrioritySort}
      - {name: NodeName}
      - {name: DefaultBinder}
      - {name: NodeAffinity, weight: 3}
      - {name: TaintToleration}
    filter: {enabled: [{name: NodePorts}, {name: NodeAffinity}], disabled: [{name: NodeAffinity}]}
- schedulerName: disabled-and-enabled-$$
  plugins:
    multiPoint:
      enabled: [{name: TaintToleration, weight: 4}, {name: NodeName}]
      disabled: [{name: TaintToleration}, {name: NodeName}, {name: DefaultPreemption}]
    score: {disabled: [{name: "*"}], enabled: [{name: NodeResourcesFit, weight: 5}]}
Y

# Lines "profile point plugin weight"; weights only for scores.
theirs() {
  grep -o 'Plugins={.*}' "$work/log" | awk '{
    n = split($0, part, /"[A-Za-z]+":{"Enabled":/); rest = $0
    for (i = 2; i <= n; ++i) {
      match(rest, /"[A-Za-z]+":{"Enabled":/); point = substr(rest, RSTART + 1, RLENGTH - 14)
      rest = substr(rest, RSTART + RLENGTH)
      list = part[i]; sub(/"Disabled".*/, "", list)
      while (match(list, /"Name":"[A-Za-z]+","Weight":[0-9]+/)) {
        split(substr(list, RSTART, RLENGTH), word, /[":,]+/); list = substr(list, RSTART + RLENGTH)
        print NR, tolower(point), word[3], point == "Score" ? word[5] : "-"
      }
    }
  }'
}
ours() {
  "$build/nos" scheduler --config "$work/profiles.yaml" --print-config 2>/dev/null | awk '
    /^- schedulerName/ {++profile}
    /^    [a-zA-Z]+:$/ {point = $1; sub(/:/, "", point)}
    /^      - name:/ && point == "score" {name = $3; next}
    /^      - name:/ {print profile, tolower(point), $3, "-"}
    /^        weight:/ {print profile, "score", name, $2}'
}
# Removes differences documented in docs/scheduler.md: preScore, DynamicResources beyond its gate,
# DefaultPreemption's own gate, a disabled volume score; and NodeName's pre-filter and our own
# plugins, which only nos has.
common() {
  grep -vE ' (prescore|multipoint) | DynamicResources | preenqueue DefaultPreemption | score VolumeBinding |prefilter NodeName | (Gpu(Packing|Partitioning)|CapacityScheduling) '
}

"$scheduler" --config "$work/profiles.yaml" -v=2 --secure-port=0 >"$work/log" 2>&1 &
pid=$!
for _ in $(seq 300); do
  [ "$(grep -c 'Plugins={' "$work/log")" = 4 ] && break
  kill -0 "$pid" 2>/dev/null || break
  sleep 0.1
done
kill "$pid"
out=$(tail -n 5 "$work/log")
theirs | common >"$work/theirs"
ours | common >"$work/ours"
[ "$(cut -d' ' -f1 "$work/theirs" | sort -u | wc -l)" = 4 ] || fail "kube-scheduler did not tell"
[ "$(wc -l <"$work/theirs")" -gt 60 ] || fail "kube-scheduler told little"
out=$(diff "$work/theirs" "$work/ours") || fail "not the same plugins (<: kube-scheduler's)"
echo ok
