# Steps of a test that drives the control plane; sourced with the script's path in $1.
# shellcheck shell=bash disable=SC2034
set -u
controlplane=$1

fail() {
  printf 'FAILED: %s\n--- output\n%s\n' "$1" "${out:-}"
  exit 1
}
# expect TEXT COMMAND...: it succeeds and its output has TEXT.
expect() {
  local text=$1
  shift
  out=$("$@" 2>&1) || fail "$* (exit $?)"
  grep -qE -- "$text" <<<"$out" || fail "$* : expected /$text/"
}
# expect_no TEXT COMMAND...: it succeeds and its output has no TEXT.
expect_no() {
  local text=$1
  shift
  out=$("$@" 2>&1) || fail "$* (exit $?)"
  grep -qE -- "$text" <<<"$out" && fail "$* : expected no /$text/"
  return 0
}
# refuse TEXT COMMAND...: it fails and its output has TEXT.
refuse() {
  local text=$1
  shift
  out=$("$@" 2>&1) && fail "$* : expected a failure"
  grep -qE -- "$text" <<<"$out" || fail "$* : expected /$text/"
}
from() { "${@:2}" -f - <<<"$1"; }
