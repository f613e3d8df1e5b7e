#!/bin/bash
# Drives `nos sandbox` with kubectl: workloads that make pods, rollouts, waits, logs.
#
#   sandbox_kubectl_test.sh NOS     (KUBECTL=/path/to/kubectl tests another version)
#
# Exits with 77 (skipped) without kubectl. The first failure ends the test.
set -u

nos=$1
kubectl=${KUBECTL:-$(command -v kubectl || true)}
if [ -z "$kubectl" ]; then
  echo "skipped: no kubectl on this machine (Debian: apt-get install kubernetes-client)"
  exit 77
fi

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
k() { timeout 120 "$kubectl" "$@"; }
steps=0
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
  steps=$((steps + 1))
}
# refuse TEXT COMMAND...: the command fails and its output contains TEXT.
refuse() {
  local text=$1
  shift
  out=$("$@" 2>&1) && fail "$* : expected a failure"
  grep -qE -- "$text" <<< "$out" || fail "$* : expected /$text/"
  steps=$((steps + 1))
}
from() { timeout 60 "$kubectl" "${@:2}" -f - <<< "$1"; }
# app KIND NAME MORE: an object of apps/v1 whose pods ask for a slice of a GPU; those of a DaemonSet do
# not, because the partitioner makes none for them.
app() {
  local resource=nvidia.com/mig-1g.5gb
  [ "$1" = DaemonSet ] && resource=cpu
  cat << END
apiVersion: apps/v1
kind: $1
metadata: {name: $2}
spec:
  selector: {matchLabels: {app: $2}}
  template:
    metadata: {labels: {app: $2}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - {name: c, image: registry.example/app:1, resources: {limits: {$resource: 1}}}
$3
END
}

# --- Deployment
expect 'deployment.apps/web created' from "$(app Deployment web '  replicas: 3')" apply
expect 'successfully rolled out' k rollout status deployment/web --timeout=100s
expect 'web +3/3 +3 +3 ' k get deployment web
expect 'web-[a-z0-9]+ +3 +3 +3 ' k get rs
expect 'condition met' k wait deployment/web --for=condition=Available --timeout=30s
expect 'Controlled By: +ReplicaSet/web-' k describe pods -l app=web
expect 'scaled' k scale deployment/web --replicas=1
expect 'successfully rolled out' k rollout status deployment/web --timeout=60s
expect 'image updated' k set image deployment/web c=registry.example/app:2
expect 'successfully rolled out' k rollout status deployment/web --timeout=100s
expect 'app:2' k get pods -l app=web -o 'jsonpath={.items[*].spec.containers[0].image}'
expect '2 +<none>' k rollout history deployment/web
expect 'rolled back' k rollout undo deployment/web
expect 'successfully rolled out' k rollout status deployment/web --timeout=100s
expect 'app:1' k get pods -l app=web -o 'jsonpath={.items[*].spec.containers[0].image}'
expect 'restarted' k rollout restart deployment/web
expect 'successfully rolled out' k rollout status deployment/web --timeout=100s

# --- logs and commands
pod=$(k get pods -l app=web -o 'jsonpath={.items[0].metadata.name}')
expect 'condition met' k wait "pod/$pod" --for=condition=Ready --timeout=60s
expect 'No program runs here' k logs "$pod"
expect 'device nvidia.com/mig-1g.5gb: ' k logs "$pod"
expect 'No program runs here' k logs deployment/web
expect '^started at ' k logs "$pod" --tail=1
refuse 'previous terminated container "c" in pod ".*" not found' k logs "$pod" --previous
refuse 'container x is not valid for pod' k logs "$pod" -c x
refuse 'no program runs in it, so there is nothing to execute a command in' k exec "$pod" -- ls
refuse 'no program runs in it, so there is nothing to attach to' k attach "$pod"

# --- deletion cascades
expect 'deleted' k delete deployment web --cascade=foreground --timeout=100s
expect 'No resources found' k get rs
expect '^$' k get pods -l app=web -o name

# --- Job
job() {
  cat << END
apiVersion: batch/v1
kind: Job
metadata: {name: $1}
spec:
  completions: 2
  template:
    metadata: {annotations: {sim.nos.nebuly.com/run-seconds: "$2"}}
    spec:
      restartPolicy: Never
      containers:
      - {name: c, image: registry.example/app:1, resources: {limits: {nvidia.com/mig-1g.5gb: 1}}}
END
}
expect 'job.batch/train created' from "$(job train 20)" apply
expect 'condition met' k wait pod -l job-name=train --for=condition=Ready --timeout=60s
# Follows the log until the pod has ended.
expect 'ended at .*: Completed, exit code 0' k logs -f "$(k get pods -l job-name=train -o name | head -n 1)"
expect 'condition met' k wait job/train --for=condition=complete --timeout=100s
expect 'train +Complete +2/2 +' k get jobs
expect 'No program runs here' k logs job/train
expect 'deleted' k delete job train --cascade=foreground --timeout=60s
expect '^$' k get pods -l job-name=train -o name
expect 'job.batch/quick created' k create job quick --image=registry.example/app:1
expect 'condition met' k wait job/quick --for=condition=complete --timeout=100s

# --- StatefulSet
expect 'statefulset.apps/db created' from "$(app StatefulSet db '  replicas: 2')" apply
expect 'roll(ing|ed)? ?(out|update)? ?(complete|2)|partitioned roll out complete|successfully' \
  k rollout status statefulset/db --timeout=100s
expect 'db +2/2' k get statefulset db
expect 'pod/db-1' k get pods -o name
expect 'scaled' k scale statefulset/db --replicas=1
expect '' k wait pod/db-1 --for=delete --timeout=60s
expect 'db-0' k get pods -l app=db -o name
expect 'deleted' k delete statefulset db --cascade=orphan
expect 'db-0' k get pods -l app=db -o name
expect 'deleted' k delete pod db-0 --timeout=60s

# --- DaemonSet
expect 'daemonset.apps/agent created' from "$(app DaemonSet agent '')" apply
expect 'successfully rolled out' k rollout status daemonset/agent --timeout=100s
expect 'agent +2 +2 +2 +2 +2 ' k get daemonset agent
expect 'image updated' k set image daemonset/agent c=registry.example/app:2
expect 'successfully rolled out' k rollout status daemonset/agent --timeout=100s
expect '2 ' k rollout history daemonset/agent
expect 'deleted' k delete node node-2
expect 'condition met' k wait daemonset/agent --for=jsonpath='{.status.desiredNumberScheduled}=1' --timeout=60s
expect 'deleted' k delete daemonset agent

# --- kinds that the sandbox only stores
expect 'created' k create quota q --hard=cpu=1,pods=3
expect '^q ' k get quota
expect 'Name: +q' k describe quota q
expect 'deleted' k delete quota q

echo "passed: $steps steps with $("$kubectl" version --client 2>/dev/null | head -1)"
