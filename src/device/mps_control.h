// The MPS control daemons of a node: one for each GPU in MPS mode and for each divided MIG instance
// (device/mig_parts.h), each with its own pipe directory.
//
//   MpsControl mps({.folder = "/run/nos/mps"}, board);
//   mps.Keep({{0, "GPU-...", 39}});
//   for (const MpsState& state : mps.States()) ...
//
// One daemon per GPU, because one faulty client ends the whole server of a daemon, and a client
// sees all GPUs of its daemon. Each GPU must be in EXCLUSIVE_PROCESS mode first
// (Backend::SetComputeMode), so that no program bypasses the daemon; instances keep the default
// mode, and only containers with a part of one get its pipe directory. "UUID" is a GPU's or an
// instance's.
//
// A GPU or instance that is not served has a condition on the health board
// (HealthCondition::Kind::kMps). Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "device/sharing/mps_daemon.h"

namespace nos::device {

struct MpsControlOptions {
  std::string program = MpsToolOptions{}.program;
  // <folder>/<UUID> is a pipe directory; containers mount it at the same path.
  std::string folder = "/run/nos/mps";
  std::string log_folder = "/var/log/nos/mps";
  // If true, all users share a server, and a fault ends all their clients. If false, each GPU
  // serves one user at a time, and pods of other users wait (docs.nvidia.com/deploy/mps,
  // Provisioning Sequence).
  bool multi_user = false;
  // Socket of the process that starts daemons (mps_keeper.h); "": this process does.
  std::string keeper{};
  MpsDaemonOptions daemon{};
};

class MpsControl {
 public:
  // `board` must outlive this. Daemons keep running after destruction.
  MpsControl(MpsControlOptions options, GpuHealth& board);

  // Serves exactly these GPUs from now on: all other daemons are asked to quit, including those
  // left by a former agent. `undecided`: UUIDs whose daemons keep running for now, since clients
  // may depend on them. Does not wait for daemons, except for the command in progress of one whose
  // index or limit changed. Error: kInvalid: a GPU's UUID that cannot be a directory name; that GPU
  // is skipped.
  Status Keep(const std::vector<MpsGpu>& gpus, const std::set<std::string>& undecided = {});
  // True if a pipe directory of the GPU exists, possibly left by a former agent.
  bool HasLeft(const std::string& gpu_uuid) const;
  // UUIDs of all GPUs and instances with a pipe directory.
  std::set<std::string> Left() const;

  // Sorted by UUID, without daemons that are gone.
  std::vector<MpsState> States() const;
  // True if the daemon of this GPU or instance serves now.
  bool Serves(const std::string& uuid) const;
  // MpsGpu::memory_mib of a served instance; 0: not served now, or without this limit.
  int LimitMib(const std::string& uuid) const;
  // The value of CUDA_MPS_PIPE_DIRECTORY.
  std::string PipeFolder(const std::string& gpu_uuid) const;

 private:
  using Daemons = std::map<std::string, std::unique_ptr<MpsDaemon>>;  // by UUID

  std::unique_ptr<MpsDaemon> Make(const MpsGpu& gpu, bool wanted) const;
  Daemons TakeEnded(const std::map<std::string, const MpsGpu*>& wanted,
                    const std::set<std::string>& undecided);

  const MpsControlOptions options_;
  GpuHealth& board_;
  std::mutex keeping_;  // serializes Keep; locked before mutex_
  mutable std::mutex mutex_;
  Daemons daemons_;                        // guarded by mutex_
  std::map<std::string, int> limits_mib_;  // guarded by mutex_
};

}  // namespace nos::device
