#!/usr/bin/env bash
# A real kubelet with containerd and runc as a node of the control plane on loopback, for tests and
# manual use. Runs until Ctrl-C or SIGTERM, and removes everything then.
#
#   kubelet.sh NODE DIR         with NOS_CONTROLPLANE_DIR; DIR is new or empty, and is kept
#   kubelet.sh NODE DIR kill    kills the kubelet (SIGKILL), which then starts again
#   kubelet.sh NODE DIR ctr ... runs a command of containerd's client for the node's images and containers
#
# NOS_NODE_DEVICES: a folder of device nodes that the node's /dev has beside the machine's.
# NOS_NODE_PROC: a folder with driver/ and devices, which containers see as /proc/driver and /proc/devices.
# NOS_NODE_DRIVER: a folder that the node has as /run/nvidia/driver, where the GPU Operator puts the driver.
# NOS_NODE_PODS: a network of IPv4, such as 10.88.1.0/24: pods get addresses in it, with network.sh.
# NOS_NODE_TOOLKIT: a folder for nvidia_runtime.sh, which is the node's second runtime then, "nvidia".
# NOS_NODE_CDI=false: containerd ignores CDI specifications.
# NOS_NODE_GATES: feature gates of the kubelet, as YAML: "DRAExtendedResource: true".
#
# Exits with 77, and the reason, on an unsuitable machine. Once the node is Ready, DIR contains:
#
#   kubelet/device-plugins, kubelet/pod-resources/kubelet.sock   as in /var/lib/kubelet
#   logs/<namespace>_<pod>_<uid>/<container>/*.log               output of containers
#   kubelet.log, containerd.log
#   cdi                          the folder of CDI specifications, as /var/run/cdi
#
# Everything runs in its own process and mount namespaces: it ends with their first process, however
# that ends, and leaves no mount behind. /dev, /var/lib/kubelet, /run, /var/log and the files of
# /proc/sys that the kubelet would change are private. Cgroups are below /nos-NODE. The only image is
# docker.io/nos-test/sleeper:1 (sleeper.c). Without NOS_NODE_PODS, pods share the host's network
# (hostNetwork: true) and tolerate nvidia.com/gpu. Only a SIGKILL of this script leaves something: empty
# cgroups and an empty /var/lib/kubelet.
# shellcheck disable=SC2154
here=$(dirname "$(readlink -f "$0")") caller=$PWD
# shellcheck source=script/lib.sh
. "$here/../../script/lib.sh" || exit 1
# shellcheck source=test/controlplane/binaries.sh
. "$here/binaries.sh"
# shellcheck source=test/controlplane/credentials.sh
. "$here/credentials.sh"
# shellcheck source=test/controlplane/components.sh
. "$here/components.sh"

skip() {
  say "skipped: $*"
  exit 77
}

require() {
  local program
  [ "$(id -u)" -eq 0 ] || skip "a kubelet wants root, and this is user $(id -u)"
  for program in runc unshare nsenter setpriv gcc tar; do
    command -v "$program" >/dev/null ||
      skip "no $program here (Debian: apt-get install runc util-linux gcc tar)"
  done
  make_cgroups 2>/dev/null || skip "no control groups can be made below /sys/fs/cgroup"
  unshare --mount --pid --fork true 2>/dev/null ||
    skip "no namespaces of mounts and processes can be made (CAP_SYS_ADMIN is missing)"
}

# Cgroup version 1 has a directory per hierarchy; version 2 has one in all.
hierarchies() {
  if [ -f /sys/fs/cgroup/cgroup.controllers ]; then echo /sys/fs/cgroup; else
    awk '$3 == "cgroup" || $3 == "cgroup2" {print $2}' /proc/mounts | grep '^/sys/fs/cgroup/'
  fi
}
make_cgroups() {
  local each
  for each in $(hierarchies); do mkdir -p "$each/nos-$node" || return; done
}
remove_cgroups() {
  local each left=0
  for each in $(hierarchies); do
    [ ! -d "$each/nos-$node" ] || find "$each/nos-$node" -depth -type d -exec rmdir {} + 2>/dev/null || left=1
  done
  return "$left"
}

# image: creates an archive for containerd, with one static program.
image() {
  local work=$node_dir/image
  mkdir -p "$work"
  gcc -static -O1 -o "$work/sleeper" "$here/sleeper.c"
  tar -C "$work" -cf "$work/layer.tar" sleeper
  printf '{"architecture": "%s", "os": "linux", "config": {"Entrypoint": ["/sleeper"]}, "rootfs": %s}' \
    "$(go_architecture)" "{\"type\": \"layers\", \"diff_ids\": [\"sha256:$(sha256sum "$work/layer.tar" | cut -d' ' -f1)\"]}" \
    >"$work/config.json"
  printf '[{"Config": "config.json", "RepoTags": ["nos-test/sleeper:1"], "Layers": ["layer.tar"]}]' \
    >"$work/manifest.json"
  tar -C "$work" -cf "$node_dir/image.tar" manifest.json config.json layer.tar
}
go_architecture() { uname -m | sed -e s/x86_64/amd64/ -e s/aarch64/arm64/; }

configure() {
  local more='registerWithTaints: [{key: nvidia.com/gpu, value: present, effect: NoSchedule}]' base='' listen=127.0.0.1
  local runtimes='[plugins."io.containerd.cri.v1.runtime".containerd.runtimes'
  mkdir -p "$node_dir"/{kubelet,containerd,logs,cni,cdi}
  [ -z "${NOS_NODE_PROC:-}" ] || base="base_runtime_spec = \"$node_dir/base.json\""
  cat >"$node_dir/containerd.toml" <<Y
version = 3
root = "$node_dir/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "$node_dir/opt"
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "docker.io/nos-test/sleeper:1"
[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true  # for machines without CAP_SYS_RESOURCE
  enable_cdi = ${NOS_NODE_CDI:-true}
  cdi_spec_dirs = ["$node_dir/cdi"]
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    $base
  [plugins."io.containerd.cri.v1.runtime".cni]
    conf_dir = "$node_dir/cni"
    bin_dir = "/usr/lib/cni"
Y
  if [ -n "${NOS_NODE_TOOLKIT:-}" ]; then
    # containerd passes the runtime's own arguments only.
    printf '#!/bin/sh\nexec "%s" "%s" "$@"\n' "$here/nvidia_runtime.sh" "$NOS_NODE_TOOLKIT" >"$node_dir/nvidia-runtime"
    chmod +x "$node_dir/nvidia-runtime"
    cat >>"$node_dir/containerd.toml" <<Y
  $runtimes.nvidia]
    runtime_type = "io.containerd.runc.v2"
    $base
    $runtimes.nvidia.options]
      BinaryName = "$node_dir/nvidia-runtime"
Y
  fi
  if [ -n "${NOS_NODE_PODS:-}" ]; then
    # A link for each pod, so that packets between pods pass the node's rules for Services.
    cat >"$node_dir/cni/pods.conflist" <<Y
{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": {"type": "host-local",
  "subnet": "$NOS_NODE_PODS", "dataDir": "$node_dir/cni/addresses", "routes": [{"dst": "0.0.0.0/0"}]}}]}
Y
    listen=$address
    more="clusterDNS: [$address]
clusterDomain: cluster.local"
  else
    # Makes containerd, and so the node, ready. Never called: pods have hostNetwork.
    echo '{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "none"}]}' >"$node_dir/cni/none.conflist"
  fi
  cat >"$node_dir/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $listen
port: $(free_port)
healthzPort: 0
authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $dir/pki/ca.crt}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
cgroupDriver: cgroupfs
cgroupRoot: /nos-$node
failCgroupV1: false
failSwapOn: false
enforceNodeAllocatable: [pods]
$more
featureGates: {${NOS_NODE_GATES:-}}
volumePluginDir: $node_dir/volume-plugins
resolvConf: ""
podLogsDir: $node_dir/logs
protectKernelDefaults: true
makeIPTablesUtilChains: false
evictionHard: {memory.available: 0%, nodefs.available: 0%, nodefs.inodesFree: 0%, imagefs.available: 0%}
Y
  client "kubelet-$node.kubeconfig" "system:node:$node" system:nodes
}

# setting VALUE NAME: the kubelet insists on these; inside the namespace they seem to be set.
setting() {
  local file=$node_dir/settings/${2//\//.}
  mkdir -p "$node_dir/settings"
  echo "$1" >"$file"
  mount --bind "$file" "/proc/sys/$2"
}

# devices FOLDER: a private /dev, with the machine's nodes and those of the folder.
devices() {
  local own=$node_dir/dev each
  mkdir -p "$own"
  mount -t tmpfs -o mode=755 tmpfs "$own"
  cp -a --one-file-system /dev/. "$own"
  cp -a "$1/." "$own"
  for each in pts shm mqueue; do
    if mountpoint -q "/dev/$each"; then mount --rbind "/dev/$each" "$own/$each"; fi
  done
  mount --rbind "$own" /dev
}

# show_driver FOLDER: containers see the folder's files in /proc, as if the kernel had a driver's module.
# The runtime's specification allows no mounts there, but hooks.
show_driver() {
  cat >"$node_dir/show-driver" <<Y
#!/bin/sh
set -e
mount --bind "$1/driver" proc/driver
mount --bind "$1/devices" proc/devices
Y
  chmod +x "$node_dir/show-driver"
  "$ctr" oci spec | jq --arg hook "$node_dir/show-driver" '.hooks.createContainer = [{path: $hook,
    env: ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"]}]' >"$node_dir/base.json"
}

# client_of_containerd COMMAND...: in the namespace of the kubelet's images.
client_of_containerd() { "$ctr" --address /run/containerd/containerd.sock --namespace k8s.io "$@"; }

# inside: the first process of the namespaces.
inside() {
  local code=0 each
  # Among themselves, for containers that follow the mounts of a folder of the host.
  mount --make-rshared /
  [ -z "${NOS_NODE_DEVICES:-}" ] || devices "$NOS_NODE_DEVICES"
  for each in /run /var/log; do mount -t tmpfs tmpfs "$each"; done
  mkdir -p /run/cdi /run/nvidia/driver
  mount --bind "$node_dir/cdi" /run/cdi
  [ -z "${NOS_NODE_DRIVER:-}" ] || mount --bind "$NOS_NODE_DRIVER" /run/nvidia/driver
  [ -z "${NOS_NODE_PROC:-}" ] || show_driver "$NOS_NODE_PROC"
  mount --bind "$node_dir/kubelet" /var/lib/kubelet
  setting 1 vm/overcommit_memory
  setting 10 kernel/panic
  setting 1 kernel/panic_on_oops
  setting 1000000 kernel/keys/root_maxkeys
  setting 25000000 kernel/keys/root_maxbytes
  # It finds its shim by the path.
  PATH=$shims:$PATH "$containerd" --config "$node_dir/containerd.toml" >>"$node_dir/containerd.log" 2>&1 &
  until client_of_containerd version >/dev/null 2>&1; do
    kill -0 $! 2>/dev/null || die "containerd ended: $(tail -n 5 "$node_dir/containerd.log")"
    sleep 0.1
  done
  client_of_containerd images import "$node_dir/image.tar" >/dev/null
  # Restarts it after SIGKILL, as a service manager would. Any other exit has a reason and is final.
  while [ "$code" -eq 0 ] || [ "$code" -eq 137 ]; do
    "$kubelet" --config "$node_dir/kubelet.yaml" --kubeconfig "$dir/kubelet-$node.kubeconfig" \
      --root-dir /var/lib/kubelet --hostname-override "$node" ${address:+--node-ip "$address"} \
      >>"$node_dir/kubelet.log" 2>&1 &
    echo $! >"$node_dir/kubelet.pid"
    code=0
    { wait $! || code=$?; } 2>/dev/null
  done
  die "the kubelet ended with $code: $(tail -n 5 "$node_dir/kubelet.log")"
}

# The pid is valid only inside the namespace.
kill_kubelet() {
  local first
  first=$(cat "$node_dir/first.pid") || die "no node runs in $node_dir"
  nsenter --target "${first% }" --mount --pid kill -KILL "$(cat "$node_dir/kubelet.pid")"
}

# run_client COMMAND...: client_of_containerd from outside.
run_client() {
  local first
  first=$(cat "$node_dir/first.pid") || die "no node runs in $node_dir"
  nsenter --target "${first% }" --mount --pid \
    "${path_of[ctr]}" --address /run/containerd/containerd.sock --namespace k8s.io "$@"
}

finish() {
  local code=$? first
  trap - EXIT INT TERM HUP
  if [ -n "$space" ]; then
    exec 2>/dev/null  # hides bash's messages about killed children
    kill -KILL "$space" || true
    wait "$space" || true
    # The first process ends last.
    first=$(cat "$node_dir/first.pid")
    while [ -n "$first" ] && kill -0 "${first% }" 2>/dev/null; do sleep 0.02; done
  fi
  for _ in $(seq 100); do
    remove_cgroups && break
    sleep 0.05
  done
  if flock --nonblock 7 2>/dev/null; then rmdir /var/lib/kubelet 2>/dev/null || true; fi
  k delete node "$node" --ignore-not-found --request-timeout 5s >/dev/null 2>&1 || true
  exit "$code"
}

node=${1:-} node_dir=${2:-} dir=${NOS_CONTROLPLANE_DIR:-$PWD/build/controlplane} space=
if ! [[ $node =~ ^[a-z0-9]([a-z0-9-]*[a-z0-9])?$ ]] || [ -z "$node_dir" ]; then
  die "usage: kubelet.sh NODE DIR [kill | ctr COMMAND...] (kubelet.sh --help)"
fi
node_dir=$(cd "$caller" && realpath -m "$node_dir") dir=$(cd "$caller" && realpath -m "$dir")
# The kubelet has the version of its control plane; a newer one than the API server is not supported.
# shellcheck disable=SC2034 # read by need_binaries
kubernetes=$(cat "$dir/kubernetes.version" 2>/dev/null || true)
case ${3:-} in
  inside) inside ;;
  kill)
    kill_kubelet
    exit
    ;;
  ctr)
    need_binaries ctr
    run_client "${@:4}"
    exit
    ;;
  '') ;;
  *) die "unknown command '$3'" ;;
esac
[ -z "$(ls -A "$node_dir" 2>/dev/null)" ] || die "$node_dir is not empty"
[ -f "$dir/kubeconfig" ] || die "no control plane in $dir; first: script/controlplane up"
trap finish EXIT
trap 'exit 130' INT TERM HUP
require
need_binaries kubelet kubectl containerd containerd-shim-runc-v2 ctr
mkdir -p "$node_dir" /var/lib/kubelet
# The mount point, which the last node removes.
exec 7</var/lib/kubelet
flock --shared 7
address=$(hostname -I | cut -d' ' -f1)
configure
image
kubelet=${path_of[kubelet]}
NOS_CONTROLPLANE_DIR=$dir
containerd=${path_of[containerd]} ctr=${path_of[ctr]}
shims=$(dirname "${path_of[containerd-shim-runc-v2]}")
export address kubelet containerd ctr shims NOS_CONTROLPLANE_DIR
setpriv --pdeathsig KILL unshare --mount --pid --fork --mount-proc --kill-child \
  "$0" "$node" "$node_dir" inside &
space=$!
while kill -0 "$space" 2>/dev/null && ! [ -s "$node_dir/first.pid" ]; do
  cat "/proc/$space/task/$space/children" >"$node_dir/first.pid" 2>/dev/null || true
done
wait "$space"
