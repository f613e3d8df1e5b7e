# A node of the control plane with a real kubelet, containerd and runc, for a test. Sourced with the
# path of script/controlplane in $1, after check.sh, with NOS_CONTROLPLANE_DIR; $node, $team and
# $release are names that belong to the test. Skips the test where there can be no such node.
# shellcheck shell=bash disable=SC2034,SC2154
here=$(dirname "$(readlink -f "$0")")
shared_plane
work=$(mktemp -d)
export NOS_NVML_DOUBLE_STATE=$work/gpus.json

declare -A pid
finish() {
  local code=$?
  k delete namespace "$team" --wait=false >/dev/null 2>&1
  k delete -f "$work/roles.yaml" --ignore-not-found >/dev/null 2>&1
  kill "${pid[@]}" 2>/dev/null
  wait "${pid[@]}" 2>/dev/null
  timeout 20 tail -s 0.1 -f /dev/null "${pid[@]/#/--pid=}" # orphaned processes
  if [ "$code" -ne 0 ] && [ "$code" -ne 77 ]; then tail -n 15 "$work"/*.log "$work"/node/*.log; fi
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

# join_node GPUS: starts a node that ends with this test, even if the test is killed.
join_node() {
  local code
  setpriv --pdeathsig TERM "$here/kubelet.sh" "$node" "$work/node" >>"$work/kubelet.sh.log" 2>&1 &
  pid[kubelet]=$!
  until k get node "$node" >/dev/null 2>&1; do
    if ! kill -0 "${pid[kubelet]}" 2>/dev/null; then
      wait "${pid[kubelet]}"
      code=$?
      cat "$work/kubelet.sh.log"
      exit "$code"
    fi
    sleep 0.2
  done
  expect 'condition met' k wait --for=condition=Ready "node/$node" --timeout 120s
  expect labeled k label node "$node" nos.nebuly.com/gpu-partitioning=mig \
    nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB "nvidia.com/gpu.count=$1"
}
# leave_node: ends it, and what it has below $work/node.
leave_node() {
  kill "${pid[kubelet]}"
  wait "${pid[kubelet]}" 2>/dev/null
  unset "pid[kubelet]"
  rm -rf "$work/node"
}
# permit_agent: $work/agent.kubeconfig, with the rights that the chart gives the agent.
chart_options=()  # of helm, for other values
permit_agent() {
  expect created k create namespace "$team"
  expect 'condition met' k wait --for=create serviceaccount/default -n "$team" --timeout 60s
  "$helm" template "$release" "$(dirname "$controlplane")/../deploy/helm/nos" -n "$team" --kube-version 1.34 "${chart_options[@]}" |
    awk 'BEGIN {RS = "---\n"} /mig-agent/ && /\nkind: (ServiceAccount|ClusterRole|ClusterRoleBinding|ValidatingAdmissionPolicy|ValidatingAdmissionPolicyBinding)\n/ {printf "---\n%s", $0}' \
      >"$work/roles.yaml"
  expect 'clusterrole.*created' k create -f "$work/roles.yaml"
  authenticate_agent
}
# authenticate_agent: $work/agent.kubeconfig, for the node that is there now.
authenticate_agent() {
  expect kubeconfig "$controlplane" kubeconfig "$node-agent" --namespace "$team" \
    --serviceaccount "$release-mig-agent" --node "$node"
  mv "$dir/$node-agent.kubeconfig" "$work/agent.kubeconfig"
}
# plan ID LAYOUT: written like the partitioner's.
plan() {
  expect annotated k annotate node "$node" --overwrite "nos.nebuly.com/spec-partitioning-plan=$1" \
    "nos.nebuly.com/spec-layout-0=$2"
}
# shows PATH VALUE [OBJECT]: waits until the object (default: the node) has this value.
shows() {
  expect 'condition met' k wait "${3:-node/$node}" -n "$team" --for=jsonpath="{$1}=$2" --timeout 60s
}
allocatable() { shows ".status.allocatable.nvidia\.com/mig-${1/./\\.}" "$2"; }
running() { shows .status.phase Running "pod/$1"; }
# sleeper_pod NAME RESOURCE [VARIABLES [SCHEDULER]]: creates a pod in $team that asks for one RESOURCE.
# VARIABLES: entries of its container's environment, in YAML.
sleeper_pod() {
  expect created from "
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: $team}
spec:
  schedulerName: ${4:-default-scheduler}
  hostNetwork: true
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: docker.io/nos-test/sleeper:1
    imagePullPolicy: Never
    env: [${3:-}]
    resources: {limits: {$2: 1}}
" k create
}
