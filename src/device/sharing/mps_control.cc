#include "device/mps_control.h"

#include <fmt/core.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "device/mps_share.h"

namespace nos::device {

MpsControl::MpsControl(MpsControlOptions options, GpuHealth& board)
    : options_(std::move(options)), board_(board) {}

std::string MpsControl::PipeFolder(const std::string& gpu_uuid) const {
  return options_.folder + "/" + gpu_uuid;
}

std::unique_ptr<MpsDaemon> MpsControl::Make(const MpsGpu& gpu, bool wanted) const {
  MpsToolOptions tool;
  tool.program = options_.program;
  tool.gpu_uuid = gpu.uuid;
  tool.pipe_folder = PipeFolder(gpu.uuid);
  tool.log_folder = options_.log_folder + "/" + gpu.uuid;
  tool.multi_user = options_.multi_user;
  tool.keeper = options_.keeper;
  return std::make_unique<MpsDaemon>(gpu, std::move(tool), options_.daemon, board_, wanted);
}

bool MpsControl::HasLeft(const std::string& gpu_uuid) const {
  std::error_code fault;
  return IsMpsUuid(gpu_uuid) && std::filesystem::exists(PipeFolder(gpu_uuid), fault);
}

std::set<std::string> MpsControl::Left() const {
  std::set<std::string> left;
  std::error_code fault;
  for (const auto& entry : std::filesystem::directory_iterator(options_.folder, fault)) {
    std::string uuid = entry.path().filename().string();
    if (IsMpsUuid(uuid)) left.insert(std::move(uuid));
  }
  return left;
}

Status MpsControl::Keep(const std::vector<MpsGpu>& gpus, const std::set<std::string>& undecided) {
  Status result;
  std::map<std::string, const MpsGpu*> wanted;
  for (const MpsGpu& gpu : gpus) {
    if (IsMpsUuid(gpu.uuid)) {
      wanted[gpu.uuid] = &gpu;
    } else {
      result =
          Invalid(fmt::format("GPU {} has no UUID that MPS can use: '{}'", gpu.index, gpu.uuid));
    }
  }
  const std::scoped_lock keeping(keeping_);
  // 1. Destroy ended daemons without the lock, because their threads must finish first, and before
  // new daemons look at the same directories.
  TakeEnded(wanted, undecided).clear();
  // 2. Serve the wanted GPUs.
  const std::scoped_lock lock(mutex_);
  limits_mib_.clear();
  for (const auto& [uuid, gpu] : wanted) {
    limits_mib_[uuid] = gpu->memory_mib;
    std::unique_ptr<MpsDaemon>& daemon = daemons_[uuid];
    if (daemon == nullptr) {
      daemon = Make(*gpu, true);
    } else {
      daemon->Want(true);
    }
  }
  // 3. End the others: known daemons, and directories left by a former agent.
  for (const auto& [uuid, daemon] : daemons_) {
    if (!wanted.contains(uuid) && !undecided.contains(uuid)) daemon->Want(false);
  }
  std::error_code fault;
  for (const auto& entry : std::filesystem::directory_iterator(options_.folder, fault)) {
    const std::string uuid = entry.path().filename().string();
    if (!IsMpsUuid(uuid) || daemons_.contains(uuid) || undecided.contains(uuid)) continue;
    daemons_[uuid] = Make({-1, uuid, 0}, false);
  }
  return result;
}

// Takes out the daemons to be created again, and those that left nothing behind, also of missing
// GPUs.
MpsControl::Daemons MpsControl::TakeEnded(const std::map<std::string, const MpsGpu*>& wanted,
                                          const std::set<std::string>& undecided) {
  Daemons ended;
  const std::scoped_lock lock(mutex_);
  for (auto known = daemons_.begin(); known != daemons_.end();) {
    const auto here = known++;
    const auto& [uuid, daemon] = *here;
    const auto gpu = wanted.find(uuid);
    const bool gone = daemon->State().phase == MpsState::Phase::kGone;
    // A daemon that ended as requested is created again, so that its start does not count as a
    // fault. A directory that cannot be removed keeps its ended daemon, so that it is not searched
    // again and again.
    const bool takes = gpu == wanted.end() ? gone && !undecided.contains(uuid) && !HasLeft(uuid)
                                           : gone || !daemon->IsFor(*gpu->second);
    if (takes) ended.insert(daemons_.extract(here));
  }
  return ended;
}

bool MpsControl::Serves(const std::string& uuid) const {
  const std::scoped_lock lock(mutex_);
  const auto daemon = daemons_.find(uuid);
  return daemon != daemons_.end() && daemon->second->State().phase == MpsState::Phase::kServing;
}

int MpsControl::LimitMib(const std::string& uuid) const {
  if (!Serves(uuid)) return 0;
  const std::scoped_lock lock(mutex_);
  const auto limit = limits_mib_.find(uuid);
  return limit == limits_mib_.end() ? 0 : limit->second;
}

std::vector<MpsState> MpsControl::States() const {
  const std::scoped_lock lock(mutex_);
  std::vector<MpsState> states;
  for (const auto& [uuid, daemon] : daemons_) {
    MpsState state = daemon->State();
    if (state.phase != MpsState::Phase::kGone) states.push_back(std::move(state));
  }
  return states;
}

}  // namespace nos::device
