// The MPS control daemons of a node: one for each GPU in MPS mode and for each MIG instance that is
// shared (device/mig_parts.h), with a pipe directory of its own.
//
//   MpsControl mps({.folder = "/run/nos/mps"}, board);
//   mps.Keep({{0, "GPU-...", 39}});
//   for (const MpsState& state : mps.States()) ...
//
// A daemon for each GPU, because a daemon's server is lost as a whole with one faulty client, and a
// client sees all GPUs of its daemon. Each GPU has to be in EXCLUSIVE_PROCESS mode before
// (Backend::SetComputeMode), so that no program gets past the daemon; instances keep the default
// mode, and who is given a part of one is told its daemon. "UUID" is a GPU's or an instance's.
//
// What is not served stands on the health board (HealthCondition::Kind::kMps). Thread-safe.
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
  // <folder>/<UUID> is a pipe directory, which containers get at the same path.
  std::string folder = "/run/nos/mps";
  std::string log_folder = "/var/log/nos/mps";
  // All users share a server, hence its faults. Else each GPU serves one user at a time, and pods
  // of another wait (docs.nvidia.com/deploy/mps, Provisioning Sequence).
  bool multi_user = false;
  MpsDaemonOptions daemon{};
};

class MpsControl {
 public:
  // `board` must outlive this. Daemons go on when this ends.
  MpsControl(MpsControlOptions options, HealthBoard& board);

  // From now on these GPUs are served and no others: their daemons are told to quit, those that a
  // former agent has left, too. `undecided`, by UUID: what is there of those goes on for now, since
  // clients may depend on it. Waits for no daemon, only,
  // where one has another index or limit now, for the command that it is being asked. Error:
  // kInvalid: a GPU's UUID that cannot be a folder's name; it is left out.
  Status Keep(const std::vector<MpsGpu>& gpus, const std::set<std::string>& undecided = {});
  // Whether there is something of a daemon for the GPU, of a former agent's, too.
  bool HasLeft(const std::string& gpu_uuid) const;
  // UUIDs of all GPUs and instances for which there is.
  std::set<std::string> Left() const;

  // In order of UUID, without those of which nothing is left.
  std::vector<MpsState> States() const;
  // Whether the daemon of this GPU or instance serves now.
  bool Serves(const std::string& uuid) const;
  // MpsGpu::memory_mib of what is served; 0: it is not now, or has another limit.
  int LimitMib(const std::string& uuid) const;
  // What CUDA_MPS_PIPE_DIRECTORY has to say.
  std::string PipeFolder(const std::string& gpu_uuid) const;

 private:
  using Daemons = std::map<std::string, std::unique_ptr<MpsDaemon>>;  // by UUID

  std::unique_ptr<MpsDaemon> Make(const MpsGpu& gpu, bool wanted) const;
  Daemons TakeEnded(const std::map<std::string, const MpsGpu*>& wanted,
                    const std::set<std::string>& undecided);

  const MpsControlOptions options_;
  HealthBoard& board_;
  std::mutex keeping_;  // one Keep after the other; taken before mutex_
  mutable std::mutex mutex_;
  Daemons daemons_;                        // guarded by mutex_
  std::map<std::string, int> limits_mib_;  // the same
};

}  // namespace nos::device
