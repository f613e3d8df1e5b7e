#!/usr/bin/env bash
# The dashboard's tests: web_test.sh unit | browser FILE | sandbox FILE NOS
# FILE: the name of one of web/test/browser/*.test.ts
# Skips (77) without the packages that script/web and script/bootstrap --browser install.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../../web"
skip() { echo "skipped: $1"; exit 77; }
[ -d node_modules ] || skip "script/web has not fetched the dashboard's packages"
[ "$1" = unit ] && exec npm run --silent test
CHROMIUM=$(command -v "${CHROMIUM:-chromium}") ||
  skip "there is no Chromium; run script/bootstrap --browser"
export CHROMIUM
[ -f dist/index.html ] || skip "script/web has not built the dashboard"

file=test/browser/$2.test.ts
case $1 in
  browser) exec npm run --silent test:browser -- "$file" ;;
  sandbox) ;;
  *) echo "unknown: $1" >&2; exit 2 ;;
esac

# The pages of the real server, on a running sandbox.
scratch=$(mktemp -d)
: >"$scratch/out"
TMPDIR=$scratch "$3" sandbox --nodes 3 --gpus 4 --speed 20 --for 18000 >"$scratch/out" 2>&1 &
sandbox=$!
trap 'kill "$sandbox" 2>/dev/null; wait "$sandbox" 2>/dev/null; rm -rf "$scratch"' EXIT
url=
for _ in $(seq 300); do
  url=$(sed -n 's/^dashboard: //p' "$scratch/out")
  [ -n "$url" ] && break
  kill -0 "$sandbox" || { cat "$scratch/out"; exit 1; }
  sleep 0.1
done
[ -n "$url" ] || { cat "$scratch/out"; echo "no dashboard"; exit 1; }
# Tests that go back in time need a past: a minute of the sandbox, some real seconds.
has_past() {
  local at
  at=$(curl -fs "${url%/}/api/v1/gpus" | sed -n 's/^{"at":\([0-9]*\).*/\1/p')
  [ -n "$at" ] && curl -fs "${url%/}/api/v1/gpus?at=$((at - 60000))" | grep -q '"node":'
}
for _ in $(seq 300); do
  has_past && break
  sleep 0.1
done
has_past || { cat "$scratch/out"; echo "the sandbox has no past"; exit 1; }
NOS_DASHBOARD_URL=$url npm run --silent test:browser -- "$file"
