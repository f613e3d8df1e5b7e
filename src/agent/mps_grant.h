// What containers are told of the MPS shares that they are given, for DevicePluginOptions::grant.
//
//   options.grant = [&](const kubelet::Allocation& allocation) {
//     return GrantMpsShares(allocation, mps_options);
//   };
//
// What is told to a kubelet as an error fails the pod, whose owner then makes another.
//
// Facts: a client process connects to the one daemon that CUDA_MPS_PIPE_DIRECTORY names, and sees
// the GPUs of that daemon. CUDA_MPS_PINNED_DEVICE_MEM_LIMIT limits each process, not the container,
// by the number that the device has for the process: 0 where one GPU is visible. Its G are GiB
// (a limit of 8192M is told back as 8G). CUDA_MPS_ACTIVE_THREAD_PERCENTAGE bounds the
// multiprocessors that a process may use, and reserves none. Client and server share memory through
// /dev/shm: pods need the host's IPC namespace unless they get the daemon's /dev/shm
// (NVIDIA/k8s-device-plugin mounts it, internal/plugin/server.go).
// Source: docs.nvidia.com/deploy/mps, "Environment Variables" and "Architecture".
//
// In a part of a MIG instance (device/mig_parts.h) the daemon is the instance's, which containers
// name by CUDA_VISIBLE_DEVICES as the daemon does (docs.nvidia.com/datacenter/tesla/mig-user-guide,
// "MPS on MIG"); in M a limit is as exact as the part.
//
// Hence several shares of one GPU are for as many processes, each of which has the memory of one;
// NVIDIA says the same of its replicas (k8s-device-plugin issue 720). Shares of several GPUs cannot
// be one container's: its processes reach one daemon only. A container that asks for shares of two
// sizes is asked for here once for each, so that cannot be refused here: what it is told of the one
// overwrites what it is told of the other.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "kubelet/device_plugin_server.h"

namespace nos::agent {

struct MpsGrantOptions {
  // The pipe directory of a GPU or an instance, by its UUID: device::MpsControl::PipeFolder. The
  // same path on the host.
  std::function<std::string(const std::string& gpu_uuid)> pipe_folder;
  // The host's folder that the daemons have as /dev/shm; empty: pods have to ask for hostIPC.
  std::string shm_folder{};
  // GiB that shares of a GPU have together, for a bound on multiprocessors in proportion to memory;
  // 0: that is not known now. Empty: no bound.
  std::function<int(const std::string& gpu_uuid)> share_gib{};
  // MiB of a part of this instance, as long as it is served: device::MpsControl::LimitMib. 0: it is
  // not.
  std::function<int(const std::string& mig_uuid)> part_mib{};
  // Whether a daemon serves the GPU now: device::MpsControl::Serves. Empty: none does.
  std::function<bool(const std::string& gpu_uuid)> serves{};
};

// Nothing when the devices are no MPS shares. Error: kInvalid: they cannot be one container's;
// kUnavailable: no MPS daemon serves the GPU, hence there would be no limit, or a bound is wanted
// and cannot be told.
Result<std::optional<kubelet::ContainerGrant>> GrantMpsShares(const kubelet::Allocation& allocation,
                                                              const MpsGrantOptions& options);

// Nothing when the devices are no parts of MIG instances. Error: kInvalid: they cannot be one
// container's; kUnavailable: no MPS daemon serves the instance, hence there would be no limit.
// `in_proportion`: of the instance's multiprocessors only as much as of its memory.
Result<std::optional<kubelet::ContainerGrant>> GrantMigParts(const kubelet::Allocation& allocation,
                                                             const MpsGrantOptions& options,
                                                             bool in_proportion);

// Nothing when the devices are no time slices (device/plain_gpus.h); else the GPUs that they are
// of. Several of one GPU give no more of it than one.
std::optional<kubelet::ContainerGrant> GrantTimeSlices(const kubelet::Allocation& allocation);

// For DevicePluginOptions::prefer: shares of one GPU, that one which has the fewest left of those
// that have enough. Nothing when none has, or the devices are no shares.
std::vector<std::string> PreferOneGpu(const kubelet::Choice& choice);

}  // namespace nos::agent
