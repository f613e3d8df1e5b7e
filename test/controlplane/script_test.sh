#!/usr/bin/env bash
# Tests script/controlplane itself: wrong arguments are refused with a hint, a second `up` changes
# nothing, a crashed component is noticed and replaced, stored objects survive a restart of the API
# server, and a Ctrl-C midway leaves no process behind.
#
#   script_test.sh SCRIPT
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
work=$(mktemp -d)
dir=$work/plane
end() {
  "$controlplane" down --dir "$dir" >/dev/null 2>&1
  rm -rf "$work"
}
trap end EXIT
# Prints the components' processes; the brackets keep grep from finding itself.
alive() { grep -lE -- "[=]$dir/" /proc/[0-9]*/cmdline 2>/dev/null || true; }

# --- arguments
expect 'kube-apiserver' "$controlplane" --help
refuse 'a command is missing' "$controlplane"
refuse "unknown command 'upp'" "$controlplane" upp
refuse 'number from 0 to 10000' "$controlplane" up --dir "$dir" --nodes many
refuse 'no control plane in' "$controlplane" stop etcd --dir "$dir"
refuse 'no program' "$controlplane" binary emacs
refuse "no Kubernetes '1.0'; one of: .*1.37" "$controlplane" up --dir "$dir" --kubernetes 1.0
mkdir "$work/photos"
touch "$work/photos/one.jpg"
refuse "is not a control plane's" "$controlplane" up --dir "$work/photos"
refuse "is not a control plane's" "$controlplane" down --dir "$work/photos"
expect '' "$controlplane" down --dir "$work/never"

# --- without programs and without Go
mkdir "$work/bin"
for tool in bash env dirname readlink cat sha256sum cut sed grep head sort realpath mkdir touch flock ls; do
  ln -s "$(command -v "$tool")" "$work/bin/$tool"
done
if [ ! -x /usr/local/go/bin/go ]; then
  refuse 'there is no Go' env -u KUBEBUILDER_ASSETS PATH="$work/bin" NOS_CACHE="$work/empty" \
    "$controlplane" up --dir "$dir"
fi
cat >"$work/bin/go" <<'EOF'
#!/bin/sh
[ "$1" = version ] && echo go version go1.19.8 linux/amd64 && exit
echo "go: errors parsing go.mod: invalid go version '1.24.0': must match format 1.23" >&2
exit 1
EOF
chmod +x "$work/bin/go"
refuse 'go1.19.8 .* will not do' env -u KUBEBUILDER_ASSETS PATH="$work/bin" NOS_CACHE="$work/empty" \
  "$controlplane" up --dir "$dir"
env -u KUBEBUILDER_ASSETS PATH="$work/bin" NOS_CACHE="$work/empty" "$controlplane" up --dir "$dir" \
  >/dev/null 2>&1
status=$?
[ "$status" -eq 77 ] || fail "without Go: exit $status, not 77"

# --- a version of Kubernetes whose module is not to be had
cat >"$work/bin/go" <<'EOF'
#!/bin/sh
[ "$1" != mod ] || { echo "go: k8s.io/kubernetes: 404 Not Found" >&2 && exit 1; }
EOF
out=$(env PATH="$work/bin" NOS_CACHE="$work/empty" "$controlplane" binary kube-apiserver --kubernetes 1.37 2>&1)
status=$?
[ "$status" -eq 77 ] || fail "without the module of a version: exit $status, not 77"
grep -q 'kubernetes-1.37/go.mod.*404 Not Found' <<<"$out" || fail "the message names no module"

# --- Ctrl-C midway
"$controlplane" up --dir "$dir" --nodes 0 >"$work/up.log" 2>&1 &
up=$!
until [ -s "$dir/kube-apiserver.pid" ]; do
  kill -0 "$up" 2>/dev/null || break
  sleep 0.02
done
if [ ! -s "$dir/kube-apiserver.pid" ]; then
  wait "$up"
  status=$?
  cat "$work/up.log"
  exit "$status"
fi
kill -TERM "$up"
wait "$up"
status=$?
out=$(<"$work/up.log")
[ "$status" -eq 130 ] || fail "interrupted: exit $status, not 130"
[ -z "$(alive)" ] || fail "interrupted: still running: $(alive)"

# --- a complete life cycle
expect "export KUBECONFIG=$dir/kubeconfig" "$controlplane" up --dir "$dir" --nodes 1
before=$(alive)
[ "$(wc -w <<<"$before")" -eq 5 ] || fail "five processes, not: $before"
expect 'already running' "$controlplane" up --dir "$dir"
[ "$(alive)" = "$before" ] || fail "a second up started something"
refuse 'first: script/controlplane down' "$controlplane" up --dir "$dir" --kubernetes 1.37
expect 'kube-scheduler +running +pid [0-9]+ +port [0-9]+ +[0-9]+ MiB' "$controlplane" status --dir "$dir"
expect '' "$controlplane" kill kube-scheduler --dir "$dir"
refuse 'kube-scheduler +stopped' "$controlplane" status --dir "$dir"
expect 'ready after' "$controlplane" up --dir "$dir" --nodes 0

kubectl=$("$controlplane" binary kubectl) || fail "no kubectl"
k() { "$kubectl" --kubeconfig "$dir/kubeconfig" "$@"; }
expect created k create deployment web --image example/any:1
expect '' "$controlplane" restart etcd --dir "$dir"
expect '' "$controlplane" stop kube-apiserver --dir "$dir"
refuse 'refused' k get nodes
expect '' "$controlplane" start kube-apiserver --dir "$dir"
expect scaled k scale deployment/web --replicas 2
expect 'condition met' k wait --for=jsonpath='{.status.readyReplicas}'=2 deployment/web --timeout 90s
expect 'kube-scheduler +running' "$controlplane" status --dir "$dir"
refuse 'no token for service account' "$controlplane" kubeconfig x --dir "$dir" --namespace default \
  --serviceaccount nobody
expect 'stopped' "$controlplane" down --dir "$dir"
[ -z "$(alive)" ] || fail "after down: still running: $(alive)"
[ ! -e "$dir/etcd" ] || fail "after down: data is still there"
[ -s "$dir/kube-apiserver.log" ] || fail "after down: the logs are gone"
echo ok
