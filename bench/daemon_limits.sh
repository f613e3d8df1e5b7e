#!/usr/bin/env bash
# Runs daemons under the limits of memory that the chart gives their pods, with a large cluster in their caches, and
# prints the table of BENCHMARKS.md. A daemon that is killed for memory ends it.
#
#   bench/daemon_limits.sh [BUILD_FOLDER [NODES PODS]]     build/release 5000 50000
# shellcheck source=script/lib.sh
. "$(dirname "$(readlink -f "$0")")/../script/lib.sh" || exit 1
build=${1:-build/release}
[ $# -eq 0 ] || shift
helm=$(script/controlplane binary helm)

# limit_of DAEMON: the chart's limit, in MiB.
limit_of() {
  "$helm" template nos deploy/helm/nos -n nos-system --kube-version 1.34.0 --set autoscaler.enabled=true -s "templates/$1.yaml" |
    awk '/^ *limits:/ {on = 1; next} on && /memory:/ {
      if ($2 ~ /^[0-9]+Mi$/) print $2 + 0; else if ($2 ~ /^[0-9]+Gi$/) print 1024 * ($2 + 0); else exit 1
      exit}'
}
printf '| process | limit of its pod | memory of its pod, at most | resident, at most |\n|---|---|---|---|\n'
for daemon in partitioner scheduler operator autoscaler; do
  limit=$(limit_of "$daemon")
  [ -n "$limit" ] || die "the chart has no limit of memory for $daemon"
  "$build/bench/nos-daemon-memory" "$build/nos" "$daemon" "$limit" "${@}" || die "nos $daemon does not hold its limit"
done
