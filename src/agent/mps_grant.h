// Environment and mounts of containers that get MPS shares, for DevicePluginOptions::grant.
//
//   options.grant = [&](const kubelet::Allocation& allocation) {
//     return GrantMpsShares(allocation, mps_options);
//   };
//
// An error makes the kubelet fail the pod; its controller then creates another one.
//
// Facts about MPS. A client process connects to the daemon that CUDA_MPS_PIPE_DIRECTORY names, and
// sees only the GPUs of that daemon. CUDA_MPS_PINNED_DEVICE_MEM_LIMIT limits each process, not the
// container; it names the device by the index that the process sees, which is 0 if one GPU is
// visible. Its unit G means GiB (CUDA reports a limit of 8192M as 8G).
// CUDA_MPS_ACTIVE_THREAD_PERCENTAGE limits the multiprocessors that a process may use but reserves
// none. Client and server share memory through /dev/shm: pods need the host's IPC namespace unless
// the daemon's /dev/shm is mounted (NVIDIA/k8s-device-plugin mounts it, internal/plugin/server.go).
// Source: docs.nvidia.com/deploy/mps, "Environment Variables" and "Architecture".
//
// A part of a MIG instance (device/mig_parts.h) is served by a daemon of that instance. Containers
// name the instance by CUDA_VISIBLE_DEVICES, as the daemon does
// (docs.nvidia.com/datacenter/tesla/mig-user-guide, "MPS on MIG"). A limit in M matches the size of
// the part exactly.
//
// Several shares of one GPU therefore serve several processes, each with the memory of one share;
// NVIDIA's replicas behave the same (k8s-device-plugin issue 720). One container cannot use shares
// of several GPUs: its processes reach only one daemon. If a container requests shares of two
// sizes, the kubelet calls the grant once for each size. This cannot be detected here, and the
// second answer overwrites the first.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "kubelet/device_plugin_server.h"

namespace nos::agent {

struct MpsGrantOptions {
  // The pipe directory of a GPU or an instance by its UUID (device::MpsControl::PipeFolder). The
  // path in the container is the same as on the host.
  std::function<std::string(const std::string& gpu_uuid)> pipe_folder;
  // The host folder that the daemons use as /dev/shm. Empty: pods must set hostIPC.
  std::string shm_folder{};
  // Total GiB of a GPU's shares, to limit multiprocessors in proportion to memory. 0: currently
  // unknown. No function: no limit.
  std::function<int(const std::string& gpu_uuid)> share_gib{};
  // MiB of a part of this instance while a daemon serves it (device::MpsControl::LimitMib); 0
  // otherwise.
  std::function<int(const std::string& mig_uuid)> part_mib{};
  // True if a daemon serves the GPU now (device::MpsControl::Serves). No function: none does.
  std::function<bool(const std::string& gpu_uuid)> serves{};
};

// The environment and mounts by which a container reaches the daemon of a GPU or MIG instance, with
// this limit of memory ("10G", "4096M") and, above 0, of multiprocessors in per cent.
kubelet::ContainerGrant MpsAccess(const std::string& uuid, const std::string& memory,
                                  int64_t thread_percentage, const MpsGrantOptions& options);

// No value if the devices are not MPS shares. Error: kInvalid if one container cannot use these
// shares together; kUnavailable if no MPS daemon serves the GPU, because there would be no limit,
// or if the multiprocessor limit cannot be computed now.
Result<std::optional<kubelet::ContainerGrant>> GrantMpsShares(const kubelet::Allocation& allocation,
                                                              const MpsGrantOptions& options);

// No value if the devices are not parts of MIG instances. Error: kInvalid if one container cannot
// use these parts together; kUnavailable if no MPS daemon serves the instance, because there would
// be no limit. `in_proportion`: limits the instance's multiprocessors in proportion to memory.
Result<std::optional<kubelet::ContainerGrant>> GrantMigParts(const kubelet::Allocation& allocation,
                                                             const MpsGrantOptions& options,
                                                             bool in_proportion);

// No value if the devices are not time slices (device/plain_gpus.h); else the GPUs of the time
// slices. Several time slices of one GPU give the same as one.
std::optional<kubelet::ContainerGrant> GrantTimeSlices(const kubelet::Allocation& allocation);

// For DevicePluginOptions::prefer: shares of one GPU, the one with the fewest free shares of those
// with enough. Empty if no GPU has enough, or the devices are not shares.
std::vector<std::string> PreferOneGpu(const kubelet::Choice& choice);

}  // namespace nos::agent
