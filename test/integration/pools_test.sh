#!/bin/bash
# Node pools at the command line: the plan for unschedulable pods, the output for pools, a sandbox
# whose pools grow and shrink, and the autoscaler's configuration.
#
#   pools_test.sh NOS EXAMPLES
set -u

nos=$1
examples=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
# shellcheck source=test/integration/calls.sh
. "$(dirname "$0")/calls.sh"

# Unschedulable pods: which pods would have to move, and which new nodes would serve the rest.
gpu_node() {
  cat <<EOF
---
apiVersion: v1
kind: Node
metadata:
  name: $1
  labels: {pool: a100, nos.nebuly.com/gpu-partitioning: mig,
           nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB, nvidia.com/gpu.count: "1"}
  annotations: {nos.nebuly.com/status-layout-0: "$2"}
status: {allocatable: {cpu: "32", pods: "110"}}
EOF
}
ml_pod() {
  cat <<EOF
---
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: ml, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet,
           name: set, uid: "1", controller: true}]}
spec: {nodeName: "$3", containers: [{name: c, resources: {limits: {nvidia.com/mig-$2: "1"}}}]}
status: {phase: "$4"}
EOF
}
{
  gpu_node gpu-1 1g.5gb@0:used
  gpu_node gpu-2 3g.20gb@4:used
  ml_pod a 1g.5gb gpu-1 Running
  ml_pod b 3g.20gb gpu-2 Running
  ml_pod big 7g.40gb "" Pending
  ml_pod other 7g.80gb "" Pending
} >"$work/full.yaml"
cat >"$work/pool.yaml" <<'EOF'
apiVersion: nos.nebuly.com/v1alpha1
kind: NodePool
metadata: {name: a100}
spec:
  gpu: {model: A100-40GB, count: 1, partitioning: mig}
  cpu: 32
  memory: 100Gi
  max: 4
  price: "3.5"
  nodeSelector: {pool: a100}
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, namespace: infra, name: a100}
status: {wanted: 2, conditions: [{type: Ready, status: "True", reason: Ready}]}
EOF
call 0 "$nos" plan -f "$work/full.yaml" --moves 1
grep -qxF "  ml/big could run on gpu-1 if ml/a moved to gpu-2" "$work/out" || fail "the cheaper pod moves"
grep -q "note: the dump contains no PodDisruptionBudget" "$work/err" || fail "budgets are missed"
call 0 "$nos" plan -f "$work/full.yaml" --with-pools
grep -q "^New nodes: no node pools found; create a NodePool" "$work/out" || fail "says what to do"
call 0 "$nos" plan -f "$work/full.yaml" -f "$work/pool.yaml" --with-pools
grep -q "^New nodes: 1 of 2 pods without a place would run, for 3.5 an hour" "$work/out" ||
  fail "a new node is planned"
grep -qxF "a100  2      0       1    3.5      ml/big" "$work/out" || fail "its pool is told"
grep -qE "^ml/other +a100 +no pool has nodes for it; the nearest is a100: " "$work/out" ||
  fail "why the other waits on"
call 0 "$nos" plan -f "$work/full.yaml" -f "$work/pool.yaml" --moves 1 --with-pools -o json
python3 - "$work/out" <<'EOF' || fail "whom moves help needs no node"
import json, sys
plan = json.load(open(sys.argv[1]))
assert [relief["name"] for relief in plan["moves"]["reliefs"]] == ["big"]
assert plan["growth"]["served"] == 0
assert [left["name"] for left in plan["growth"]["leftOut"]] == ["other"]
EOF
call 0 "$nos" get pools -f "$work/full.yaml" -f "$work/pool.yaml"
grep -qxF "a100  1 x A100-40GB  mig   2      0       0    4    3.5         ready" "$work/out" ||
  fail "pools of a dump are shown"
sed 's/^metadata: .*/metadata: {name: bad}/; s/  max: 4/  max: 4\n  min: 9/' "$work/pool.yaml" >"$work/bad.yaml"
call 0 "$nos" get pools -f "$work/full.yaml" -f "$work/pool.yaml" -f "$work/bad.yaml"
grep -qxF "warning: NodePool bad: spec.max: must be at least min (9)" "$work/err" || fail "the bad pool is named"
grep -q "^a100 .* ready$" "$work/out" || fail "the others go on"
grep -qE "^bad .* invalid: spec.max: must be at least min \(9\)$" "$work/out" || fail "the bad pool has a row"
call 0 "$nos" get pools -f "$work/bad.yaml" -o json
grep -q '"state": "invalid"' "$work/out" || fail "programs see the bad pool, too"
refuse 2 "--moves" "$nos" plan -f "$work/full.yaml" --moves 0

# The pools of the examples: each is the one for a pod that selects its nodes.
{
  cat "$examples/clouds.yaml"
  for pool in aws-p4d:7g.40gb gcp-a2:3g.20gb azure-nc24:1g.10gb; do
    only="nodeSelector: {example.com/pool: ${pool%:*}}, tolerations: [{key: example.com/slices, operator: Exists}]"
    ml_pod "on-${pool%:*}" "${pool#*:}" "" Pending | sed "s|^spec: {nodeName: \"\"|spec: {$only|"
  done
} >"$work/clouds.yaml"
call 0 "$nos" get pools -f "$work/clouds.yaml" -o json
grep -q '"state": "invalid"' "$work/out" && fail "a pool of examples/clouds is invalid"
call 0 "$nos" plan -f "$work/clouds.yaml" --with-pools
for pool in aws-p4d gcp-a2 azure-nc24; do
  grep -qE "^$pool +0 +0 +1 +0 +ml/on-$pool$" "$work/out" || fail "no node of $pool for its pod"
done

# Pools grow for a burst, and shrink after it.
call 0 "$nos" sandbox --speed 1000 --for 700 --workload "$examples/bursty"
grep -q "infrastructure: a100-2 joins: ok" "$work/out" || fail "a pool grows for a burst"
grep -q "infrastructure: h100-1 joins: ok" "$work/out" || fail "a pool grows from zero"
grep -qE "^pool a100 +1 node +0 coming +0 going" "$work/out" || fail "a pool shrinks to its minimum"
grep -qE "^pool h100 +0 nodes +0 coming +0 going" "$work/out" || fail "a pool shrinks to zero"

# The autoscaler runs with its printed configuration plus an image for placeholders; placeholders
# end on a signal.
call 0 "$nos" autoscaler --print-config
cp "$work/out" "$work/autoscaler.yaml"
grep -q "^  utilizationThresholdPercent: 50$" "$work/out" || fail "the autoscaler's configuration"
call 0 "$nos" autoscaler --config "$work/autoscaler.yaml" --print-config
cmp -s "$work/out" "$work/autoscaler.yaml" || fail "what is printed is read"
refuse 2 "placeholders.image" "$nos" autoscaler --config "$work/autoscaler.yaml"
sed -i 's/utilizationThresholdPercent: 50/utilizationThresholdPercent: 101/' "$work/autoscaler.yaml"
refuse 2 "scaleDown.utilizationThresholdPercent" "$nos" autoscaler --config "$work/autoscaler.yaml"
"$nos" hold &
deadline=$((SECONDS + 20))
until grep -q '^SigBlk:.*4003$' "/proc/$!/status"; do # SIGTERM, SIGINT and SIGHUP are blocked, i.e. handled
  [ "$SECONDS" -lt "$deadline" ] || fail "nos hold does not begin"
done
kill -TERM $!
wait $! || fail "nos hold ends with $?"
