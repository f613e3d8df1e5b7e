# MPS on a real node: what NVIDIA's container runtime brings into the containers of agent and nos-mps, and looks at
# daemons and shares from the node. Sourced after driver_of_node.sh, for a node of kubelet.sh in $work/node; $system is
# the namespace of nos.
# shellcheck shell=bash disable=SC2034,SC2154

# make_toolkit SHELL: fills $work/toolkit for nvidia_runtime.sh. SHELL has Debian's static bash and busybox, for the
# doubled MPS daemon.
make_toolkit() {
  local bin=$work/toolkit/bin each
  mkdir -p "$bin" "$work/toolkit/lib"
  cp "$nvml" "$work/toolkit/lib/libnvidia-ml.so.1"
  cp "$here/../doubles/mps/nvidia-cuda-mps-control" "$work/driver/usr/bin/nvidia-smi" "$1/busybox" "$bin"
  cp "$1/bash-static" "$bin/bash"
  for each in env date cat rm mkfifo mktemp awk grep setsid; do ln -s busybox "$bin/$each"; done
  # Debian's busybox has no flock; and its sleep looks at its name, which the double changes to a server's.
  gcc -static -O1 -x c -o "$bin/flock" - <<'C' || fail "gcc"
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "-n") == 0) return flock(atoi(argv[2]), LOCK_EX | LOCK_NB) != 0;
  for (;;) pause();
}
C
  ln -s flock "$bin/sleep"
}
# leave_mig: as `nvidia-smi -mig 0` and a reset do it. REQUIRES: no agent runs.
leave_mig() {
  # shellcheck disable=SC2016 # the inner shell's
  flock "$work/gpus.json.lock" sh -euc 'jq ".gpus[].mig = false | .gpus[].instances = []" "$1" >"$1.new"; mv "$1.new" "$1"' \
    sh "$work/gpus.json" || fail "jq"
}
# in_node COMMAND...: in its namespaces of processes and mounts.
in_node() { nsenter --target "$(tr -d ' ' <"$work/node/first.pid")" --mount --pid "$@"; }
# mps_ready: the pod of nos-mps runs.
mps_ready() {
  soon '^Running$' k get pods -n "$system" -l app.kubernetes.io/component=mps --field-selector spec.nodeName="$node" \
    -o jsonpath='{.items[*].status.phase}'
}
# share NAME NAMESPACE GIB [FIELDS_OF_SPEC]: a pod, as YAML.
share() {
  printf 'apiVersion: v1\nkind: Pod\nmetadata: {name: %s, namespace: %s}\nspec:\n  %s\n' "$1" "$2" "${4:-restartPolicy: Never}"
  printf '  terminationGracePeriodSeconds: 5\n  containers:\n  - name: main\n    image: docker.io/nos-test/sleeper:1\n'
  printf '    resources: {limits: {nvidia.com/gpu-%sgb: 1}}\n' "$3"
}
# share_runs NAME NAMESPACE GIB: its container has the limit, and sees the folder of a daemon that runs: $daemon.
share_runs() {
  expect 'condition met' k wait --for=jsonpath='{.status.phase}'=Running "pod/$1" -n "$2" --timeout 90s
  soon "^share 0=$(($3 * 1024))M 0\$" k logs "$1" -n "$2"
  expect '^daemon [0-9]+$' k logs "$1" -n "$2"
  daemon=$(sed -n 's/^daemon //p' <<<"$out")
  expect nvidia-cuda-mps-control in_node sh -c "tr '\\0' ' ' </proc/$daemon/cmdline"
}
# pid_of NAME NAMESPACE: the first process of the pod's container.
pid_of() {
  local id
  id=$(k get pod "$1" -n "$2" -o jsonpath='{.status.containerStatuses[0].containerID}')
  NOS_CONTROLPLANE_DIR=$dir "$here/kubelet.sh" "$node" "$work/node" ctr tasks ls | awk -v id="${id#*//}" '$1 == id {print $2}'
}
# within_pod PID UID BYTES: the process is in a cgroup of the pod whose containers have this limit of memory.
within_pod() {
  local path
  path=$(in_node cat "/proc/$1/cgroup" | awk -F: '$2 == "memory" || $1 == "0" {print $3; exit}')
  [[ $path == *"$2"* ]] || fail "process $1 is in $path, not in pod $2"
  if [ -f /sys/fs/cgroup/cgroup.controllers ]; then path=/sys/fs/cgroup$path/memory.max; else
    path=/sys/fs/cgroup/memory$path/memory.limit_in_bytes
  fi
  expect "^$3\$" cat "$path"
}
