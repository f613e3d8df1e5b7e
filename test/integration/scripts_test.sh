#!/usr/bin/env bash
# script/nightly and script/test in a tree whose builds and most tests are stubs: a green night is green twice, a
# part or a build that fails is counted, and a test that could not run is not counted as skipped. script/release
# refuses a changelog that does not fit the version, and takes this tree's.
set -euo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
fail() { echo "FAILED: $1"; cat "$tree/out"; exit 1; }

mkdir -p "$tree/script" "$tree/bin" "$tree/build/release/bench"
cp "$root/script/nightly" "$root/script/test" "$root/script/lib.sh" "$tree/script"
stub() { printf '#!/bin/sh\n%s\n' "$2" >"$1"; chmod +x "$1"; }
for name in script/bootstrap script/lint script/web build/release/nos build/release/bench/nos_bench_x; do
  stub "$tree/$name" 'exit 0'
done
stub "$tree/bin/git" 'echo abc'
stub "$tree/bin/cmake" 'exit 0'
stub "$tree/bin/ctest" 'exit 0'
stub "$tree/build/release/bench/nos_bench_x" 'echo name,time'
export PATH=$tree/bin:$PATH

nightly() { (cd "$tree" && script/nightly --seeds 10 "$@") >"$tree/out" 2>&1; }
totals() { tail -1 "$tree/out"; }

nightly lint tsan asan chaos bench || fail "a green night fails"
[ "$(totals)" = "20 passed, 0 failed" ] || fail "a green night does not say so"
nightly lint tsan asan chaos bench || fail "the second green night fails"
[ "$(totals)" = "20 passed, 0 failed" ] || fail "the second night ran nothing"
grep -q "seeds 1010 to 1019: ok" "$tree/build/nightly/log" || fail "the second night repeats seeds"

stub "$tree/build/release/bench/nos_bench_x" 'exit 134'
! nightly bench || fail "a benchmark that crashes passes"
[ "$(totals)" = "0 passed, 1 failed" ] || fail "a benchmark that crashes is not counted"
stub "$tree/bin/cmake" 'exit 1'
! nightly tsan chaos || fail "a night without builds passes"
[ "$(totals)" = "0 passed, 2 failed" ] || fail "a failed build ends the night"

# An interrupted fault simulation does not use up its seeds.
stub "$tree/bin/cmake" 'exit 0'
before=$(cat "$tree/build/nightly/seed-plain")
# shellcheck disable=SC2016
stub "$tree/build/release/nos" 'kill -KILL $PPID'
! nightly chaos || fail "an interrupted night passes"
[ "$(cat "$tree/build/nightly/seed-plain")" = "$before" ] || fail "an interrupted night uses up seeds"

# Versions of Kubernetes: each test is a part; what is skipped says why, and a control plane that does not start is
# counted once.
mkdir -p "$tree"/test/controlplane/kubernetes-1.{98,99} "$tree/build/release/test/controlplane"
tests=(policies chart e2e kubelet handover operator quotas scheduler_differential dra_differential dra_driver)
for name in "${tests[@]}"; do
  # shellcheck disable=SC2016
  stub "$tree/test/controlplane/${name}_test.sh" 'echo "$NOS_KUBERNETES $0" >>"$CALLS"'
done
stub "$tree/build/release/test/controlplane/nos_contract_test" 'exit 0'
stub "$tree/test/controlplane/dra_driver_test.sh" 'echo "skipped: too old"; exit 77'
# shellcheck disable=SC2016
stub "$tree/script/controlplane" 'echo "$NOS_KUBERNETES $1" >>"$CALLS"; [ "$1 $NOS_KUBERNETES" != "up $BROKEN" ] || exit "$CODE"'
export CALLS=$tree/calls BROKEN='' CODE=1
nightly versions || fail "a green night of versions fails"
[ "$(totals)" = "22 passed, 0 failed" ] || fail "not every test on every version"
grep -q 'dra_driver on Kubernetes 1.98: skipped: too old' "$tree/out" || fail "a skipped test does not say why"
[ "$(grep -c ' up$' "$CALLS")" = 2 ] || fail "not one control plane for each version: $(cat "$CALLS")"
[ "$(tail -n 1 "$CALLS")" = '1.99 down' ] || fail "a control plane stays"
: >"$CALLS"
nightly versions --kubernetes 1.99 || fail "one version fails"
[ "$(totals)" = "11 passed, 0 failed" ] || fail "one version is more, or less"
! grep -q '^1.98' "$CALLS" || fail "another version than the one asked for"
! nightly versions --kubernetes 1.97 || fail "takes a version that is not there"
stub "$tree/test/controlplane/e2e_test.sh" 'exit 1'
! BROKEN=1.99 nightly versions || fail "a version without a control plane passes"
[ "$(totals)" = "10 passed, 2 failed" ] || fail "a test and a control plane that fail are counted once each"
BROKEN=1.99 CODE=77 nightly versions --kubernetes 1.99 || fail "a version that cannot be built fails"
[ "$(totals)" = "0 passed, 0 failed" ] || fail "a version that cannot be built is counted"

junit='<testsuite name="x" tests="4" failures="0" disabled="0" skipped="3">
<testcase status="run"/>
<testcase><skipped message="SKIP_RETURN_CODE=77"/></testcase>
<testcase><skipped message="Unable to find executable"/></testcase>
<testcase><skipped message="Required Files Missing"/></testcase>
</testsuite>'
# shellcheck disable=SC2016
stub "$tree/bin/ctest" 'while [ $# -gt 0 ]; do [ "$1" = --output-junit ] && echo "$JUNIT" >"$2"; shift; done'
export JUNIT=$junit
try_tests() { (cd "$tree" && script/test) >"$tree/out" 2>&1; }
! try_tests || fail "tests that could not run pass"
[ "$(totals)" = "1 passed, 2 failed, 1 skipped" ] || fail "tests that could not run are skipped"

# A test of a cluster fails, and is tried again: AGAIN is the result of its second try. ctest itself runs these, and
# runs a fixture beside the test, as for the tests that share a control plane.
rm "$tree/bin/ctest" "$tree/bin/cmake"
rm -rf "$tree/build/release"
cat >"$tree/CMakeLists.txt" <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(retried NONE)
enable_testing()
add_test(NAME controlplane.up COMMAND true)
set_tests_properties(controlplane.up PROPERTIES FIXTURES_SETUP plane)
add_test(NAME controlplane.sharing COMMAND ${CMAKE_SOURCE_DIR}/bin/second)
set_tests_properties(controlplane.sharing PROPERTIES FIXTURES_REQUIRED plane SKIP_RETURN_CODE 77)
add_test(NAME unit COMMAND true)
CMAKE
cat >"$tree/CMakePresets.json" <<'JSON'
{"version": 6, "configurePresets": [{"name": "release", "generator": "Ninja", "binaryDir": "build/release"}],
 "buildPresets": [{"name": "release", "configurePreset": "release"}],
 "testPresets": [{"name": "release", "configurePreset": "release"}]}
JSON
# shellcheck disable=SC2016
stub "$tree/bin/second" '[ -e "$0.ran" ] || { touch "$0.ran"; exit 1; }
case $AGAIN in passes) exit 0 ;; skips) exit 77 ;; fails) exit 1 ;; esac'
AGAIN=passes try_tests || fail "a test that passes at the second try fails"
[ "$(totals)" = "2 passed, 0 failed, 0 skipped" ] || fail "a retried test counts as passed"
grep -qx 'retried tests passed at the second try only: 1' "$tree/out" || fail "the totals do not say retried"
for result in skips fails; do
  rm "$tree/bin/second.ran"
  ! AGAIN=$result try_tests || fail "a test that $result at the second try passes"
  [ "$(totals)" = "2 passed, 1 failed, 0 skipped" ] || fail "a test that $result is not counted"
done
rm -rf "$tree/build/release" "$tree/CMakePresets.json"

# script/release before it makes anything. The stub of git says that there are uncommitted changes.
cp "$root/script/release" "$tree/script"
mkdir -p "$tree/deploy/helm/nos"
echo 'project(nos VERSION 1.2.3 LANGUAGES CXX)' >"$tree/CMakeLists.txt"
printf 'version: 1.2.3\nappVersion: 1.2.3\n' >"$tree/deploy/helm/nos/Chart.yaml"
# released TEXT MESSAGE: with this changelog it ends with this error.
released() {
  printf '%b' "$1" >"$tree/CHANGELOG.md"
  ! (cd "$tree" && script/release 1.2.3) >"$tree/out" 2>&1 || fail "it makes a release"
  [ "$(cat "$tree/out")" = "error: $2" ] || fail "another error than: $2"
}
released '# Changelog\n\n## [1.2.2] - 2026-01-02\n' "CHANGELOG.md has no line '## [1.2.3] - YYYY-MM-DD'"
released '## [Unreleased]\n\n### Added\n\n- More.\n\n## [1.2.3] - 2026-01-02\n' \
  'CHANGELOG.md has changes below [Unreleased]: move them to the section [1.2.3]'
for begin in '' '## [Unreleased]\n\n'; do
  released "$begin## [1.2.3] - 2026-01-02\n\n- More.\n" 'there are changes that no commit has (git status); --draft takes them'
done

# script/release takes this tree's version, chart and changelog, once the changes below [Unreleased] are in the
# version's section. The commit that makes a release moves them there; until then they may stay.
stub "$tree/bin/git" 'exit 0'
cp "$root/CMakeLists.txt" "$tree"
cp "$root/deploy/helm/nos/Chart.yaml" "$tree/deploy/helm/nos"
version=$(sed -n 's/^version: *//p' "$root/deploy/helm/nos/Chart.yaml")
# check_release LEFT: with the line LEFT below [Unreleased]
check_release() {
  awk -v left="$1" '/^## \[Unreleased\]$/ {moves = 1; print; if (left) print "\n" left; next}
    moves && /^## / {moves = 0; print; printf "%s", moved; next}
    moves {moved = moved $0 "\n"; next}
    {print}' "$root/CHANGELOG.md" >"$tree/CHANGELOG.md"
  (cd "$tree" && script/release "$version" --check) >"$tree/out" 2>&1
}
check_release '' || fail "script/release $version does not take this tree"
[ "$(cat "$tree/out")" = "$version can be released from this commit" ] || fail "script/release --check does not say so"
[ ! -e "$tree/build/release-$version" ] || fail "script/release --check makes a release"
! check_release "- More." || fail "a changelog with changes below [Unreleased] is released"
grep -q 'CHANGELOG.md has changes below \[Unreleased\]' "$tree/out" || fail "another error than [Unreleased]"
echo "nights, totals and releases are right"
