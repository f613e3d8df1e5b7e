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
