#!/usr/bin/env bash
# nos and kube-scheduler decide alike: scheduler_differential/main.cc, on its own control plane, and
# with the volume controllers only.
#
#   scheduler_differential_test.sh SCRIPT BINARY [ARGUMENT...]
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
# shellcheck source=test/controlplane/scheduler_pair.sh
. "$(dirname "$0")/scheduler_pair.sh"
binary=$2
shift 2
NOS_FLAGS_KUBE_CONTROLLER_MANAGER+=" --controllers=serviceaccount-controller"
NOS_FLAGS_KUBE_CONTROLLER_MANAGER+=",persistentvolume-binder-controller --pvclaimbinder-sync-period=500ms"
# Left out of the comparison: what later versions changed (docs/scheduler-differences.md).
own=()
if [ "$minor" -lt 33 ] || [ "$minor" -ge 36 ]; then own=(--no-resizes); fi
[ "$minor" -ne 37 ] || NOS_FLAGS_KUBE_SCHEDULER+=" --feature-gates=StorageCapacityScoring=false"
start_pair
"$binary" --config "$of_nos" --plane "$dir" "${own[@]}" "$@"
