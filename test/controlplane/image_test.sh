#!/usr/bin/env bash
# nos from nothing to a running slice, and to shares by MPS, as docs/install.md has it: image and chart of a
# release come from a registry, the chart alone configures every daemon, and a real kubelet with containerd and
# runc runs them on the real control plane, with pods, Services and names of their own network. Doubles are:
# the GPUs, their driver's files and its MPS daemon, NVIDIA's container runtime, and the GPU Operator, which puts
# these and labels on a node.
#
#   image_test.sh SCRIPT BUILD_FOLDER [RELEASE]
#
# RELEASE is a result of script/release VERSION --registry 127.0.0.1:5000/team; without it the test makes
# one of the build's program, with packages of Debian's archive. Needs root; skips where something is
# missing.
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
here=$(dirname "$(readlink -f "$0")") build=$(readlink -f "$2")
root=$here/../..
# shellcheck source=test/controlplane/network.sh
. "$here/network.sh"
registry=127.0.0.1:5000/team version=$(sed -n 's/^version: *//p' "$root/deploy/helm/nos/Chart.yaml")
skip() {
  printf 'skipped: %s\n' "$*"
  exit 77
}

# 1. Outside: what needs the network of the machine.
if [ -z "${NOS_IMAGE_TEST:-}" ]; then
  [ "$(id -u)" -eq 0 ] || skip "not root, which a kubelet needs"
  why=$(why_no_network) && skip "$why"
  [ -x "$build/nos" ] || skip "$build/nos is not built"
  for each in kube-proxy kubelet containerd ctr etcd kubectl helm crane; do
    "$controlplane" binary "$each" >/dev/null || { [ $? -eq 77 ] && exit 77; fail "no $each"; }
  done
  NOS_IMAGE_TEST=$(mktemp -d)
  chmod 755 "$NOS_IMAGE_TEST"
  trap 'rm -rf "$NOS_IMAGE_TEST"' EXIT
  arch=$(dpkg --print-architecture)
  # The doubled MPS daemon is a script, and the image has no shell.
  "$root/deploy/image/unpack" "$arch" "$NOS_IMAGE_TEST/shell" 'bash-static!' 'busybox-static!' >"$NOS_IMAGE_TEST/log" 2>&1 ||
    skip "no packages from Debian's archive: $(tail -n 1 "$NOS_IMAGE_TEST/log")"
  if [ -n "${3:-}" ]; then
    ln -s "$(readlink -f "$3")" "$NOS_IMAGE_TEST/release"
  else
    say "a release"
    "$root/script/release" "$version" --draft --arch "$arch" --binary "$arch=$build/nos" \
      --registry "$registry" --out "$NOS_IMAGE_TEST/release" >"$NOS_IMAGE_TEST/log" 2>&1 ||
      fail "script/release: $(cat "$NOS_IMAGE_TEST/log")"
  fi
  trap - EXIT
  export NOS_IMAGE_TEST
  enter_network "$0" "$@"
fi

# 2. Inside the test's own network.
work=$NOS_IMAGE_TEST
dir=$work/plane node=gpu-node-1 team=default system=nos-system
declare -A pid=()
kubectl=$("$controlplane" binary kubectl)
finish() {
  local code=$?
  if [ "$code" -ne 0 ] && [ "$code" -ne 77 ]; then
    k get pods -A -o wide
    k get events -A --sort-by=.lastTimestamp | tail -n 30
    tail -n 15 "$work"/*.log "$work"/network/*.log "$work"/node/*.log "$work"/node/logs/*/*/*.log
  fi
  [ -z "${pid[kubelet]:-}" ] || { kill "${pid[kubelet]}" && wait "${pid[kubelet]}"; } 2>/dev/null
  kill "${pid[@]}" 2>/dev/null
  "$controlplane" down --dir "$dir" >/dev/null 2>&1
  wait
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
# shellcheck source=test/controlplane/driver_of_node.sh
. "$here/driver_of_node.sh"
# shellcheck source=test/controlplane/mps_of_node.sh
. "$here/mps_of_node.sh"

say "a registry has image and chart"
crane=$("$controlplane" binary crane)
setpriv --pdeathsig TERM "$crane" registry serve --address "${registry%/*}" >"$work/registry.log" 2>&1 &
pid[registry]=$!
within 20 grep -q 'serving on port' "$work/registry.log"
NOS_CONTROLPLANE_ONLY="etcd kube-apiserver kube-controller-manager kube-scheduler"
NOS_FLAGS_KUBE_APISERVER=$(plane_flags)
export NOS_CONTROLPLANE_ONLY NOS_FLAGS_KUBE_APISERVER
own_plane 0
use_plane
index=$(sed -n 's/^image .*@sha256://p' "$work/release/DIGESTS")
mkdir "$work/push"
cp "$work/release/image/oci-layout" "$work/push"
cp "$work/release/image/blobs/sha256/$index" "$work/push/index.json"
ln -s "$(readlink -f "$work/release/image/blobs")" "$work/push/blobs"
expect "$index" "$crane" push --index "$work/push" "$registry/nos:$version"
expect . "$crane" push "$work/release/chart" "$registry/charts/nos:$version"

say "a node with a GPU joins"
make_machine '{"model": "A100-40GB"}'
# The agent loads this one; the node's nvidia-smi prints the devices that it sees.
cp "$nvml" "$work/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15"
mkdir -p "$work/driver/usr/bin"
gcc -static -O1 -o "$work/driver/usr/bin/nvidia-smi" "$here/sleeper.c" || fail "gcc"
make_toolkit "$work/shell/usr/bin"
export NOS_NODE_TOOLKIT=$work/toolkit NOS_NODE_DEVICES=$work/dev NOS_NODE_PROC=$work/proc NOS_NODE_DRIVER=$work/driver NOS_NODE_PODS=$pods_network
NOS_CONTROLPLANE_DIR=$dir setpriv --pdeathsig TERM "$here/kubelet.sh" "$node" "$work/node" >"$work/kubelet.sh.log" 2>&1 &
pid[kubelet]=$!
until k get node "$node" >/dev/null 2>&1; do
  if ! kill -0 "${pid[kubelet]}" 2>/dev/null; then
    wait "${pid[kubelet]}" || { [ $? -eq 77 ] && skip "$(cat "$work/kubelet.sh.log")"; fail "no kubelet"; }
  fi
  sleep 0.2
done
start_network "$node" "$work/network"
expect 'condition met' k wait --for=condition=Ready "node/$node" --timeout 120s
# The operator's labels: it has all its pods on each node with GPUs.
expect labeled k label node "$node" nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/gpu.count=1 \
  nvidia.com/gpu.deploy.device-plugin=true
# The page's image, whose content is the test's.
expect . env NOS_CONTROLPLANE_DIR="$dir" "$here/kubelet.sh" "$node" "$work/node" ctr images tag \
  docker.io/nos-test/sleeper:1 docker.io/nvidia/cuda:12.4.1-base-ubuntu22.04
mkdir -m 777 "$work/store"
expect created from "
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 20Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: $work/store}
" k create
cat >"$work/doubles.yaml" <<Y
gpuPartitioner:
  migAgent:
    extraEnv: [{name: NOS_NVML_DOUBLE_STATE, value: /doubles/gpus.json}]
    extraVolumes: [{name: doubles, hostPath: {path: $work}}]
    extraVolumeMounts: [{name: doubles, mountPath: /doubles}]
Y

# The page's commands, except those that install the GPU Operator; it and its names are this test's. Before
# the first slice the node has the capacity for which the operator's validator waits.
say "the ten commands of docs/install.md"
# A command of the section's console blocks follows "$ "; a here document is a part of it.
awk '
  /^## / { on = /in ten commands/; next }
  !on { next }
  /^```/ { code = /console/; next }
  !code { next }
  inside { print; inside = $0 != "EOF"; next }
  sub(/^\$ /, "") { print; inside = /<<EOF/ }' "$root/docs/install.md" >"$work/page"
expect '^10$' grep -cE '^(helm|kubectl) ' "$work/page"
expect '^2$' grep -cE '^helm (repo add|install gpu-operator) ' "$work/page"
sed -E "/^helm (repo add|install gpu-operator) /d; s|REGISTRY|$registry|; s|NODE|$node|; s|--version [^ ]*|--version $version|
  s|^kubectl rollout status .*|&\nkubectl wait node/$node --for=jsonpath='{.status.capacity.nvidia\\\\.com/gpu}'=1 --timeout=60s|
  s|^helm pull .*|& --plain-http|; s|^helm install nos .*|& -f $work/doubles.yaml|" "$work/page" >"$work/commands"
mkdir "$work/programs" "$work/typed"
ln -s "$helm" "$work/programs/helm"
ln -s "$kubectl" "$work/programs/kubectl"
(cd "$work/typed" && PATH=$work/programs:$PATH timeout 300 bash -eux "$work/commands") >"$work/typed.log" 2>&1 ||
  fail "docs/install.md: $(cat "$work/typed.log")"
out=$(cat "$work/typed.log")
grep -q "^device /dev/nvidia$gpu " <<<"$out" || fail "the page's pod has no GPU"
grep -q "^NVIDIA_VISIBLE_DEVICES=void" <<<"$out" || fail "the page's pod has its device by another way than CDI"
expect '^ContainerDeviceInterface$' k get node "$node" -o \
  jsonpath='{.status.conditions[?(@.type=="nos.nebuly.com/DeviceHandover")].reason}'

say "telemetry, dashboard and autoscaler, by one value each"
expect 'STATUS: deployed' "$helm" upgrade nos "$work/typed/nos" -n "$system" --reuse-values --wait --timeout 3m \
  --set telemetry.enabled=true --set autoscaler.enabled=true

say "every daemon is ready, from the image in the registry"
daemons=(deployment/nos-{gpu-partitioner,scheduler,operator,autoscaler} statefulset/nos-telemetry daemonset/nos-mig-agent)
for each in "${daemons[@]}"; do
  expect 'successfully rolled out|roll out complete' k rollout status "$each" -n "$system" --timeout 120s
done
expect "^${#daemons[@]}\$" sh -c "$(printf '%q ' "$kubectl" get deployments,statefulsets,daemonsets -A -o name) | wc -l"
expect "^$registry/nos:$version\$" sh -c "$(printf '%q ' "$kubectl" get pods -n "$system" -o \
  'jsonpath={range .items[*].spec.containers[*]}{.image}{"\n"}{end}') | sort -u"
[ "$(wc -l <<<"$out")" = 1 ] || fail "images of other origin"
expect '^0( 0)*$' k get pods -n "$system" -o jsonpath='{.items[*].status.containerStatuses[*].restartCount}'

say "their metrics are served, to those with the right"
expect created k create serviceaccount scraper
expect created k create clusterrolebinding scraper --clusterrole=nos-metrics-reader --serviceaccount=default:scraper
scraper=$(k create token scraper)
while read -r name address; do
  [ "$address" != None ] || address=$(k get endpoints "$name" -n "$system" -o jsonpath='{.subsets[0].addresses[0].ip}' 2>/dev/null)
  if [ "$name" = nos-telemetry-metrics ]; then # it names no tenants
    expect '^nos_' curl -fsS "http://$address:8080/metrics"
    continue
  fi
  refuse '401' curl -fsSk "https://$address:8080/metrics"
  expect '^nos_' curl -fsSk -H "Authorization: Bearer $scraper" "https://$address:8080/metrics"
done < <(k get services -n "$system" --no-headers -o custom-columns=:.metadata.name,:.spec.clusterIP | grep -e '-metrics ')

say "the dashboard is served, and has the agent's and the operator's reports"
k get configmap nos-telemetry-ca -n "$system" -o jsonpath='{.data.ca\.crt}' >"$work/ca.crt"
address=$(k get service nos-telemetry -n "$system" -o jsonpath='{.spec.clusterIP}')
host=nos-telemetry.$system.svc
expect created k create serviceaccount reader
expect created k create clusterrolebinding reader --clusterrole=cluster-admin --serviceaccount=default:reader
token=$(k create token reader)
browser() { curl -fsS --cacert "$work/ca.crt" --resolve "$host:443:$address" -H "Authorization: Bearer $token" "https://$host/$1"; }
expect '<script type="module"' browser ''
soon "\"$node\"" browser api/v1/gpus
soon '"hello-slice"' browser api/v1/workloads

say "the API server reaches the operator's webhooks"
expect created from "
apiVersion: v1
kind: Pod
metadata: {name: by-need, annotations: {nos.nebuly.com/need-memory: 4Gi}}
spec:
  schedulerName: nos-scheduler
  containers: [{name: main, image: 'docker.io/nos-test/sleeper:1'}]
" k create
expect '^{"nvidia.com/mig-1g.5gb":"1"}$' k get pod by-need -o jsonpath='{.spec.containers[0].resources.limits}'
quota() { printf 'apiVersion: nos.nebuly.com/v1alpha1\nkind: ElasticQuota\nmetadata: {name: %s}\nspec: %s\n' "$@"; }
expect created from "$(quota one '{min: {nvidia.com/mig-1g.5gb: 1}}')" k create
refuse 'admission webhook "quotas.nos.nebuly.com" denied' from "$(quota two '{min: {nvidia.com/mig-1g.5gb: 1}}')" k create

say "a pod of nos scheduler runs on a slice, and has its devices and no others"
numbers=$(seq -f "$tty:%g" 18 62 | tr '\n' ' ')
expect created from "
apiVersion: v1
kind: Pod
metadata: {name: slice}
spec:
  schedulerName: nos-scheduler
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: docker.io/nos-test/sleeper:1
    env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}, {name: PROBE, value: '$numbers'}]
    resources: {limits: {nvidia.com/mig-3g.20gb: 1}}
" k create
for each in by-need slice; do
  expect 'condition met' k wait --for=jsonpath='{.status.phase}'=Running "pod/$each" --timeout 60s
done
sees slice "$(k get node "$node" -o jsonpath='{.metadata.annotations.nos\.nebuly\.com/status-layout-0}' |
  grep -oE '3g.20gb@[0-9]' | cut -d@ -f2)" void
expect '"slice"' browser api/v1/workloads

say "nos check finds nothing failed"
out=$("$build/nos" check -o json) || fail "nos check: $?"
for each in PartitionerReady AgentReady SchedulerReady OperatorReady AutoscalerReady TelemetryServerReady \
  WebhookEndpoints AgentOnNodeReady TelemetryReporter TelemetryRecords; do
  verdict=$(jq -r --arg code "$each" '[.. | objects | select(.code? == $code) | .verdict] | unique | join(" ")' <<<"$out")
  [ "$verdict" = OK ] || fail "nos check says $each: $verdict"
done

say "asked to end, they end by themselves"
declare -a end_of=()
for each in partitioner agent operator scheduler autoscaler telemetry; do
  # Keeps the log file open, because it is deleted with the pod.
  exec {log}<"$(echo "$work/node/logs/$system"_*/"$each"/0.log | cut -d' ' -f1)" || fail "no log of $each"
  end_of+=("$log")
done
expect uninstalled "$helm" uninstall nos -n "$system"
expect 'condition met|no matching resources' k wait --for=delete pods --all -n "$system" --timeout 60s
for log in "${end_of[@]}"; do expect '"stopping nos"' cat "/dev/fd/$log"; done

say "make deploy installs the image that it is given"
deploy() { PATH=$work/programs:$PATH make -C "$root" "$1" IMG="$registry/nos:$version" NAMESPACE="$system" ARGS="${2:-}"; }
expect deleted k delete pods --all
leave_mig
expect 'STATUS: deployed' deploy deploy "-f $root/deploy/helm/nos/platforms/gpu-operator.yaml -f $work/doubles.yaml --wait --timeout 3m"
expect "^$registry/nos:$version\$" k get daemonset nos-mig-agent -n "$system" -o jsonpath='{.spec.template.spec.containers[0].image}'
expect 'successfully rolled out' k rollout status daemonset/nos-mig-agent -n "$system" --timeout 60s

say "the commands of docs/install.md for shares, with the operator's RuntimeClass"
expect created from "
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: nvidia}
handler: nvidia
" k create
awk '
  /^## / { on = /^## Shares of GPU memory/; next }
  on && /^    / { print; seen = 1; next }
  on && seen { exit }' "$root/docs/install.md" | sed "s|NODE|$node|" >"$work/page"
expect '^2$' grep -cE '^    (helm upgrade nos|kubectl label node) ' "$work/page"
(cd "$root" && PATH=$work/programs:$PATH timeout 120 bash -eux "$work/page") >"$work/typed.log" 2>&1 ||
  fail "docs/install.md: $(cat "$work/typed.log")"
expect 'successfully rolled out' k rollout status daemonset/nos-mig-agent -n "$system" --timeout 60s
mps_ready
expect "^$registry/nos:$version\$" k get pods -n "$system" -l app.kubernetes.io/component=mps -o jsonpath='{.items[*].spec.containers[*].image}'

say "a pod has a share, of a daemon in the pod of nos-mps and within its limit of memory"
expect created from "$(share first default 10 'hostIPC: true')" k create
share_runs first default 10
expect "^device /dev/nvidia$gpu " k logs first
of_pod=$(k get pods -n "$system" -l app.kubernetes.io/component=mps -o jsonpath='{.items[*].metadata.uid}')
within_pod "$daemon" "$of_pod" $((2 << 30))
# shellcheck disable=SC2016 # the fields are awk's
in_node awk -v folder=/run/nos/mps '$5 == folder && / - tmpfs / {found = 1} END {exit !found}' /proc/self/mountinfo ||
  fail "the node has no file system of limited size on the daemons' folder"

say "a rollout of the agent leaves daemon and program alone; nos-mps follows when its pod is deleted"
upgrade() { "$helm" upgrade nos "$root/deploy/helm/nos" -n "$system" --reuse-values --wait --timeout 3m "$@"; }
sed 's|extraEnv: \[|&{name: LATER, value: "1"}, |' "$work/doubles.yaml" >"$work/later.yaml"
expect 'STATUS: deployed' upgrade -f "$work/later.yaml"
expect 'successfully rolled out' k rollout status daemonset/nos-mig-agent -n "$system" --timeout 60s
of() { k get pods -n "$system" -l "app.kubernetes.io/component=$1" -o "jsonpath=$2"; }
expect LATER of mig-agent '{.items[*].spec.containers[*].env[*].name}'
expect_no LATER of mps '{.items[*].spec.containers[*].env[*].name}'
expect "^$of_pod 0\$" of mps '{.items[*].metadata.uid} {.items[*].status.containerStatuses[*].restartCount}'
in_node kill -0 "$daemon" || fail "the rollout of the agent ended the daemon"
expect '^Running 0$' k get pod first -o jsonpath='{.status.phase} {.status.containerStatuses[0].restartCount}'
expect deleted k delete pod first
former=$daemon
expect deleted k delete pod -n "$system" -l app.kubernetes.io/component=mps --field-selector "spec.nodeName=$node"
mps_ready
expect LATER of mps '{.items[*].spec.containers[*].env[*].name}'
expect created from "$(share second default 39 'hostIPC: true')" k create
share_runs second default 39
[ "$daemon" != "$former" ] || fail "the daemon outlived its pod"
expect deleted k delete pod second

say "with mps.shmFolder a namespace under baseline has shares, and nobody the host's IPC namespace"
expect 'STATUS: deployed' upgrade --set gpuPartitioner.migAgent.mps.shmFolder=/run/nos/mps-shm
expect 'successfully rolled out' k rollout status daemonset/nos-mig-agent -n "$system" --timeout 60s
expect deleted k delete pod -n "$system" -l app.kubernetes.io/component=mps
mps_ready
expect '^$' k get pods -n "$system" -o jsonpath='{.items[*].spec.hostIPC}'
expect created k create namespace guarded
expect labeled k label namespace guarded pod-security.kubernetes.io/enforce=baseline
expect 'condition met' k wait --for=create serviceaccount/default -n guarded --timeout 60s
expect created from "$(share third guarded 4)" k create
share_runs third guarded 4
[ "$(in_node stat -c %d:%i /run/nos/mps-shm)" = "$(in_node stat -c %d:%i "/proc/$(pid_of third guarded)/root/dev/shm")" ] ||
  fail "the pod's /dev/shm is not the folder of all shares"

say "the node leaves MPS: without a share its GPU is as it was"
expect labeled k label node "$node" nos.nebuly.com/gpu-partitioning=none --overwrite
expect deleted k delete pod third -n guarded
soon '^0$' jq '.gpus[0].computeMode' "$work/gpus.json"
soon '^$' in_node find /run/nos/mps -name nvidia-cuda-mps-control.pid
expect uninstalled deploy undeploy
expect 'condition met|no matching resources' k wait --for=delete pods --all -n "$system" --timeout 60s
echo ok
