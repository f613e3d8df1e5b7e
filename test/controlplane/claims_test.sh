#!/usr/bin/env bash
# nos scheduler allocates devices for claims on the real API server, with kube-controller-manager,
# which makes claims from templates and releases them. The ResourceSlices are as NVIDIA's driver
# publishes them: every MIG placement is a device, and counters exclude placements that overlap.
#
#   claims_test.sh SCRIPT BUILD
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
build=$2
work=$(mktemp -d)
dir=$work/plane
export NOS_CONTROLPLANE_ONLY="etcd kube-apiserver kube-controller-manager kwok"
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
# Alpha in 1.34, always on from 1.37 on.
case ${NOS_KUBERNETES:-1.34} in
  1.3[456])
    export NOS_FLAGS_KUBE_APISERVER="--feature-gates=DRAExtendedResource=true"
    export NOS_FLAGS_KUBE_CONTROLLER_MANAGER=$NOS_FLAGS_KUBE_APISERVER
    ;;
  1.37) # beta, off by default
    export NOS_FLAGS_KUBE_CONTROLLER_MANAGER="--feature-gates=GenericWorkload=true,DRAWorkloadResourceClaims=true"
    export NOS_FLAGS_KUBE_APISERVER="$NOS_FLAGS_KUBE_CONTROLLER_MANAGER --runtime-config=scheduling.k8s.io/v1beta1=true"
    ;;
esac
own_plane 0
use_plane
out=$(k api-resources --api-group resource.k8s.io -o name 2>&1)
if ! k get --raw /apis/resource.k8s.io/v1 >/dev/null 2>&1; then
  echo "skipped: this Kubernetes does not serve resource.k8s.io/v1"
  exit 77
fi
expect created k create namespace team
expect created k create namespace nos-system
chart=$(dirname "$controlplane")/../deploy/helm/nos
"$helm" template nos "$chart" -n nos-system --kube-version 1.34.2 --set scheduler.enabled=true \
  -s templates/scheduler-rbac.yaml >"$work/rights.yaml" || fail "no roles"
expect created k create -f "$work/rights.yaml"
expect kubeconfig "$controlplane" kubeconfig scheduler --dir "$dir" --namespace nos-system --serviceaccount nos-scheduler
within 30 k get serviceaccount default -n team

# node NAME: simulated by kwok.
node() {
  printf -- '\n---\napiVersion: v1\nkind: Node\nmetadata: {name: %s, annotations: {kwok.x-k8s.io/node: fake}}\n' "$1"
  printf 'status: {allocatable: {cpu: "40", memory: 80Gi, pods: "99"}, capacity: {cpu: "40", memory: 80Gi, pods: "99"}}\n'
}
# device NAME PROFILE FIRST LAST: uses the memory slices FIRST to LAST of the GPU.
device() {
  local counters='' i
  for ((i = $3; i <= $4; ++i)); do counters+=${counters:+, }"memory-slice-$i: {value: '1'}"; done
  printf '  - name: %s\n    attributes: {type: {string: mig}, profile: {string: %s}}\n' "$1" "$2"
  printf '    consumesCounters: [{counterSet: gpu-0, counters: {%s}}]\n' "$counters"
}
# slices NODE: one GPU, for 1g.10gb seven placements, for 3g.40gb two.
slices() {
  printf -- '\n---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: %s-0}\n' "$1"
  printf 'spec:\n  driver: gpu.nvidia.com\n  nodeName: %s\n' "$1"
  printf '  pool: {name: %s, generation: 1, resourceSliceCount: 2}\n' "$1"
  printf '  sharedCounters: [{name: gpu-0, counters: {'
  for ((i = 0; i < 8; ++i)); do printf "%smemory-slice-$i: {value: '1'}" "$([ $i = 0 ] || echo ', ')"; done
  printf '}}]\n---\napiVersion: resource.k8s.io/v1\nkind: ResourceSlice\nmetadata: {name: %s-1}\n' "$1"
  printf 'spec:\n  driver: gpu.nvidia.com\n  nodeName: %s\n' "$1"
  printf '  pool: {name: %s, generation: 1, resourceSliceCount: 2}\n  devices:\n' "$1"
  for ((i = 0; i < 7; ++i)); do device "gpu-0-mig-1g10gb-19-$i" 1g.10gb "$i" "$i"; done
  device gpu-0-mig-3g40gb-9-0 3g.40gb 0 3
  device gpu-0-mig-3g40gb-9-4 3g.40gb 4 7
}
# template NAME PROFILE
template() {
  cat <<Y

---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {namespace: team, name: $1}
spec:
  spec:
    devices:
      requests:
      - name: slice
        exactly:
          deviceClassName: mig.nvidia.com
          selectors: [{cel: {expression: "device.attributes['gpu.nvidia.com'].profile == '$2'"}}]
Y
}
# pods COUNT PREFIX TEMPLATE
pods() {
  for ((i = 1; i <= $1; ++i)); do
    printf -- '\n---\napiVersion: v1\nkind: Pod\nmetadata: {namespace: team, name: %s%d}\nspec:\n' "$2" "$i"
    printf '  schedulerName: nos-scheduler\n  terminationGracePeriodSeconds: 1\n'
    printf '  containers: [{name: main, image: any, resources: {claims: [{name: gpu}]}}]\n'
    printf '  resourceClaims: [{name: gpu, resourceClaimTemplateName: %s}]\n' "$3"
  done
}
# bound PREFIX COUNT: exactly COUNT pods of this prefix have a node.
bound() {
  [ "$(k get pods -n team -o 'jsonpath={range .items[*]}{.metadata.name} {.spec.nodeName}{"\n"}{end}' |
    grep -cE "^$1[0-9]+ .")" -eq "$2" ]
}
# Devices as NODE/DEVICE of all allocated claims.
devices() {
  k get resourceclaims -n team -o \
    'jsonpath={range .items[*]}{range .status.allocation.devices.results[*]}{.pool}/{.device}{"\n"}{end}{end}'
}
# Every device was given once, and no two placements of a GPU overlap.
sound() {
  devices | sort | uniq -d | grep . && fail "devices were given twice"
  [ -n "$counters" ] || return 0
  devices | sed -nE 's#^(.*)/gpu-0-mig-(1g|3g).*-([0-9])$#\1 \2 \3#p' |
    awk '{ n = $2 == "3g" ? 4 : 1; for (i = $3; i < $3 + n; i++) if (used[$1 " " i]++) bad = 1 } END { exit bad }' ||
    fail "placements overlap: $(devices)"
}
claims() { [ "$(devices | grep -c .)" -eq "$1" ]; }

expect created from "
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: mig.nvidia.com}
spec:
  selectors:
  - cel: {expression: \"device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'mig'\"}
$(node one)$(node two)$(slices one)$(slices two)$(template small 1g.10gb)$(template large 3g.40gb)" k create
minimal_scheduler_config >"$work/scheduler.yaml"
scheduler() {
  "$build/nos" scheduler --kubeconfig "$dir/scheduler.kubeconfig" --config "$work/scheduler.yaml" >>"$work/scheduler.log" 2>&1 &
  scheduler=$!
  pids+=("$scheduler")
  disown
}
scheduler

# Before Kubernetes 1.36 counters are a feature gate that is off, and the API server drops them. Then
# the large placements are devices that exclude no other.
counters=$(k get resourceslice one-1 -o 'jsonpath={.spec.devices[0].consumesCounters}')
[ -n "$counters" ] || say "this Kubernetes drops counters"

say "every pod gets a device of its own, until there are none"
expect created from "$(pods 16 small small)" k create
within 60 bound small 14
within 20 claims 14
sound
within 20 bash -c "'$kubectl' get pods -n team -o 'jsonpath={.items[*].status.conditions[?(@.reason==\"Unschedulable\")].message}' | grep -q 'cannot allocate all claims'"

say "an allocation has all that kube-scheduler writes"
claim=$(k get resourceclaims -n team -o 'jsonpath={.items[?(@.status.reservedFor)].metadata.name}' | cut -d' ' -f1)
expect '"resource.kubernetes.io/delete-protection"' k get resourceclaim "$claim" -n team -o 'jsonpath={.metadata.finalizers}'
expect '"resource":"pods"' k get resourceclaim "$claim" -n team -o 'jsonpath={.status.reservedFor[0]}'
expect 'metadata.name.*(one|two)' k get resourceclaim "$claim" -n team -o 'jsonpath={.status.allocation.nodeSelector}'

say "a released device is given to the next pod"
expect deleted k delete pod small1 small2 -n team
within 60 bound small 14
sound

say "the scheduler is killed while it allocates, and the next one goes on"
expect deleted k delete pods --all -n team
within 60 claims 0
expect created from "$(pods 3 large large)$(pods 3 small small)" k create
kill -9 "$scheduler"
scheduler
within 60 bound large 3
within 60 bound small 3
sound

say "a pod of higher priority evicts one other, and gets its device"
expect deleted k delete pods --all -n team
within 60 claims 0
expect created from "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: urgent}
value: 1000
$(pods 14 low small)" k create
within 60 bound low 14
expect created from "$(pods 1 urgent small | sed 's/^spec:$/&\n  priorityClassName: urgent/')" k create
within 60 bound urgent 1
within 20 bash -c "'$kubectl' get events -n team -o 'jsonpath={range .items[*]}{.reason}{\"\n\"}{end}' | grep -qx Preempted"
expect '^1$' bash -c "'$kubectl' get events -n team -o 'jsonpath={range .items[*]}{.reason}{\"\n\"}{end}' | grep -cx Preempted"
bound low 13 || fail "more than one pod was evicted"
sound

say "a claim by name is shared by the pods that use it"
expect deleted k delete pods --all -n team
within 60 claims 0
expect created from "
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {namespace: team, name: shared}
spec: {devices: {requests: [{name: all, exactly: {deviceClassName: mig.nvidia.com, count: 3,
  selectors: [{cel: {expression: \"device.attributes['gpu.nvidia.com'].profile == '1g.10gb'\"}}]}}]}}
$(pods 3 user none | sed 's/resourceClaimTemplateName: none/resourceClaimName: shared/')" k create
within 60 bound user 3
expect '^3$' bash -c "'$kubectl' get resourceclaim shared -n team -o json | grep -c '\"resource\": \"pods\"'"
[ "$(k get pods -n team -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | sort -u | grep -c .)" -eq 1 ] ||
  fail "users of one claim are on several nodes"
sound

if [ "${NOS_KUBERNETES:-}" = 1.37 ]; then
  say "a PodGroup uses its claim as a whole"
  expect deleted k delete pods --all -n team
  expect deleted k delete resourceclaim shared -n team
  within 60 claims 0
  expect created from "
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {namespace: team, name: pair}
spec:
  schedulingPolicy: {gang: {minCount: 2}}
  resourceClaims: [{name: gpu, resourceClaimTemplateName: small}]
$(pods 2 member small | sed 's/^spec:$/&\n  schedulingGroup: {podGroupName: pair}/')" k create
  within 60 bound member 2
  claims 1 || fail "the group has not one device: $(devices)"
  expect '"apiGroup":"scheduling.k8s.io","name":"pair","resource":"podgroups"' \
    k get resourceclaims -n team -o 'jsonpath={.items[*].status.reservedFor}'
  sound
  expect deleted k delete pods --all -n team
  expect deleted k delete podgroup pair -n team
fi

say "a pod that asks for a resource of a class gets a claim, which ends with the pod"
# The step above has ended them where it ran.
k delete pods --all -n team >/dev/null || fail "pods stay"
within 60 claims 0
expect created from "
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: small.example.com}
spec:
  extendedResourceName: nvidia.com/mig-1g.10gb
  selectors:
  - cel: {expression: \"device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].profile == '1g.10gb'\"}
$(pods 15 slice none | sed '/resourceClaims:/d; s#{claims: [[]{name: gpu}[]]}#{limits: {nvidia.com/mig-1g.10gb: 1}}#')" k create
within 60 bound slice 14
within 20 claims 14
sound
one=$(k get pods -n team -o 'jsonpath={.items[?(@.spec.nodeName)].metadata.name}' | cut -d' ' -f1)
expect "^$one-extended-resources-" k get pod "$one" -n team -o 'jsonpath={.status.extendedResourceClaimStatus.resourceClaimName}'
expect '"requestName":"container-0-request-0","resourceName":"nvidia.com/mig-1g.10gb"' \
  k get pod "$one" -n team -o 'jsonpath={.status.extendedResourceClaimStatus.requestMappings}'
expect deleted k delete pod "$one" -n team
within 60 bound slice 14
sound

say "a pod without its claim, or with one that nothing can serve, waits with the reason"
expect created from "$(pods 1 lost none | sed 's/resourceClaimTemplateName: none/resourceClaimName: nowhere/')" k create
within 30 bash -c "'$kubectl' get pod lost1 -n team -o 'jsonpath={.status.conditions[*].message}' | grep -q 'nowhere.* not found'"
grep -l forbidden "$work/scheduler.log" && fail "the chart's role lacks a right"
say ok
