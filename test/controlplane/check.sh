# Helpers of tests that drive the control plane. Sourced with the path of script/controlplane in $1.
# shellcheck shell=bash disable=SC2034
set -u
controlplane=$1

fail() {
  printf 'FAILED: %s\n--- output\n%s\n' "$1" "${out:-}"
  exit 1
}
# expect TEXT COMMAND...: the command succeeds and its output contains TEXT.
expect() {
  local text=$1
  shift
  out=$("$@" 2>&1) || fail "$* (exit $?)"
  grep -qE -- "$text" <<<"$out" || fail "$* : expected /$text/"
}
# expect_no TEXT COMMAND...: the command succeeds and its output does not contain TEXT.
expect_no() {
  local text=$1
  shift
  out=$("$@" 2>&1) || fail "$* (exit $?)"
  grep -qE -- "$text" <<<"$out" && fail "$* : expected no /$text/"
  return 0
}
# refuse TEXT COMMAND...: the command fails and its output contains TEXT.
refuse() {
  local text=$1
  shift
  out=$("$@" 2>&1) && fail "$* : expected a failure"
  grep -qE -- "$text" <<<"$out" || fail "$* : expected /$text/"
}
from() { "${@:2}" -f - <<<"$1"; }
say() { printf '%(%H:%M:%S)T %s\n' -1 "$*"; }
k() { "$kubectl" "$@"; }
# own_plane NODES [DIR] [LOG]: starts a control plane for this test in $dir; skips the test where
# there can be none.
own_plane() {
  local log=${3:-$work/up}
  "$controlplane" up --nodes "$1" --dir "${2:-$dir}" >"$log" 2>&1
  case $? in
    0) ;;
    77)
      cat "$log"
      exit 77
      ;;
    *) fail "no control plane: $(cat "$log")" ;;
  esac
}
# use_plane: kubectl and helm of the control plane in $dir.
use_plane() {
  export KUBECONFIG=$dir/kubeconfig
  kubectl=$("$controlplane" binary kubectl) || fail "no kubectl"
  helm=$("$controlplane" binary helm) || fail "no helm"
}
# shared_plane: kubectl and helm of the control plane that tests share, in $dir; skips the test where
# there is none.
shared_plane() {
  dir=$NOS_CONTROLPLANE_DIR
  if [ ! -f "$dir/kubeconfig" ]; then
    echo "skipped: no control plane in $dir (script/controlplane up says why)"
    exit 77
  fi
  use_plane
}
# within SECONDS COMMAND...: repeats the command until it succeeds.
within() {
  local deadline=$((SECONDS + $1))
  shift
  until out=$("$@" 2>&1); do
    [ "$SECONDS" -lt "$deadline" ] || fail "never: $*"
    sleep 0.1
  done
}
# soon TEXT COMMAND...: the output, even of a failure, contains TEXT in time.
soon() {
  local text=$1 deadline=$((SECONDS + 90))
  shift
  until out=$("$@" 2>&1) || true && grep -qE -- "$text" <<<"$out"; do
    [ "$SECONDS" -lt "$deadline" ] || fail "$* : expected /$text/"
    read -rt 0.05 <> <(:)
  done
}
# minimal_scheduler_config: a configuration of nos scheduler with one profile and no ports of its own.
minimal_scheduler_config() {
  cat <<'Y'
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
podMaxBackoffSeconds: 1
profiles:
- schedulerName: nos-scheduler
---
apiVersion: config.nos.nebuly.com/v1alpha1
kind: SchedulerConfig
health: {healthProbeBindAddress: "127.0.0.1:0"}
metrics: {bindAddress: "0"}
Y
}
