#!/bin/bash
# Tests nos check --node on a machine with doubled GPUs: codes and verdicts, and that only --try
# changes a GPU, and only an idle one.
#
#   check_node_test.sh NOS DOUBLE SMI MPS CUDA
set -u

nos=$1
export NOS_NVML_LIBRARY=$2
smi=$(dirname "$3") mps=$(dirname "$4") cuda=$5
command -v python3 >/dev/null || { echo "skipped: reading the output needs python3"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export NOS_NVML_DOUBLE_STATE=$work/state.json TMPDIR=$work PATH=$smi:$mps:$PATH
# shellcheck source=test/integration/calls.sh
. "$(dirname "$0")/calls.sh"

driver=$work/root
mkdir -p "$driver/usr/lib/x86_64-linux-gnu" "$work/kubelet/device-plugins" "$work/kubelet/pod-resources"
for name in libcuda.so libnvidia-ml.so; do
  : >"$driver/usr/lib/x86_64-linux-gnu/$name.580.95.05"
  ln -s "$name.580.95.05" "$driver/usr/lib/x86_64-linux-gnu/$name.1"
done
check() { call "$1" "$nos" check --node --driver-root "$driver" --kubelet-dir "$work/kubelet" --cdi-dir "$work/cdi" "${@:2}"; }
# findings TOPIC: "CODE VERDICT", one line each; without TOPIC all of them.
findings() {
  python3 -c 'import json, sys
for one in json.load(open(sys.argv[1]))["checks"]:
    if sys.argv[2] in ("", one["topic"]): print(one["code"], one["verdict"])' "$work/out" "${1:-}"
}
# verdict CODE VERDICT: every finding of this code has this verdict.
verdict() {
  local got
  got=$(findings | sed -n "s/^$1 //p" | sort -u)
  [ "$got" = "$2" ] || fail "$1: expected $2, got '$got'"
}
layout() { tr -d ' \n' <"$NOS_NVML_DOUBLE_STATE" | grep -o '"instances":\[[^]]*\]' | md5sum; }

cat >"$NOS_NVML_DOUBLE_STATE" <<'END'
{"gpus": [{"model": "A100-40GB", "readings": {"memoryUsedMiB": 512, "powerMilliwatts": 61000, "temperature": 33}},
 {"model": "A100-40GB", "instances": [{"id": 3, "profile": "1g.5gb", "start": 4, "computeInstances": [{"id": 0}]}]},
 {"model": "A100-40GB", "mig": false, "computeMode": 3},
 {"model": "A100-40GB", "mig": false}]}
END
# This machine has no nodes in /dev and /proc, so something fails.
check 1 -o json
for code in DriverAnswers DriverVersion XidEvents NvidiaSmi GpusAnswer GpuModel MigMode Instances CatalogueAgrees \
  ReadingTemperature ReadingMemoryUsed DriverFiles CdiFolder DevicePluginFolder MpsProgram; do
  verdict "$code" OK
done
verdict GpuDeviceNodes Failed
verdict KubeletSockets Failed
[ -z "$(findings Trial)" ] || fail "a trial that was not asked for"
check 1
grep -q 'CUDA 13.0' "$work/out" || fail "the version of CUDA"
[ "$(wc -L <"$work/out")" -le 100 ] || fail "a line is longer than 100 columns"

# Only an idle GPU is tried, and stays as it was.
before=$(layout)
# shellcheck disable=SC2016
printf '#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES $CUDA_MPS_PINNED_DEVICE_MEM_LIMIT" >>%s/ran\n' "$work" >"$work/program"
chmod +x "$work/program"
check 1 --try --program "$work/program" -o json
[ "$(layout)" = "$before" ] || fail "the trial changed a GPU"
trials=$(findings Trial | tr '\n' ';')
[ "$trials" = "MigTrial OK;MigMemoryLimit NotChecked;MigTrial NotChecked;MigTrial NotChecked;MpsTrial NotChecked;MigTrial NotChecked;MpsTrial OK;MpsMemoryLimit NotChecked;" ] ||
  fail "trials: $trials"
grep -q '^MIG-' "$work/ran" || fail "no program on the instance"
grep -q '^0 0=1G$' "$work/ran" || fail "no program on the share"
[ -z "$(find "$work" -maxdepth 1 -name 'nos-check-*')" ] || fail "the trial left its folder"

# A CUDA program proves the limits, with the driver's library below the root. The one there was no library.
grep -q 'no CUDA program was run: .*libcuda.so.580.95.05: file too short' "$work/out" || fail "why no CUDA program was run"
cp "$cuda" "$driver/usr/lib/x86_64-linux-gnu/libcuda.so.580.95.05"
check 1 --try -o json
verdict MigMemoryLimit OK
verdict MpsMemoryLimit OK
grep -q '1g.5gb@0: a CUDA program wrote 4864 MiB of GPU memory, and was refused more than its 4864 MiB' "$work/out" ||
  fail "the limit of the instance"
grep -q 'wrote 1024 MiB .* its 1024 MiB' "$work/out" || fail "the limit of the share"
# faulty FAULT TEXT: both limits fail, and the finding says why.
faulty() {
  NOS_CUDA_DOUBLE=$1 check 1 --try -o json
  verdict MigMemoryLimit Failed
  verdict MpsMemoryLimit Failed
  [ "$(grep -c "$2" "$work/out")" = 2 ] || fail "no word of: $2"
  verdict MpsTrial "$(printf 'NotChecked\nOK')"
  [ "$(layout)" = "$before" ] || fail "the trial changed a GPU"
}
faulty leaky 'could use [0-9]* MiB of GPU memory, more than its'
faulty small 'could use 64 MiB of GPU memory, less than a quarter of its'
faulty two 'sees 2 GPUs in place of one'
faulty refusing 'a CUDA program failed: exit status 1: cuInit failed with CUDA error 999'

# While an agent runs, it would offer the trial's instance to pods.
echo '{"gpus": [{"model": "A100-40GB"}]}' >"$NOS_NVML_DOUBLE_STATE"
plugin=$work/kubelet/device-plugins/nos-nvidia.com_mig-1g.5gb.sock
python3 -c 'import signal, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.bind(sys.argv[1])
    server.listen()
    print("ready", flush=True)
    signal.pause()' "$plugin" >"$work/plugin.log" &
listener=$!
until grep -q ready "$work/plugin.log"; do sleep 0.05; done
check 1 --try -o json
verdict MigTrial NotChecked
kill "$listener"
wait "$listener" 2>/dev/null
check 1 --try -o json # its socket is left over
verdict MigTrial OK
# A program on the GPU, and a program that fails.
cat >"$NOS_NVML_DOUBLE_STATE" <<'END'
{"gpus": [{"model": "A100-40GB", "processes": [{"pid": 77, "name": "/bin/train"}]}]}
END
check 1 --try -o json
verdict MigTrial NotChecked
echo '{"gpus": [{"model": "A100-40GB"}]}' >"$NOS_NVML_DOUBLE_STATE"
check 1 --try --program /bin/false -o json
verdict MigTrial Failed
[ "$(tr -d ' \n' <"$NOS_NVML_DOUBLE_STATE" | grep -c '"instances":\[\]')" = 1 ] || fail "an instance remains"
# A driver that keeps the instance is reported.
echo '{"gpus": [{"model": "A100-40GB"}], "faults": [{"call": "nvmlGpuInstanceDestroy", "error": 19, "times": 99}]}' \
  >"$NOS_NVML_DOUBLE_STATE"
check 1 --try -o json
verdict MigTrial Failed

# A lost GPU, an unknown one, memory errors, and values that nvidia-smi does not confirm.
cat >"$NOS_NVML_DOUBLE_STATE" <<'END'
{"gpus": [{"model": "A100-40GB", "lost": true}, {"model": "A100-40GB", "readings": {"eccUncorrected": 2}}]}
END
check 1 -o json
verdict GpusAnswer Failed
verdict ReadingEccUncorrected Failed
printf '#!/bin/sh\n%s/nvidia-smi "$@" | sed "s/40960/81920/"\n' "$smi" >"$work/nvidia-smi"
chmod +x "$work/nvidia-smi"
PATH=$work:$PATH check 1 -o json
verdict NvidiaSmi Failed
printf '#!/bin/sh\necho "Failed to initialize NVML: Driver/library version mismatch"; exit 18\n' >"$work/nvidia-smi"
PATH=$work:$PATH check 1 -o json
verdict NvidiaSmi Warning

# Without a driver, and flags that do not fit together.
NOS_NVML_LIBRARY=/nowhere/libnvidia-ml.so.1 check 1 -o json
verdict DriverLibrary Failed
refuse 2 "need --node" "$nos" check --try
refuse 2 "needs --try" "$nos" check --node --program /bin/true
refuse 2 "this machine only" "$nos" check --node -n nos-system
refuse 2 "--output" "$nos" check -o yaml
