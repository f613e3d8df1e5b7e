#!/usr/bin/env bash
# nos and kube-scheduler decide alike on pods with ResourceClaims: scheduler_differential/main.cc with
# --devices, on its own control plane, without drivers, and with the controllers of volumes and
# claims only.
#
#   dra_differential_test.sh SCRIPT BINARY [ARGUMENT...]
#
# Kubernetes before 1.34 is skipped: it does not serve resource.k8s.io/v1.
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
# shellcheck source=test/controlplane/scheduler_pair.sh
. "$(dirname "$0")/scheduler_pair.sh"
binary=$2
shift 2
if [ "$minor" -lt 34 ]; then
  echo "skipped: Kubernetes 1.$minor does not serve resource.k8s.io/v1"
  exit 77
fi
NOS_FLAGS_KUBE_CONTROLLER_MANAGER+=" --controllers=serviceaccount-controller,resourceclaim-controller"
NOS_FLAGS_KUBE_CONTROLLER_MANAGER+=",persistentvolume-binder-controller"
if [ "$minor" -lt 36 ]; then
  # Off by default before 1.36. Not DRAConsumableCapacity: kube-scheduler 1.34 then compares a request
  # with another device of the slice, or ends with a panic.
  gates=" --feature-gates=DRAPartitionableDevices=true,DRADeviceTaints=true,DRAExtendedResource=true"
  NOS_FLAGS_KUBE_APISERVER+=$gates
  NOS_FLAGS_KUBE_CONTROLLER_MANAGER+=$gates
  NOS_FLAGS_KUBE_SCHEDULER+=$gates
fi
# DeviceTaintRules, which kube-scheduler waits for when it starts.
[ "$minor" -ne 34 ] || NOS_FLAGS_KUBE_APISERVER+=" --runtime-config=resource.k8s.io/v1alpha3=true"
start_pair
"$binary" --config "$of_nos" --plane "$dir" --devices "$minor" --clusters 120 "$@"
