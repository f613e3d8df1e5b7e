#!/usr/bin/env bash
# src/cel answers like the evaluator of kube-scheduler: the expressions in the tests of Kubernetes and
# cel-go, read from the Go module cache, and random ones. Skipped (77) without Go or its modules.
#
#   differential_test.sh BINARY DIR [COUNT] [SEED]
#
# BINARY is nos-cel-differential; DIR receives the oracle, questions and answers.
set -euo pipefail
oracle=$(dirname "$(readlink -f "$0")")/oracle
binary=$1
dir=$2
count=${3:-5000}
seed=${4:-1}
mkdir -p "$dir"

skip() {
  echo "skipped: $1" >&2
  exit 77
}
command -v go >/dev/null || skip "no Go"
if ! (cd "$oracle" && go mod download) 2>"$dir/download"; then
  skip "the Go modules of $oracle cannot be had: $(tail -1 "$dir/download")"
fi
(cd "$oracle" && go build -o "$dir/oracle" .)

# The module cache has the tests of each module.
tests=()
for module in k8s.io/dynamic-resource-allocation k8s.io/apiserver github.com/google/cel-go; do
  root=$(cd "$oracle" && go list -m -f '{{.Dir}}' "$module")
  case $module in
    k8s.io/dynamic-resource-allocation) tests+=("$root/cel/compile_test.go") ;;
    k8s.io/apiserver) tests+=("$root"/pkg/cel/library/*_test.go) ;;
    *) tests+=("$root"/{checker,ext,interpreter,parser}/*_test.go) ;;
  esac
done
"$dir/oracle" "${tests[@]}" >"$dir/published"

"$binary" ask --count "$count" --seed "$seed" --expressions "$dir/published" >"$dir/questions"
"$dir/oracle" <"$dir/questions" >"$dir/answers"
"$binary" compare "$dir/questions" "$dir/answers" "$dir/again" && exit
echo "once more, many times each:"
"$dir/oracle" <"$dir/again" >"$dir/answers"
"$binary" compare "$dir/again" "$dir/answers"
