#!/usr/bin/env bash
# Compares kube-scheduler and nos scheduler: pods bound per second on the same kind of API server, a
# fresh one for each run. kube-scheduler has raised client limits and defaults otherwise. Both stand
# by until they have read all nodes and pods; the time starts when they get the Lease.
#
#   bench/schedulers.sh [NODES...]       (1000 5000); PODS=10000 WORKLOADS="plain slices spread anti"
#
# Workload partition is for nos only, because kube-scheduler cannot have GPUs partitioned; one and
# one-claims measure the latency of single pods; claims3-full has claims of three profiles in a cluster
# that is 70 per cent full. bench/scheduler_load.cc describes all, and NOBODY=1: a third run, in
# which the load program itself binds the pods instead of a scheduler. RUNS=3 repeats each. ONLY=nos
# leaves kube-scheduler out.
# The processor time of a run is the scheduler's own. Also prints the machine's load, because
# results of a busy machine are not meaningful.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
pods=${PODS:-10000}
workloads=${WORKLOADS:-plain slices spread anti}
[ $# -gt 0 ] || set -- 1000 5000
build=build/release
dir=$(mktemp -d)
running=
mkfifo "$dir/go"
exec 3<>"$dir/go"
cat >"$dir/nos.yaml" <<Y
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {resourceName: load, resourceNamespace: load, retryPeriod: 500ms}
Y
trap '[ -z "$running" ] || kill "$running" 2>/dev/null; script/controlplane down --dir "$dir/cp" >/dev/null 2>&1; rm -rf "$dir"' EXIT

start() { # SCHEDULER
  local config=$dir/cp/kubeconfig
  case $1 in
    nos) exec $build/nos scheduler --kubeconfig "$config" --config "$dir/nos.yaml" ;;
    kube)
      exec "$(script/controlplane binary kube-scheduler)" --kubeconfig "$config" \
        --authentication-kubeconfig "$config" --authorization-kubeconfig "$config" \
        --kube-api-qps 5000 --kube-api-burst 10000 --cert-dir "$dir/certificates" \
        --leader-elect-resource-name load --leader-elect-resource-namespace load \
        --leader-elect-retry-period 500ms
      ;;
  esac >"$dir/scheduler.log" 2>&1 &
  running=$!
}

# A scheduler without leadership is ready once its caches are filled.
ready() { # SCHEDULER
  case $1 in
    nos) curl -fs http://127.0.0.1:8081/readyz ;;
    kube) curl -fsk https://127.0.0.1:10259/readyz ;;
  esac >/dev/null
}

run() { # SCHEDULER NAME NODES WORKLOAD
  NOS_CONTROLPLANE_ONLY="etcd kube-apiserver" script/controlplane up --dir "$dir/cp" --nodes 0 >"$dir/up.log" 2>&1 ||
    { cat "$dir/up.log" && exit 1; }
  : >"$dir/load.log" # the log of the last run has the line "created" too
  $build/bench/nos-scheduler-load "$dir/cp/kubeconfig" "$2" "$3" "$pods" "$4" <"$dir/go" >"$dir/load.log" 2>&1 &
  local load=$!
  if [ "$1" = nobody ]; then
    wait $load || { cat "$dir/load.log" && exit 1; }
    printf '%-5s %s  load %s\n' "$1" "$(tail -1 "$dir/load.log" | cut -d' ' -f2-)" "$(cut -d' ' -f1 /proc/loadavg)"
    script/controlplane down --dir "$dir/cp" >/dev/null 2>&1
    return
  fi
  until grep -q created "$dir/load.log"; do
    kill -0 $load 2>/dev/null || { cat "$dir/load.log" && exit 1; }
    sleep 0.2
  done
  start "$1"
  until ready "$1"; do
    kill -0 "$running" 2>/dev/null || { cat "$dir/scheduler.log" && exit 1; }
    sleep 0.2
  done
  echo >&3
  wait $load || { cat "$dir/load.log" "$dir/scheduler.log" && exit 1; }
  printf '%-5s %s  cpu %s  load %s\n' "$1" "$(tail -1 "$dir/load.log" | cut -d' ' -f2-)" \
    "$(ps -o time= -p "$running")" "$(cut -d' ' -f1 /proc/loadavg)"
  kill "$running"
  wait "$running" 2>/dev/null || true
  running=
  script/controlplane down --dir "$dir/cp" >/dev/null 2>&1
}

printf '%s, %s cores\n' "$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)" "$(nproc)"
for nodes in "$@"; do
  for workload in $workloads; do
    for ((i = 0; i < ${RUNS:-1}; i++)); do
      [ "$workload" = partition ] || [ "${ONLY:-}" = nos ] || run kube default-scheduler "$nodes" "$workload"
      run nos nos-scheduler "$nodes" "$workload"
      [ -z "${NOBODY:-}" ] || run nobody nobody "$nodes" "$workload"
    done
  done
done
