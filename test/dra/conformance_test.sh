#!/usr/bin/env bash
# Runs the tests of Kubernetes' allocator on nos, and random problems on both.
#
#   conformance_test.sh ALLOCATOR BUILD_FOLDER       NOS_DRA_SEEDS=100000 for more problems
#
# The tests are in internal packages, so the module is copied into the build folder, and nos' files
# are added there. Without Go or the module the test is skipped.
set -euo pipefail

skip() {
  echo "SKIPPED: $*"
  exit 77
}

allocator=$1
copy=$2/dynamic-resource-allocation
here=$(cd "$(dirname "$0")" && pwd)
command -v go >/dev/null || skip "Go is missing"
module=$(cd "$here" && timeout 120 go mod download -json k8s.io/dynamic-resource-allocation 2>/dev/null |
  sed -n 's/^\t"Dir": "\(.*\)",$/\1/p') || true
[ -n "$module" ] || skip "the Go module k8s.io/dynamic-resource-allocation cannot be had"

package=structured/internal/experimental
if [ ! -e "$copy/$(basename "$module")" ]; then
  rm -rf "$copy"
  mkdir -p "$2"
  cp -r "$module" "$copy"
  chmod -R u+w "$copy"
  touch "$copy/$(basename "$module")"
fi
rm -f "$copy/$package"/nos_*_test.go
cp "$here"/upstream/*_test.go "$copy/$package/"
cd "$copy"
timeout 1500 nice -n 5 go test -p 1 -c -o nos.test "./$package" 2>build.log || {
  grep -qE 'dial tcp|no such host|connection refused|i/o timeout' build.log && skip "a Go module cannot be had"
  cat build.log
  exit 1
}

# Two cases that cannot be compared:
# - JSON has no difference between an empty list and none, on which the first is based;
# - nos caps quantities at 2^63-1, as apimachinery did before; the second has 10^21.
incomparable='^(list-attributes-distinct-constaint-with-empty-or-unknown-type|consumable-capacity-requests-are-not-modified)$'
log=run.log
NOS_DRA_ALLOCATOR=$allocator timeout 1500 ./nos.test -test.run 'TestNosConformance|TestNosRandom' \
  -test.skip "TestNosConformance/$incomparable" >"$log" 2>&1 && result=0 || result=$?
grep -E '^nos |^ *--- FAIL|seed [0-9]+:|^panic|^FAIL' "$log" | cut -c1-500 || true
exit "$result"
