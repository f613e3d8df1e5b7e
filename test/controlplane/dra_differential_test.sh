#!/usr/bin/env bash
# nos and kube-scheduler decide alike on pods with ResourceClaims: scheduler_differential/main.cc with
# --devices, on its own control plane, without kubelets and drivers, and with the controllers of
# volumes and claims only.
#
#   dra_differential_test.sh SCRIPT BINARY [ARGUMENT...]
#
# With NOS_KEEP=DIR the control plane is in DIR and stays there for the next run. Kubernetes before
# 1.34 is skipped: it does not serve resource.k8s.io/v1.
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
binary=$2
shift 2
minor=${NOS_KUBERNETES:-1.34}
minor=${minor#1.}
if [ "$minor" -lt 34 ]; then
  echo "skipped: Kubernetes 1.$minor does not serve resource.k8s.io/v1"
  exit 77
fi
work=$(mktemp -d)
dir=${NOS_KEEP:-$work/plane}
config=$work/kube-scheduler.yaml
export NOS_CONTROLPLANE_ONLY="etcd kube-apiserver kube-controller-manager kube-scheduler"
end() {
  [ -n "${NOS_KEEP:-}" ] || "$controlplane" down --dir "$dir" >/dev/null 2>&1
  rm -rf "$work"
}
trap end EXIT

# Off by default before 1.36. Not DRAConsumableCapacity: kube-scheduler 1.34 then compares a request with
# another device of the slice, or ends with a panic.
gates=
[ "$minor" -gt 35 ] || gates=DRAPartitionableDevices=true,DRADeviceTaints=true,DRAExtendedResource=true
plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection,DefaultTolerationSeconds
NOS_FLAGS_KUBE_APISERVER="--disable-admission-plugins=$plugins"
NOS_FLAGS_KUBE_CONTROLLER_MANAGER="--controllers=serviceaccount-controller,resourceclaim-controller"
NOS_FLAGS_KUBE_CONTROLLER_MANAGER+=",persistentvolume-binder-controller"
NOS_FLAGS_KUBE_CONTROLLER_MANAGER+=" --kube-api-qps=2000 --kube-api-burst=2000"
NOS_FLAGS_KUBE_SCHEDULER="--config=$config --vmodule=schedule_one=10"
if [ -n "$gates" ]; then
  NOS_FLAGS_KUBE_APISERVER+=" --feature-gates=$gates"
  NOS_FLAGS_KUBE_CONTROLLER_MANAGER+=" --feature-gates=$gates"
  NOS_FLAGS_KUBE_SCHEDULER+=" --feature-gates=$gates"
fi
# DeviceTaintRules, which kube-scheduler waits for when it starts.
[ "$minor" -ne 34 ] || NOS_FLAGS_KUBE_APISERVER+=" --runtime-config=resource.k8s.io/v1alpha3=true"
export NOS_FLAGS_KUBE_APISERVER NOS_FLAGS_KUBE_CONTROLLER_MANAGER NOS_FLAGS_KUBE_SCHEDULER
of_both=$(dirname "$(readlink -f "$0")")/scheduler_differential/kube-scheduler.yaml
of_nos=$work/nos-scheduler.yaml
disabled='{name: CapacityScheduling}'
# docs/scheduler-differences.md, "Other versions".
[ "$minor" -lt 36 ] || disabled+=', {name: NodeResourcesBalancedAllocation}'
sed "s|{name: CapacityScheduling}|$disabled|" "$of_both" >"$of_nos"
sed "s|KUBECONFIG|$dir/kube-scheduler.kubeconfig|" "$of_nos" >"$config"
own_plane 0
"$binary" --config "$of_nos" --plane "$dir" --devices "$minor" --clusters 120 "$@"
