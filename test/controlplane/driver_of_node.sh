# The driver's side of a node, doubled: device nodes, files, /proc. Terminals stand for the device nodes:
# they can be opened, and no container has them otherwise. Sourced after check.sh; $work is the test's
# folder, $build the build's, $node the node's name, $team the namespace of its pods.
# shellcheck shell=bash disable=SC2034,SC2154

# GPUs are /dev/nvidia20, 21 and 62, in this order. The instance with number n of GPU 20 has the
# capabilities 22+2n and 23+2n, of GPU 21 42+2n and 43+2n. Their nodes are not on the host, as in the
# issue dra-driver-nvidia-gpu 787.
# The nodes that every container has are the driver's minors: 255, and 0 and 1 of uvm. No node is on the host,
# like with a driver in a container.
readonly tty=4 control=255 uvm=0 uvm_tools=1 gpu=20 other_gpu=21 whole_gpu=62
readonly nvml=$build/test/doubles/nvml/libnvidia-ml.so.1
minors=("$gpu" "$other_gpu" "$whole_gpu")
export NOS_NVML_DOUBLE_STATE=$work/gpus.json
capability() { echo $((22 + 2 * $1)); }
# make_machine GPU...: in the format of test/doubles/nvml. Fills
#
#   gpus.json   the state of the GPUs       dev    device nodes
#   driver      the driver's files          proc   driver/ and devices, as in /proc
make_machine() {
  local minor instance folder libraries=$work/driver/usr/lib/x86_64-linux-gnu each count=0 uuid all
  printf -v all '%s,' "$@"
  echo "{\"node\": \"$node\", \"gpus\": [${all%,}]}" >"$work/gpus.json"
  "$build/nos" agent --once --print --nvml-library "$nvml" >/dev/null || fail "the doubled driver does not answer"
  mkdir -p "$work/dev" "$work/proc" "$libraries"
  for each in cuda nvidia-ml nvidia-ptxjitcompiler nvidia-opencl nvidia-cfg nvidia-allocator; do
    echo "$each 550.54.15" >"$libraries/lib$each.so.550.54.15"
    ln -s "lib$each.so.550.54.15" "$libraries/lib$each.so.1"
  done
  printf 'Character devices:\n  1 mem\n  %d nvidia\n  %d nvidia-caps\n  %d nvidia-uvm\n' $tty $tty $tty >"$work/proc/devices"
  mkdir -p "$work/proc/driver/nvidia"
  printf 'NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n' >"$work/proc/driver/nvidia/version"
  for instance in $(seq 0 9); do
    folder=$work/proc/driver/nvidia/capabilities/gpu$gpu/mig/gi$instance
    mkdir -p "$folder/ci0"
    echo "DeviceFileMinor: $(capability "$instance")" >"$folder/access"
    echo "DeviceFileMinor: $(($(capability "$instance") + 1))" >"$folder/ci0/access"
    folder=${folder/gpu$gpu/gpu$other_gpu}
    mkdir -p "$folder/ci0"
    echo "DeviceFileMinor: $(($(capability "$instance") + 20))" >"$folder/access"
    echo "DeviceFileMinor: $(($(capability "$instance") + 21))" >"$folder/ci0/access"
  done
  while read -r uuid; do
    minor=${minors[count]}
    folder=$work/proc/driver/nvidia/gpus/0000:0$((count + 1)):00.0
    mkdir -p "$folder"
    printf 'GPU UUID: %s\nDevice Minor: %d\n' "$uuid" "$minor" >"$folder/information"
    count=$((count + 1))
  done < <(grep -oE '"uuid": *"GPU-[^"]*"' "$work/gpus.json" | grep -oE 'GPU-[^"]*')
  [ "$count" = $# ] || fail "the double has $count GPUs"
}
# instance_at START: the number of the GPU instance there, of the first GPU.
instance_at() {
  tr -d ' \n' <"$work/gpus.json" | grep -oE "\"id\":[0-9]+,\"profile\":\"[^\"]*\",\"start\":$1," |
    grep -oE '[0-9]+' | head -n 1
}
# sees NAME START VISIBLE: the pod's container has the devices of the instance there and no others.
sees() {
  local own
  own=$(capability "$(instance_at "$2")")
  has "$1" "$3" "/dev/nvidia$gpu $tty:$gpu" "/dev/nvidia-caps/nvidia-cap$own $tty:$own" \
    "/dev/nvidia-caps/nvidia-cap$((own + 1)) $tty:$((own + 1))"
}
# has NAME VISIBLE DEVICE...: the devices of the pod's container, beside those of every container.
# A terminal that the machine does not have lets itself be opened as far as its driver (ENXIO, 6).
has() {
  local said want got number
  said=$(cat "$work/node/logs/${team}_$1"_*/main/*.log)
  want=$(printf '%s\n' "/dev/nvidiactl $tty:$control" "/dev/nvidia-uvm $tty:$uvm" "/dev/nvidia-uvm-tools $tty:$uvm_tools" "${@:3}" | sort)
  got=$(grep -oE 'device .* (opened|error 6)$' <<<"$said" | cut -d' ' -f2,3 | sort)
  [ "$got" = "$want" ] || fail "pod $1 should have
$want
and says: $said"
  for number in $(seq 18 62); do
    if grep -q ":$number\$" <<<"$want"; then
      grep -qE "probe $tty:$number (0|6)$" <<<"$said" || fail "pod $1 cannot use $tty:$number: $said"
    else
      grep -q "probe $tty:$number 1$" <<<"$said" || fail "pod $1 can use $tty:$number: $said"
    fi
  done
  for number in x86_64-linux-gnu 64; do
    grep -qE "library /usr/lib/?$number/libcuda.so.1 cuda 550.54.15$" <<<"$said" || fail "pod $1 lacks the driver: $said"
  done
  grep -q "NVIDIA_VISIBLE_DEVICES=$2\$" <<<"$said" || fail "pod $1 should have $2: $said"
}
# agent_here HANDOVER CONFIGURATION [COMMAND]: starts an agent that finds the doubled driver, in a mount
# namespace in which /proc shows it; the command is done there before. $cdi is the folder of specifications.
agent_here() {
  cat >"$work/agent.yaml" <<Y
apiVersion: config.nos.nebuly.com/v1alpha1
kind: MigAgentConfig
health: {healthProbeBindAddress: "0"}
metrics: {bindAddress: "0"}
reportConfigIntervalSeconds: 0.5
devicePlugin:
  mode: builtin
  folder: $work/node/kubelet/device-plugins
  handover: $1
  cdiFolder: $cdi
  runtimeSocket: /proc/$(tr -d ' ' <"$work/node/first.pid")/root/run/containerd/containerd.sock
podResourcesSocket: $work/node/kubelet/pod-resources/kubelet.sock
nvmlLibrary: $nvml
driverRoot: $work/driver
driverRootOnHost: $work/driver
deviceRoot: /proc/$(tr -d ' ' <"$work/node/first.pid")/root/dev
$2
Y
  cat >"$work/agent.sh" <<Y
set -e
mount --bind $work/proc/driver /proc/driver
mount --bind $work/proc/devices /proc/devices
${3:-}
exec $build/nos agent --config $work/agent.yaml --kubeconfig $work/agent.kubeconfig
Y
  NODE_NAME=$node unshare --mount bash "$work/agent.sh" >>"$work/agent.log" 2>&1 &
  pid[agent]=$!
  disown
}
