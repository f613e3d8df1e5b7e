#!/usr/bin/env bash
# A double of NVIDIA's container runtime: runc, after it has added the driver's files to the container.
#
#   nvidia_runtime.sh TOOLKIT ARGUMENTS_OF_RUNC...
#
# Like the real one (libnvidia-container, src/nvc_info.c) it does so for containers whose variable
# NVIDIA_VISIBLE_DEVICES names GPUs, and NVIDIA_DRIVER_CAPABILITIES chooses the files: "utility" libnvidia-ml.so.1 and
# nvidia-smi, "compute" nvidia-cuda-mps-control. TOOLKIT/lib has the library. TOOLKIT/bin has the programs; the last one
# is a script, so with "compute" its shell comes along, as the container's /usr/bin.
set -euo pipefail
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
toolkit=$1
shift
bundle='' creates=0 last=''
for each in "$@"; do
  [ "$last" != --bundle ] && [ "$last" != -b ] || bundle=$each
  [ "$each" != create ] || creates=1
  last=$each
done
if [ "$creates" = 1 ]; then
  changed=$(jq --arg toolkit "$toolkit" '
    def from_toolkit($file; $path): {type: "bind", source: ($toolkit + "/" + $file), destination: $path,
      options: ["ro", "rbind", "nosuid", "nodev"]};
    ([.process.env[]? | select(startswith("NVIDIA_")) | capture("^(?<key>[^=]*)=(?<value>.*)$")] | from_entries) as $of
    | ($of.NVIDIA_DRIVER_CAPABILITIES // "utility" | split(",")) as $wanted
    | if ($of.NVIDIA_VISIBLE_DEVICES // "") | IN("", "void", "none") then . else
        .mounts += (if $wanted | index("utility") then
            [from_toolkit("lib/libnvidia-ml.so.1"; "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1")] else [] end
          + if $wanted | index("compute") then [from_toolkit("bin"; "/usr/bin")]
            elif $wanted | index("utility") then [from_toolkit("bin/nvidia-smi"; "/usr/bin/nvidia-smi")]
            else [] end)
      end' "$bundle/config.json")
  printf '%s\n' "$changed" >"$bundle/config.json"
fi
exec runc "$@"
