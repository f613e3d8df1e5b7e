#!/usr/bin/env bash
# script/sizes, script/words and script/codes in a small tree: each rule refuses one tree and accepts the next best.
#   lint_test.sh; exit code 77: universal-ctags is not installed
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
command -v ctags >/dev/null || { echo "skipped: universal-ctags is not installed"; exit 77; }
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/script"
cp "$root"/script/{lib.sh,sizes,words,codes} "$tree/script"
git -C "$tree" init -q
fail() { echo "FAILED: $1" | head -2; cat "$tree/.git/out"; exit 1; }
# expect SCRIPT RESULT FILE TEXT: the script accepts or refuses a tree that has the file.
expect() {
  local result=accepted
  mkdir -p "$tree/$(dirname "$3")"
  printf '%s\n' "$4" >"$tree/$3"
  "$tree/script/$1" >"$tree/.git/out" 2>&1 || result=refused
  rm "$tree/$3"
  [ "$result" = "$2" ] || fail "$1: $3 is $result: $4"
}

for name in events/events events/event_log events/events_log policies/policy_test test/mps/mps_tool_test test/fuzz/fuzz; do
  expect sizes refused "src/$name.cc" ''
done
for name in events/log events/eventful sizes/size1 mps/test_mps; do expect sizes accepted "src/$name.cc" ''; done

for i in $(seq 45); do mkdir -p "$tree/test/many" && : >"$tree/test/many/f$i.h"; done
expect sizes accepted src/a/b.cc ''
expect sizes refused test/many/g.cc ''

# class_of METHODS MEMBERS
class_of() {
  echo 'namespace { class Large { public:'
  for ((i = 0; i < $1; ++i)); do echo "void Method$i();"; done
  for ((i = 0; i < $2; ++i)); do echo "int member${i}_ = 0;"; done
  echo '}; }'
}
for file in src/a/b.h src/a/b.cc study/b.cc; do
  expect sizes accepted $file "$(class_of 40 20)"
  expect sizes refused $file "$(class_of 41 0)"
  expect sizes refused $file "$(class_of 0 21)"
done
expect sizes accepted src/b/testing/b.cc "$(class_of 60 0)"

told='The agent was told to stop'
for file in tool/run.cc tool/run.mjs tool/run.c; do expect words refused $file "// $told."; done
for file in tool/run.pl tool/run.yml tool/Makefile tool/Dockerfile .ci/Makefile; do expect words refused $file "# $told."; done
expect words refused tool/run "#!/bin/sh
# $told."
expect words accepted tool/data "# $told."
expect words refused tool/README.md "What the agent does is this."
expect words accepted tool/README.md "The agent does this."

for message in 'Evicting Pod' 'reconciliation failed' 'this clock was set back'; do
  expect words refused src/a/b.cc "Log(LogLevel::kInfo, \"$message\", {});"
done
expect words refused src/a/b.cc 'Log(LogLevel::kInfo, gone ? "lost socket" : "Found socket");'
for message in 'evicting Pod' 'failed to reconcile object' 'found socket'; do
  expect words accepted src/a/b.cc "Log(LogLevel::kInfo, \"$message\", {});"
done

# The vocabulary stays in the tree for the checks below.
mkdir -p "$tree/src/scheduling"
echo 'constexpr const char *kNoRoom = "NoRoom", *kTainted = "Tainted";' >"$tree/src/scheduling/reasons.h"
for text in 'Reason{"Full", why}' 'Reason why = {
    "Full", why}' 'Verdict::Unresolvable("Full", why)' 'progress.code = "Full";' 'return {Kind::kFailed, "Full", why};' \
  'if (verdict.code == "Full") {}' 'return {"NoRoom", why};'; do
  for library in scheduling planning controllers; do expect codes refused src/$library/a.cc "$text"; done
done
for text in 'return {codes::kNoRoom, why};' '{"Tainted", 3, &Make<Tainted>},' 'return "Tainted";' '// code = "NoRoom"'; do
  expect codes accepted src/planning/a.cc "$text"
done
expect codes accepted src/planning/a_test.cc 'EXPECT_EQ(code, "NoRoom");'
echo ok
