#!/usr/bin/env bash
# Containers get the MIG instance of their ResourceClaim: nos scheduler allocates it, nos agent creates it
# and prepares it for a real kubelet, containerd and runc, on a control plane of its own. The driver's side
# is doubled as in handover_test.sh.
#
#   dra_driver_test.sh SCRIPT BUILD_FOLDER
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
build=$2 doubles=$(readlink -f "$(dirname "$0")/../doubles") node=dra-$$ team=team-dra-$$ release=nos-dra
plane=$(mktemp -d)
export NOS_CONTROLPLANE_DIR=$plane/plane NOS_CONTROLPLANE_ONLY="etcd kube-apiserver kube-controller-manager kube-scheduler"
minor=${NOS_KUBERNETES:-1.34}
minor=${minor#1.}
if [ "$minor" -lt 34 ]; then
  echo "skipped: Kubernetes 1.$minor does not serve resource.k8s.io/v1"
  exit 77
elif [ "$minor" -lt 36 ]; then # on by default from 1.36 on
  export NOS_FLAGS_KUBE_APISERVER="--feature-gates=DRAPartitionableDevices=true,DRADeviceBindingConditions=true,DRAResourceClaimDeviceStatus=true,DRAExtendedResource=true,ResourceHealthStatus=true,DRAConsumableCapacity=true"
  export NOS_FLAGS_KUBE_CONTROLLER_MANAGER="--feature-gates=DRAExtendedResource=true"
  export NOS_NODE_GATES="DRAExtendedResource: true, ResourceHealthStatus: true, DRAConsumableCapacity: true"
fi
trap 'rm -rf "$plane"' EXIT
own_plane 0 "$NOS_CONTROLPLANE_DIR" "$plane/up"
# shellcheck source=test/controlplane/real_node.sh
. "$(dirname "$0")/real_node.sh"
end() {
  local code=$?
  "$controlplane" down --dir "$NOS_CONTROLPLANE_DIR" >/dev/null 2>&1
  rm -rf "$plane"
  return "$code"
}
trap 'end; finish' EXIT
# shellcheck source=test/controlplane/driver_of_node.sh
. "$(dirname "$0")/driver_of_node.sh"
plugins=$work/node/kubelet/plugins cdi=$work/node/cdi
metadata=/var/run/kubernetes.io/dra-device-attributes/resourceclaimtemplates/gpu/slice/gpu.nos.nebuly.com-metadata.json

start_agent() {
  agent_here cdi "resourceClaims: {enabled: true, extendedResources: always, shares: true, pluginsFolder: $plugins, registryFolder: ${plugins}_registry, cdiFolder: $cdi}
mps: {enabled: true, program: $doubles/mps/nvidia-cuda-mps-control, folder: $work/mps, logFolder: $work/mps-log}"
}
start_scheduler() {
  minimal_scheduler_config >"$work/scheduler.yaml"
  "$helm" template nos "$(dirname "$controlplane")/../deploy/helm/nos" -n "$team" --kube-version 1.34 \
    --set scheduler.enabled=true -s templates/scheduler-rbac.yaml >"$work/scheduler-roles.yaml" || fail "no roles"
  expect created k create -f "$work/scheduler-roles.yaml"
  expect kubeconfig "$controlplane" kubeconfig scheduler --namespace "$team" --serviceaccount nos-scheduler
  "$build/nos" scheduler --kubeconfig "$dir/scheduler.kubeconfig" --config "$work/scheduler.yaml" >>"$work/scheduler.log" 2>&1 &
  pid[scheduler]=$!
  disown
}
# claim_pod NAME PROFILE: a pod with a claim from a template of its own, which prints its devices.
claim_pod() { pod_with "$1" mig "selectors: [{cel: {expression: \"device.attributes['gpu.nos.nebuly.com'].profile == '$2'\"}}]"; }
# share_pod NAME MEMORY [EXPRESSION]: the same with memory that MPS limits, of a device that the expression selects.
share_pod() {
  pod_with "$1" mps "capacity: {requests: {memory: $2}}
          selectors: [{cel: {expression: \"${3:-true}\"}}]"
}
# pod_with NAME CLASS REQUEST
pod_with() {
  local numbers
  numbers=$(seq -f "$tty:%g" 18 62 | tr '\n' ' ')
  expect created from "
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: $1, namespace: $team}
spec:
  spec:
    devices:
      requests:
      - name: slice
        exactly:
          deviceClassName: $2.nos.nebuly.com
          $3
---
apiVersion: v1
kind: Pod
metadata: {name: $1, namespace: $team}
spec:
  schedulerName: nos-scheduler
  hostNetwork: true
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  terminationGracePeriodSeconds: 1
  resourceClaims: [{name: gpu, resourceClaimTemplateName: $1}]
  containers:
  - name: main
    image: docker.io/nos-test/sleeper:1
    imagePullPolicy: Never
    env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}, {name: PROBE, value: '$numbers'}, {name: METADATA, value: $metadata}]
    resources: {claims: [{name: gpu}]}
" k create
}
gone() { expect deleted k delete pod "$1" -n "$team" --timeout 60s; }
# start_of NAME: the start of the device that the pod's claim has.
start_of() { device_of "$1" | grep -oE '[0-9]+$'; }
device_of() {
  k get resourceclaims -n "$team" -o json |
    jq -r --arg pod "$1" '.items[] | select(.metadata.ownerReferences[0].name == $pod) | .status.allocation.devices.results[0].device'
}
log_of() { cat "$work/node/logs/${team}_$1"_*/main/*.log | cut -d' ' -f4-; }
instances() { jq -c '[.gpus[0].instances[] | "\(.profile)@\(.start)"] | sort' "$work/gpus.json"; }
# holders: which pod has which instance, as measurements name it.
holders() {
  nsenter --target "${pid[agent]}" --mount "$build/nos" agent --once --print -o json --config "$work/agent.yaml" --node "$node" |
    jq -r '.readings.gpus[0].instances[] | "\(.profile)@\(.start) \(.holders | map(.pod) | join(","))"'
}
slices() { k get resourceslices -o json | jq --arg node "$node" '[.items[] | select(.spec.nodeName == $node)] | length'; }

say "a node with an H100 joins, whose GPUs are for claims"
make_machine '{"model": "H100-80GB"}'
export NOS_NODE_DEVICES=$work/dev
join_node 1
chart_options=(--set gpuPartitioner.migAgent.resourceClaims.enabled=true
  --set gpuPartitioner.migAgent.resourceClaims.shares=true --set gpuPartitioner.migAgent.mps.enabled=true
  --set gpuPartitioner.migAgent.resourceClaims.extendedResources=always)
permit_agent
"$helm" template nos "$(dirname "$controlplane")/../deploy/helm/nos" -n "$team" --kube-version 1.34 \
  --api-versions resource.k8s.io/v1 "${chart_options[@]}" \
  -s templates/device-classes.yaml | k create -f - >/dev/null || fail "no DeviceClasses"
expect labeled k label node "$node" nos.nebuly.com/device-interface=dra
start_agent
start_scheduler
within 60 bash -c "[ \"\$('$kubectl' get resourceslices -o name | grep -c .)\" -ge 1 ]"
within 60 grep -q 'registered DRA driver with kubelet' "$work/agent.log"
expect '"memory-slice-0"' k get resourceslices -o json
expect_no 'FAILED' k get resourceslices
generation=$(k get resourceslices -o 'jsonpath={.items[0].spec.pool.generation}')

say "a pod gets the instance of its claim, and no other device"
claim_pod first 3g.40gb
running first
at=$(start_of first)
sees first "$at" void
expect 'nos.nebuly.com/Created' k get resourceclaims -n "$team" -o json
expect "^3g.40gb@$at first\$" holders
expect 'file .*"podClaimName":"gpu"' cat "$work/node/logs/${team}_first"_*/main/*.log
expect 'file .*"profile":{"string":"3g.40gb"}' cat "$work/node/logs/${team}_first"_*/main/*.log
# Kubelets 1.34 and 1.35 know the health, and show it only of claims that have the name of their entry in the pod.
within 60 bash -c "jq -e '.[\"gpu.nos.nebuly.com\"].Devices[\"$node/gpu-0-mig-3g40gb-9-$at\"].Health == \"Healthy\"' $work/node/kubelet/dra_health_state"

say "a second pod beside it, and the devices stay the same"
claim_pod second 1g.10gb
running second
sees second "$(start_of second)" void
[ "$(k get resourceslices -o 'jsonpath={.items[0].spec.pool.generation}')" = "$generation" ] || fail "the slices changed"

say "its instance stays warm and is used again"
before=$(instances)
id=$(instance_at "$at")
gone first
within 30 bash -c "! grep -q first $plugins/gpu.nos.nebuly.com/prepared-claims.json"
[ "$(instances)" = "$before" ] || fail "instances: $(instances), before: $before"
claim_pod third 3g.40gb
running third
sees third "$(start_of third)" void
[ "$(instances)" = "$before" ] || fail "instances: $(instances), before: $before"
[ "$(instance_at "$at")" = "$id" ] || fail "the instance was created again"

say "a pod that requests a slice as a resource runs here too"
sleeper_pod resource nvidia.com/mig-1g.20gb "{name: PROBE, value: '$(seq -f "$tty:%g" 18 62 | tr '\n' ' ')'}" nos-scheduler
running resource
extended=$(k get pod resource -n "$team" -o 'jsonpath={.status.extendedResourceClaimStatus.resourceClaimName}')
[ -n "$extended" ] || fail "the pod's status names no claim"
its_start=$(k get resourceclaim "$extended" -n "$team" -o 'jsonpath={.status.allocation.devices.results[0].device}' | grep -oE '[0-9]+$')
sees resource "$its_start" void
expect "^1g.20gb@$its_start resource\$" holders
gone resource

say "the agent is killed between the creation and the start of the pod, and nothing is lost"
gone second
claim_pod fourth 2g.20gb
within 60 bash -c "jq -e '[.gpus[0].instances[] | select(.profile == \"2g.20gb\")] | length == 1' $work/gpus.json"
kill -9 "${pid[agent]}"
before=$(instances)
start_agent
# The kubelet tries again after some 90 s.
expect 'condition met' k wait pod/fourth -n "$team" --for=jsonpath='{.status.phase}=Running' --timeout 200s
sees fourth "$(start_of fourth)" void
sees third "$(start_of third)" void
[ "$(instances)" = "$before" ] || fail "instances: $(instances), before: $before"

say "pods share the memory of an instance, each within its limit"
share_pod half 4Gi
running half
its_start=$(device_of half | grep -oE '[0-9]+-mps$' | tr -dc 0-9)
sees half "$its_start" void
expect "^share 0=4096M 0\$" log_of half
share_pod other 3Gi
running other
[ "$(device_of half)" = "$(device_of other)" ] || fail "the pods have $(device_of half) and $(device_of other)"
expect "^share 0=3072M 0\$" log_of other
expect "@$its_start half,other\$" holders
daemon=$(cat "$work"/mps/MIG-*/nvidia-cuda-mps-control.pid)
registered=$(grep -c 'registered DRA driver with kubelet' "$work/agent.log")
kill -9 "${pid[agent]}"
start_agent
within 60 bash -c "[ \"\$(grep -c 'registered DRA driver with kubelet' $work/agent.log)\" -gt $registered ]"
[ "$(cat "$work"/mps/MIG-*/nvidia-cuda-mps-control.pid)" = "$daemon" ] || fail "the agent's end ended the daemon"
gone half
kill -0 "$daemon" || fail "the daemon ended with one of two shares"
gone other
within 60 bash -c "! kill -0 $daemon 2>/dev/null"

say "a placement takes the room of instances that nobody uses"
gone third
gone fourth
within 60 bash -c "! '$kubectl' get resourceclaims -n $team -o name | grep ."
claim_pod all 7g.80gb
running all
sees all 0 void
[ "$(instances)" = '["7g.80gb@0"]' ] || fail "instances: $(instances)"

say "pods share the memory of a whole GPU, in which no other program can run"
gone all
within 60 bash -c "! '$kubectl' get resourceclaims -n $team -o name | grep ."
whole="!('profile' in device.attributes['gpu.nos.nebuly.com'])"
share_pod left 30Gi "$whole"
share_pod right 20Gi "$whole"
running left
running right
[ "$(device_of left) $(device_of right)" = "gpu-0-mps gpu-0-mps" ] || fail "not a share: $(device_of left) $(device_of right)"
expect "^share 0=30720M 0\$" log_of left
[ "$(instances)" = '[]' ] || fail "instances: $(instances)"
expect '^3$' jq '.gpus[0].computeMode' "$work/gpus.json"
gone left
gone right
claim_pod again 7g.80gb
running again

say "the node returns to the device plugin once no claim has a device"
expect labeled k label node "$node" nos.nebuly.com/device-interface-
within 60 bash -c "! '$kubectl' get resourceslices -o name | grep ."
[ "$(k get node "$node" -o 'jsonpath={.status.allocatable.nvidia\.com/mig-7g\.80gb}')" != 1 ] || fail "the device of a claim is offered"
running again
gone again
plan 1 1g.10gb@0
allocatable 1g.10gb 1
sleeper_pod plugin nvidia.com/mig-1g.10gb
running plugin

say "and waits for its pods before it serves claims again"
expect labeled k label node "$node" nos.nebuly.com/device-interface=dra
claim_pod fifth 1g.10gb
within 30 bash -c "'$kubectl' get pod fifth -n $team -o 'jsonpath={.status.conditions[*].message}' | grep -q 'cannot allocate all claims'"
[ "$(slices)" = 0 ] || fail "devices are announced while a pod has one of the plugin"
gone plugin
running fifth
sees fifth "$(start_of fifth)" void
if grep forbidden "$work"/*.log; then fail "a permission is missing"; fi
say ok
