#!/bin/bash
# nos get, status and completion on a live cluster, with kubectl's flags.
#
#   get_test.sh NOS
set -u

nos=$1
work=$(mktemp -d)
sandbox=
end() {
  [ -n "$sandbox" ] && kill "$sandbox" 2>/dev/null && wait "$sandbox" 2>/dev/null
  rm -rf "$work"
}
trap end EXIT
export TMPDIR=$work

# shellcheck source=test/integration/calls.sh
. "$(dirname "$0")/calls.sh"

cat >"$work/pods.yaml" <<'YAML'
apiVersion: v1
kind: Namespace
metadata: {name: team-a}
---
apiVersion: v1
kind: Namespace
metadata: {name: team-b}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: team-a, labels: {app: web}}
spec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/mig-1g.5gb: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: batch, namespace: team-b, labels: {app: batch}}
spec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/mig-2g.10gb: "1"}}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: huge, namespace: team-b, labels: {app: batch}}
spec: {containers: [{name: c, image: i, resources: {limits: {nvidia.com/mig-7g.40gb: "9"}}}]}
YAML
"$nos" sandbox --nodes 2 --gpus 1 --workload "$work/pods.yaml" --dashboard-port 0 \
  --kubeconfig "$work/kubeconfig" >"$work/sandbox" 2>&1 &
sandbox=$!
export KUBECONFIG=$work/kubeconfig
# until_it TEXT COMMAND...: the command prints TEXT within half a minute.
until_it() {
  local text=$1
  shift
  for _ in $(seq 300); do
    "$@" >"$work/out" 2>"$work/err" && grep -qE -- "$text" "$work/out" && return
    sleep 0.1
  done
  fail "$* : no '$text'"
}
until_it '^team-a +web +Running +node-[12] ' "$nos" get pods
until_it '^team-b +batch +Running +node-[12] ' "$nos" get pods

# Namespaces, names, selectors, aliases.
call 0 "$nos" get pods -A --no-headers
[ "$(wc -l <"$work/out")" -eq 3 ] || fail "-A and --no-headers print three pods and nothing else"
for flags in "po -n team-a" "pod -l app=web" "pods web" "pods team-a/web" "pods -l app!=batch"; do
  # shellcheck disable=SC2086
  call 0 "$nos" get $flags -o name
  [ "$(cat "$work/out")" = pod/team-a/web ] || fail "nos get $flags selects one pod"
done
refuse 2 "'nobody' not found" "$nos" get pods nobody
refuse 2 "excludes" "$nos" get pods -A -n team-a
refuse 2 "selector" "$nos" get pods -l 'a in'
refuse 2 "cannot sort by 'beauty'; the keys are age, " "$nos" get pods --sort-by beauty
call 0 "$nos" get gpus node-2 -A -o name
[ "$(cat "$work/out")" = gpu/node-2/0 ] || fail "a GPU by its node"
call 0 "$nos" get gpu node-2/0 -o name
call 0 "$nos" get nodes -l nosuch=label
grep -q "no GPU found" "$work/err" || fail "no node has the label"

# Formats, totals, order.
call 0 "$nos" get pods --sort-by .metadata.name
grep -q '^3 pods: 1 Pending, 2 Running$' "$work/out" || fail "a total below the table"
[ "$(sed -n '2,4s/^[^ ]* *\([^ ]*\).*/\1/p' "$work/out" | tr '\n' ' ')" = "batch huge web " ] ||
  fail "sorted by name"
call 0 "$nos" get pods -o wide
grep -q 'SCHEDULER' "$work/out" || fail "wide has more columns"
call 0 "$nos" get pods web -o yaml
grep -qx -- '  name: web' "$work/out" || fail "YAML"
call 0 "$nos" get pods -o json
grep -q '"name": "web"' "$work/out" || fail "JSON"
call 0 "$nos" get nodes
grep -qE '^node-[12] +1 +A100-40GB +MIG +yes +0 ' "$work/out" || fail "a node"
grep -qE '^2 nodes with 2 GPUs: [01] GPUs? without pods, [0-9]+ % of the slots used$' "$work/out" ||
  fail "the total of nodes"
call 0 "$nos" get gpus
grep -qE '^2 GPUs on 2 nodes: ' "$work/out" || fail "the total of GPUs"

# One screen.
call 0 "$nos" status
grep -qE '^Pods +2 running, 1 pending \(longest ' "$work/out" || fail "pods in nos status"
grep -qE '^1 +team-b +9xmig-7g.40gb ' "$work/out" || fail "a pending pod in nos status"
call 0 "$nos" status -o json
grep -q '"pending": 1' "$work/out" || fail "nos status for programs"
# The cost of the last hour, from the telemetry server of the sandbox.
server=$(sed -n 's/^dashboard: //p' "$work/sandbox")
until_it '^Cost +[0-9.]+ USD in the last hour: [0-9]' "$nos" status --server "$server"
call 0 "$nos" status -o json --server "$server"
grep -q '"currency": "USD"' "$work/out" || fail "the cost for programs"
grep -q '"stories": ' "$work/out" || fail "the decisions for programs"
call 0 "$nos" status --server http://127.0.0.1:1
grep -q '^note: ignoring cost and decisions: ' "$work/err" || fail "a telemetry server that does not answer"
! grep -q '^Cost' "$work/out" || fail "a cost that nobody has said"

# Ages are those of the cluster, whose time runs ten times as fast here.
port=$(sed -n 's|.*server: http://127.0.0.1:||p' "$work/kubeconfig")
pods=http://127.0.0.1:$port/api/v1/namespaces/team-b/pods
sleep 3  # half a minute without a change of pods, from whose newest time an age could be taken
curl -sS -D "$work/head" -o "$work/huge" "$pods/huge"
grep -q '^Date: ' "$work/head" || fail "the API server has a clock"
date=$(date -d "$(sed -n 's/^Date: //p' "$work/head" | tr -d '\r')" +%s)
created=$(date -d "$(grep -o '"creationTimestamp":"[^"]*' "$work/huge" | head -1 | cut -d'"' -f4)" +%s)
call 0 "$nos" status -o json
longest=$(LC_ALL=C printf %.0f "$(sed -n 's/.*"longestSeconds": \([0-9.E+]*\).*/\1/p' "$work/out" | head -1)")
[ "$longest" -ge $((date - created)) ] || fail "huge waits for $((date - created)) s, not $longest"

# A pod is explained by its name; a running one is where it is.
call 0 "$nos" explain web
grep -qE '^team-a/web runs on node node-[12] .* since ' "$work/out" || fail "where a pod is"
grep -qE '^uses  *1g.5gb@[0-6] of GPU 0 \(A100-40GB\)$' "$work/out" || fail "what a pod uses"
call 0 "$nos" explain huge -n team-b
grep -q '^remedy' "$work/out" || fail "what would help a pending pod"
refuse 2 "pod team-b/web not found" "$nos" explain pod team-b/web

# Tables have nodes in the order of a reader, output for programs in that of the API server.
curl -sS -X POST -H 'Content-Type: application/json' -o "$work/created" \
  "http://127.0.0.1:$port/api/v1/nodes" -d '{"apiVersion": "v1", "kind": "Node", "metadata": {"name":
  "node-10", "labels": {"nos.nebuly.com/gpu-partitioning": "mig", "nvidia.com/gpu.count": "1",
  "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}}}'
for kind in nodes gpus; do
  call 0 "$nos" get "$kind" --no-headers
  [ "$(cut -d' ' -f1 "$work/out" | tr '\n' ' ')" = "node-1 node-2 node-10 " ] || fail "order of $kind"
done
call 0 "$nos" get nodes -o name
[ "$(tr '\n' ' ' <"$work/out")" = "node/node-1 node/node-10 node/node-2 " ] || fail "order by name"

# Names for completion.
"$nos" completion bash >"$work/completion"
offered=$(bash -c ". '$work/completion'; PATH=$(dirname "$nos"):\$PATH; COMP_WORDS=(nos explain '')
  COMP_CWORD=2; _nos; echo \" \${COMPREPLY[*]} \"")
[[ $offered == *" team-a/web "* ]] || fail "completion offers names of pods, not: $offered"

# Changes as they happen. The first lines are all objects, the next ones what has changed.
"$nos" get pods -n team-a -w >"$work/watched" 2>&1 &
watcher=$!
until_it '^team-a +web +Running ' cat "$work/watched"
curl -sS -X POST -H 'Content-Type: application/json' -o "$work/created" \
  "http://127.0.0.1:$port/api/v1/namespaces/team-a/pods" -d '{"apiVersion": "v1", "kind": "Pod",
  "metadata": {"name": "late"}, "spec": {"containers": [{"name": "c", "image": "i", "resources":
  {"limits": {"nvidia.com/mig-1g.5gb": "1"}}}]}}'
until_it '^team-a +late +Running ' cat "$work/watched"
[ "$(grep -c '^NAMESPACE' "$work/watched")" -eq 1 ] || fail "one header for all changes"
grep -q team-b "$work/watched" && fail "-n selects what is watched"
kill -INT "$watcher"
wait "$watcher" || fail "an interrupt ends -w with exit code 0"
echo "all is as expected"
