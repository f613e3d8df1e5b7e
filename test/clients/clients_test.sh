#!/usr/bin/env bash
# Runs an official Kubernetes client against `nos sandbox`.
#
#   clients_test.sh NOS python|go|javascript
#
# The client is installed into a cache (~/.cache/nos, $NOS_CACHE). Exits with 77 (skipped) where its
# runtime is absent or it cannot be installed.
set -u

nos=$1
language=$2
here=$(cd "$(dirname "$0")" && pwd)/$language
caches=${NOS_CACHE:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/nos}

skip() {
  echo "skipped: $1"
  exit 77
}
# cached FILE...: the folder for what is made from these files.
cached() {
  echo "$caches/client-$language/$(cat "$@" | sha256sum | cut -c1-16)"
}
# once FOLDER COMMAND...: runs the command in a new folder and moves that to FOLDER if it succeeds, so
# that a broken installation is never used.
once() {
  local folder=$1 log
  shift
  [ -e "$folder" ] && return
  mkdir -p "$(dirname "$folder")"
  log=$(mktemp)
  rm -rf "$folder.new.$$"
  mkdir "$folder.new.$$"
  if (cd "$folder.new.$$" && "$@") >"$log" 2>&1; then
    mv -T "$folder.new.$$" "$folder" 2>/dev/null || rm -rf "$folder.new.$$"
    rm -f "$log"
    return
  fi
  rm -rf "$folder.new.$$"
  skip "the $language client cannot be installed: $(tail -n 1 "$log")"
}

prepare_python() {
  command -v python3 >/dev/null || skip "no python3 on this machine"
  folder=$(cached "$here/requirements.txt")
  once "$folder" python3 -m pip install --quiet --disable-pip-version-check --target . -r "$here/requirements.txt"
  run=(env PYTHONPATH="$folder" PYTHONDONTWRITEBYTECODE=1 python3 "$here/client_test.py")
}
build_go() { (cd "$here" && "$go" build -trimpath -o "$OLDPWD/client_test" .); }
prepare_go() {
  go=$(command -v go || echo /usr/local/go/bin/go)
  [ -x "$go" ] || skip "no Go on this machine"
  folder=$(cached "$here"/go.mod "$here"/go.sum "$here"/main.go)
  once "$folder" build_go
  run=("$folder/client_test")
}
install_javascript() { cp "$here"/package.json "$here"/package-lock.json . && npm ci --no-audit --no-fund; }
prepare_javascript() {
  command -v node >/dev/null || skip "no node on this machine"
  command -v npm >/dev/null || skip "no npm on this machine"
  folder=$(cached "$here"/package.json "$here"/package-lock.json)
  once "$folder" install_javascript
  # Node looks for modules beside the script.
  cp "$here/client_test.mjs" "$folder/"
  run=(node "$folder/client_test.mjs")
}

"prepare_$language"
work=$(mktemp -d)
"$nos" sandbox --workload none --nodes 1 --gpus 1 --speed 20 --dashboard-port 0 \
  --kubeconfig "$work/kubeconfig" >"$work/log" 2>&1 &
sandbox=$!
end() {
  kill "$sandbox" 2>/dev/null
  wait "$sandbox" 2>/dev/null
  rm -rf "$work"
}
trap end EXIT
for _ in $(seq 200); do
  [ -s "$work/kubeconfig" ] && break
  kill -0 "$sandbox" 2>/dev/null || break
  sleep 0.05
done
if ! timeout 240 "${run[@]}" "$work/kubeconfig"; then
  echo "--- the sandbox's log"
  tail -n 40 "$work/log"
  exit 1
fi
