#!/usr/bin/env bash
# nos and kube-scheduler decide alike: scheduler_differential/main.cc, on its own control plane,
# without kubelets, and with the volume controllers only.
#
#   scheduler_differential_test.sh SCRIPT BINARY [ARGUMENT...]
#
# With NOS_KEEP=DIR the control plane is in DIR and stays there for the next run.
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
binary=$2
shift 2
work=$(mktemp -d)
dir=${NOS_KEEP:-$work/plane}
config=$work/kube-scheduler.yaml
export NOS_CONTROLPLANE_ONLY="etcd kube-apiserver kube-controller-manager kube-scheduler"
end() {
  [ -n "${NOS_KEEP:-}" ] || "$controlplane" down --dir "$dir" >/dev/null 2>&1
  rm -rf "$work"
}
trap end EXIT

# No admission plugin or controller may change the test's objects: no default taints, tolerations
# and finalizers.
plugins=ServiceAccount,TaintNodesByCondition,StorageObjectInUseProtection,DefaultTolerationSeconds
export NOS_FLAGS_KUBE_APISERVER="--disable-admission-plugins=$plugins"
NOS_FLAGS_KUBE_CONTROLLER_MANAGER="--controllers=serviceaccount-controller"
NOS_FLAGS_KUBE_CONTROLLER_MANAGER+=",persistentvolume-binder-controller"
NOS_FLAGS_KUBE_CONTROLLER_MANAGER+=" --kube-api-qps=2000 --kube-api-burst=2000 --pvclaimbinder-sync-period=500ms"
export NOS_FLAGS_KUBE_CONTROLLER_MANAGER
export NOS_FLAGS_KUBE_SCHEDULER="--config=$config --vmodule=schedule_one=10"
of_both=$(dirname "$(readlink -f "$0")")/scheduler_differential/kube-scheduler.yaml
of_nos=$work/nos-scheduler.yaml
disabled='{name: CapacityScheduling}' own=()
# Left out of the comparison: what later versions changed (docs/scheduler-differences.md).
case ${NOS_KUBERNETES:-} in
  1.3[67])
    disabled+=', {name: NodeResourcesBalancedAllocation}' own=(--no-resizes)
    ;;&
  1.37) NOS_FLAGS_KUBE_SCHEDULER+=" --feature-gates=StorageCapacityScoring=false" ;;
esac
sed "s|{name: CapacityScheduling}|$disabled|" "$of_both" >"$of_nos"
sed "s|KUBECONFIG|$dir/kube-scheduler.kubeconfig|" "$of_nos" >"$config"
own_plane 0
"$binary" --config "$of_nos" --plane "$dir" "${own[@]}" "$@"
