# A control plane of its own on which nos and kube-scheduler decide on the same pods, without kubelets.
# Sourced by the comparisons of schedulers after check.sh. No admission plugin or controller changes
# the test's objects: no default taints, tolerations and finalizers.
#
# With NOS_KEEP=DIR the control plane is in DIR and stays there for the next run.
# shellcheck shell=bash disable=SC2034,SC2154
minor=${NOS_KUBERNETES:-1.34}
minor=${minor#1.}
work=$(mktemp -d)
dir=${NOS_KEEP:-$work/plane}
of_kube=$work/kube-scheduler.yaml
of_nos=$work/nos-scheduler.yaml
end() {
  [ -n "${NOS_KEEP:-}" ] || "$controlplane" down --dir "$dir" >/dev/null 2>&1
  rm -rf "$work"
}
trap end EXIT

plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection,DefaultTolerationSeconds
export NOS_CONTROLPLANE_ONLY="etcd kube-apiserver kube-controller-manager kube-scheduler"
export NOS_FLAGS_KUBE_APISERVER="--disable-admission-plugins=$plugins"
export NOS_FLAGS_KUBE_CONTROLLER_MANAGER="--kube-api-qps=2000 --kube-api-burst=2000"
export NOS_FLAGS_KUBE_SCHEDULER="--config=$of_kube --vmodule=schedule_one=10"

# start_pair: starts the control plane. Leaves out what later versions changed
# (docs/scheduler-differences.md, "Other versions").
start_pair() {
  local disabled='{name: CapacityScheduling}'
  [ "$minor" -lt 36 ] || disabled+=', {name: NodeResourcesBalancedAllocation}'
  sed "s|{name: CapacityScheduling}|$disabled|" \
    "$(dirname "${BASH_SOURCE[0]}")/scheduler_differential/kube-scheduler.yaml" >"$of_nos"
  sed "s|KUBECONFIG|$dir/kube-scheduler.kubeconfig|" "$of_nos" >"$of_kube"
  own_plane 0
}
