# shellcheck shell=bash
# Helpers of command-line tests. Needs $work, the test's own directory.

: "${work:?}"

fail() {
  echo "FAILED: $1"
  echo "--- output"
  cat "$work/out"
  echo "--- errors"
  cat "$work/err"
  exit 1
}
# call CODE COMMAND...: the command ends soon with this exit code.
call() {
  local code=$1
  shift
  timeout 30 "$@" >"$work/out" 2>"$work/err"
  local got=$?
  [ "$got" -eq "$code" ] || fail "$* : expected exit code $code, got $got"
}
# refuse CODE TEXT COMMAND...: prints nothing but one line on stderr, which contains TEXT.
refuse() {
  local code=$1 text=$2
  shift 2
  call "$code" "$@"
  [ ! -s "$work/out" ] || fail "$* : expected nothing on stdout"
  [ "$(wc -l <"$work/err")" -eq 1 ] || fail "$* : expected one line on stderr"
  grep -qF -- "$text" "$work/err" || fail "$* : expected '$text'"
}
