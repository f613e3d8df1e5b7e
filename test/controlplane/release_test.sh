#!/usr/bin/env bash
# Makes a release with script/release, twice: the results are the same bytes. Pushes image and chart to a
# registry on loopback and pulls them back. The pulled image's file system starts every daemon, and the
# sandbox with its dashboard; the pulled chart names the pulled image. The test sends nothing to other machines.
#
#   release_test.sh SCRIPT BUILD_FOLDER
#
# Needs root (chroot), Debian's archive for the packages of the image, and Go for crane and helm; skips
# without.
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
here=$(dirname "$(readlink -f "$0")") build=$(readlink -f "$2")
root=$here/../..
skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}
[ "$(id -u)" -eq 0 ] || skip "not root, which chroot needs"
for each in apt-get dpkg-deb node curl jq; do command -v "$each" >/dev/null || skip "no $each here"; done
[ -x "$build/nos" ] || skip "$build/nos is not built"
crane=$("$controlplane" binary crane) || { [ $? -eq 77 ] && skip "no crane"; fail "no crane"; }
helm=$("$controlplane" binary helm) || fail "no helm"
work=$(mktemp -d)
chmod 755 "$work"
# shellcheck disable=SC2034 # used by ended
declare -A pid=()
finish() {
  local code=$? each
  for each in "${pid[@]}"; do kill "$each" 2>/dev/null; done
  wait
  [ "$code" -eq 0 ] || [ "$code" -eq 77 ] || tail -n 15 "$work"/*.log
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
# background NAME COMMAND...: its output in $work/NAME.log.
background() {
  local name=$1
  shift
  setpriv --pdeathsig TERM "$@" >"$work/$name.log" 2>&1 </dev/null &
  pid[$name]=$!
}

"$root/deploy/image/unpack" amd64 "$work/reach" 'ca-certificates!' >"$work/reach.log" 2>&1 ||
  skip "no packages from Debian's archive: $(tail -n 1 "$work/reach.log")"
arch=$(dpkg --print-architecture)
version=$(sed -n 's/^version: *//p' "$root/deploy/helm/nos/Chart.yaml")

say "a registry on loopback"
background registry "$crane" registry serve --address 127.0.0.1:0
within 20 grep -q 'serving on port' "$work/registry.log"
registry=127.0.0.1:$(sed -n 's/.*serving on port \([0-9]*\).*/\1/p' "$work/registry.log")/team

say "two releases from the same inputs are the same bytes, and one is pushed"
release=("$root/script/release" "$version" --draft --arch "$arch" --binary "$arch=$build/nos"
  --registry "$registry")
expect '^image .*/team/nos@sha256:' "${release[@]}" --out "$work/one" --push --plain-http
(umask 077 && "${release[@]}" --out "$work/two") >"$work/two.log" 2>&1 || fail "$(cat "$work/two.log")"
out=$(diff -r "$work/one" "$work/two") || fail "two releases differ"
index=$(sed -n 's/^image .*@//p' "$work/one/DIGESTS")
expect "^$index$" "$crane" digest "$registry/nos:$version"
expect "^$(sed -n 's/^chart .*@//p' "$work/one/DIGESTS")$" "$crane" digest "$registry/charts/nos:$version"
refuse 'a version is like' "$root/script/release" latest
refuse 'another version than 9.9.9' "$root/script/release" 9.9.9
refuse '--push needs --registry' "$root/script/release" "$version" --push

say "the bill of materials names what is in the image"
sbom=$work/one/nos-$version-$arch.spdx.json
expect '^SPDX-2.3$' jq -r .spdxVersion "$sbom"
for each in pkg:deb/debian/libssl3@ pkg:deb/debian/libc6@ pkg:npm/react@; do
  expect "^$each" jq -r '.packages[].externalRefs[].referenceLocator' "$sbom"
done
expect '^[0-9]+$' jq '[.packages[].SPDXID] | length' "$sbom"
all=$out
expect "^$all$" jq '[.packages[].SPDXID] | unique | length' "$sbom"

say "the image comes back"
expect "^$version$" jq -r '.config.Labels["org.opencontainers.image.version"]' \
  <("$crane" config --platform "linux/$arch" "$registry/nos:$version")
expect '^65532:65532$' jq -r .config.User <("$crane" config --platform "linux/$arch" "$registry/nos:$version")
image=$work/image
mkdir "$image"
"$crane" export --platform "linux/$arch" "$registry/nos:$version" - | tar -xp -C "$image" || fail "crane export"
expect '^1777 0 0$' stat -c '%a %u %g' "$image/tmp"
[ ! -e "$image/bin/sh" ] || fail "the image has a shell"
packages=$(find "$image/var/lib/dpkg/status.d" -type f ! -name '*.md5sums' | wc -l)
expect "^$packages$" jq '[.relationships[] | select(.relationshipType == "CONTAINS" and
  (.relatedSpdxElement | startswith("SPDXRef-deb-")))] | length' "$sbom"

say "its program starts as every daemon"
nos=(chroot --userspec=65532:65532 "$image" /usr/local/bin/nos)
expect "^nos $version" "${nos[@]}" version
for each in scheduler partitioner agent operator autoscaler telemetry; do
  expect "^Usage: nos $each" "${nos[@]}" "$each" --help
  expect '^kind: ' "${nos[@]}" "$each" --print-config
done

say "it runs the sandbox, whose dashboard is in it"
free_port() { # beside those for outgoing connections
  local port
  while port=$((20000 + RANDOM % 12000)); (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do :; done
  printf '%s\n' "$port"
}
api=$(free_port) page=$(free_port)
background sandbox "${nos[@]}" sandbox --published --port "$api" --dashboard-port "$page" --kubeconfig /tmp/kubeconfig
within 60 curl -fsS "http://127.0.0.1:$page/"
grep -q '<script type="module"' <<<"$out" || fail "this is not the dashboard"
expect '"sandbox":true' curl -fsS "http://127.0.0.1:$page/api/v1/session"
within 30 curl -fsS "http://127.0.0.1:$api/api/v1/nodes"
# The command that it proposes needs no file of the container.
expect "^try: kubectl --server http://127.0.0.1:$api get pods" cat "$work/sandbox.log"
# Runs the program like docs/terminal.md: as any user, with a kubeconfig from outside.
chmod 644 "$image/tmp/kubeconfig"
expect '^GPUs ' env KUBECONFIG=/tmp/kubeconfig chroot --userspec=1234:1234 "$image" /usr/local/bin/nos status
# Published on every address, it still answers only those who name this machine.
expect '^403$' curl -s -o /dev/null -w '%{http_code}' -H 'Host: sandbox.example' "http://127.0.0.1:$page/api/v1/session"

# The API server is the sandbox's. A daemon that is ready has its caches.
say "its daemons become ready"
daemon() {
  local name=$1 kind=$2 port
  port=$(free_port)
  {
    [ "$name" != scheduler ] ||
      printf 'apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n---\n'
    printf 'apiVersion: config.nos.nebuly.com/v1alpha1\nkind: %s\n' "$kind"
    printf 'health: {healthProbeBindAddress: "127.0.0.1:%s"}\nmetrics: {bindAddress: "0"}\n' "$port"
    cat
  } >"$image/tmp/$name.yaml"
  chmod 644 "$image/tmp/$name.yaml"
  background "$name" env NODE_NAME=node-1 "${nos[@]}" "$name" --config "/tmp/$name.yaml" --kubeconfig /tmp/kubeconfig
  within 60 curl -fsS "http://127.0.0.1:$port/readyz"
}
alone='leaderElection: {leaderElect: false}'
daemon partitioner GpuPartitionerConfig <<<"$alone"
daemon scheduler SchedulerConfig </dev/null
daemon operator OperatorConfig <<<"$alone"
daemon autoscaler AutoscalerConfig <<<"$alone"$'\n'"placeholders: {image: \"$registry/nos:$version\"}"
telemetry=$(free_port)
cat >"$image/tmp/telemetry.yaml" <<Y
apiVersion: config.nos.nebuly.com/v1alpha1
kind: TelemetryConfig
listen: {bindAddress: "127.0.0.1:$telemetry"}
store: {file: /tmp/telemetry.db}
Y
background telemetry "${nos[@]}" telemetry --sandbox --config /tmp/telemetry.yaml
within 60 curl -fsS "http://127.0.0.1:$telemetry/readyz"
# The agent wants a driver, and says so after it has found all its libraries.
expect 'libnvidia-ml.so.1' sh -c "$(printf '%q ' env NODE_NAME=node-1 "${nos[@]}" agent --kubeconfig /tmp/kubeconfig) 2>&1 || true"
for each in partitioner scheduler operator autoscaler telemetry sandbox; do
  kill -TERM "${pid[$each]}"
  wait "${pid[$each]}" || fail "$each did not end by itself: $(tail -n 3 "$work/$each.log")"
  unset "pid[$each]"
done

say "the chart comes back and names the image"
expect "Digest: $(sed -n 's/^chart .*@//p' "$work/one/DIGESTS")" \
  "$helm" pull "oci://$registry/charts/nos" --version "$version" --plain-http -d "$work"
cmp -s "$work/nos-$version.tgz" "$work/one/nos-$version.tgz" || fail "the chart is another than was pushed"
expect "image: \"?$registry/nos:$version\"?$" "$helm" template nos "$work/nos-$version.tgz" -n nos-system --kube-version 1.34
expect_no 'image: "?nos:' "$helm" template nos "$work/nos-$version.tgz" -n nos-system --kube-version 1.34
echo ok
