#!/usr/bin/env bash
# Tests the image in the chart's pods, with a real kubelet, containerd and runc on the real control
# plane: read-only, without root where the chart says so, with the credentials of pods. Only the GPU
# is a double. script/test does not run it, because it has no image.
#
#   image_test.sh SCRIPT BUILD_FOLDER ARCHIVE     with NOS_CONTROLPLANE_DIR
#
# ARCHIVE is the output of `docker save` or `podman save`, or of `buildah push IMAGE
# docker-archive:FILE`.
# shellcheck source=test/controlplane/check.sh
. "$(dirname "$0")/check.sh"
here=$(dirname "$(readlink -f "$0")")
declare -a end_of=()
build=$2 archive=$3 dir=$NOS_CONTROLPLANE_DIR
[ -f "$dir/kubeconfig" ] || fail "no control plane in $dir (script/controlplane up)"
kubectl=$("$controlplane" binary kubectl) || fail "no kubectl"
helm=$("$controlplane" binary helm) || fail "no helm"
work=$(mktemp -d)
chmod 755 "$work"
node=image-$$ system=image-system-$$ team=team-image-$$
export KUBECONFIG=$dir/kubeconfig
kubelet=
finish() {
  local code=$?
  [ "$code" -eq 0 ] || k get events -n "$system" 2>&1 | tail -n 12
  k delete namespace "$team" --wait=false >/dev/null 2>&1
  k delete -f "$work/all.yaml" --wait=false >/dev/null 2>&1
  k delete namespace "$system" --wait=false >/dev/null 2>&1
  [ -z "$kubelet" ] || { kill "$kubelet" && wait "$kubelet"; } 2>/dev/null
  [ "$code" -eq 0 ] || tail -n 15 "$work"/kubelet.sh.log "$work"/node/logs/*/*/*.log
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP
logs() { cat "$work/node/logs/$1"*/*/*.log; }

say "a node with kubelet, containerd and runc joins, and has the image"
setpriv --pdeathsig TERM "$here/kubelet.sh" "$node" "$work/node" >"$work/kubelet.sh.log" 2>&1 &
kubelet=$!
until k get node "$node" >/dev/null 2>&1; do
  kill -0 "$kubelet" 2>/dev/null || fail "no kubelet: $(cat "$work/kubelet.sh.log")"
  sleep 0.2
done
expect 'condition met' k wait --for=condition=Ready "node/$node" --timeout 120s
expect labeled k label node "$node" nos.nebuly.com/gpu-partitioning=mig \
  nvidia.com/gpu.product=NVIDIA-A100-SXM4-40GB nvidia.com/gpu.count=1
expect 'unpacking' "$here/kubelet.sh" "$node" "$work/node" ctr images import --local "$archive"
image=$(sed -n 's/^unpacking \([^ ]*\) .*/\1/p' <<<"$out" | head -n 1)

# The chart's pods, but in the host's network, because the node has no other, and with a driver.
say "the chart's pods of $image become ready"
mkdir "$work/driver"
chmod 777 "$work/driver"
cp "$build/test/doubles/nvml/libnvidia-ml.so.1" "$work/driver"
echo "{\"node\": \"$node\", \"gpus\": [{\"model\": \"A100-40GB\"}]}" >"$work/driver/gpus.json"
"$helm" template nos-image "$here/../../deploy/helm/nos" -n "$system" --kube-version 1.34 \
  --set "gpuPartitioner.image.repository=${image%:*},gpuPartitioner.image.tag=${image##*:}" \
  --set gpuPartitioner.image.pullPolicy=Never,gpuPartitioner.replicaCount=1,scheduler.enabled=false \
  --set "gpuPartitioner.nodeSelector.kubernetes\.io/hostname=$node" \
  --set 'gpuPartitioner.tolerations[0].operator=Exists' \
  --set gpuPartitioner.migAgent.config.nvmlLibrary=/driver/libnvidia-ml.so.1 \
  --set 'gpuPartitioner.migAgent.config.metrics.bindAddress=:8090' \
  --set 'gpuPartitioner.migAgent.config.health.healthProbeBindAddress=:8091' >"$work/chart.yaml" ||
  fail "helm template"
api=$(k config view --minify -o jsonpath='{.clusters[0].cluster.server}')
network() {
  printf 'apiVersion: apps/v1\nkind: %s\nmetadata: {name: nos-image-%s}\nspec:\n  template:\n    spec:\n' "$1" "$2"
  printf '      hostNetwork: true\n      containers:\n      - name: %s\n        env:\n' "$3"
  printf '        - {name: KUBERNETES_SERVICE_HOST, value: "127.0.0.1"}\n'
  printf '        - {name: KUBERNETES_SERVICE_PORT, value: "%s"}\n' "${api##*:}"
}
network Deployment gpu-partitioner partitioner >"$work/partitioner.yaml"
{
  network DaemonSet mig-agent agent
  cat <<Y
        - {name: NOS_NVML_DOUBLE_STATE, value: /driver/gpus.json}
        ports:
        - {\$patch: replace}
        - {name: metrics, containerPort: 8090}
        - {name: health, containerPort: 8091}
        volumeMounts: [{name: driver, mountPath: /driver}]
      volumes: [{name: driver, hostPath: {path: $work/driver}}]
Y
} >"$work/agent.yaml"
cat >"$work/kustomization.yaml" <<Y
resources: [chart.yaml]
patches:
- {path: partitioner.yaml, target: {kind: Deployment}}
- {path: agent.yaml, target: {kind: DaemonSet}}
Y
k kustomize "$work" >"$work/all.yaml" || fail "kustomize"
expect created k create namespace "$system"
expect serverside-applied k apply --server-side -f "$work/all.yaml"
expect 'successfully rolled out' k rollout status deployment/nos-image-gpu-partitioner -n "$system" --timeout 60s
expect 'successfully rolled out' k rollout status daemonset/nos-image-mig-agent -n "$system" --timeout 60s

say "a pod that asks for a slice runs on one"
expect created k create namespace "$team"
expect 'condition met' k wait --for=create serviceaccount/default -n "$team" --timeout 60s
expect created from "
apiVersion: v1
kind: Pod
metadata: {name: slice, namespace: $team}
spec:
  hostNetwork: true
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: docker.io/nos-test/sleeper:1
    imagePullPolicy: Never
    resources: {limits: {nvidia.com/mig-3g.20gb: 1}}
" k create
expect 'condition met' k wait --for=jsonpath='{.status.phase}'=Running -n "$team" pod/slice --timeout 60s
expect 'NVIDIA_VISIBLE_DEVICES=MIG-' logs "${team}_slice"

say "asked to end, they end by themselves"
for who in partitioner agent; do
  # Keeps the log file open, because it is deleted with the pod.
  exec {log}<"$(echo "$work/node/logs/$system"_*/"$who"/0.log)"
  end_of[${#end_of[@]}]=$log
done
expect deleted k delete deployment/nos-image-gpu-partitioner daemonset/nos-image-mig-agent -n "$system"
expect 'deleted|No resources' k delete pods --all -n "$system" --wait --timeout 60s
for log in "${end_of[@]}"; do expect '"stopping nos"' cat "/dev/fd/$log"; done
echo ok
