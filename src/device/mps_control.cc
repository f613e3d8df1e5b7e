#include "device/mps_control.h"

#include <fmt/core.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "device/mig_parts.h"
#include "device/mps_share.h"

namespace nos::device {
namespace {

// As in a share's id: it stands in a path.
bool IsUuid(const std::string& uuid) {
  return IsMigUuid(uuid) || ParseMpsShareId(MpsShareId({uuid, 1, 0})).has_value();
}

}  // namespace

MpsControl::MpsControl(MpsControlOptions options, HealthBoard& board)
    : options_(std::move(options)), board_(board) {}

std::string MpsControl::PipeFolder(const std::string& gpu_uuid) const {
  return options_.folder + "/" + gpu_uuid;
}

// REQUIRES: mutex_ is held.
void MpsControl::Add(const MpsGpu& gpu, bool wanted) {
  std::unique_ptr<MpsDaemon>& daemon = daemons_[gpu.uuid];
  daemon.reset();  // before the next one looks for what it leaves
  daemon = std::make_unique<MpsDaemon>(
      gpu,
      MpsToolOptions{options_.program, gpu.uuid, PipeFolder(gpu.uuid),
                     options_.log_folder + "/" + gpu.uuid, options_.multi_user},
      options_.daemon, board_, wanted);
}

bool MpsControl::HasLeft(const std::string& gpu_uuid) const {
  std::error_code fault;
  return IsUuid(gpu_uuid) && std::filesystem::exists(PipeFolder(gpu_uuid), fault);
}

std::set<std::string> MpsControl::LeftInstances() const {
  std::set<std::string> left;
  std::error_code fault;
  for (const auto& entry : std::filesystem::directory_iterator(options_.folder, fault)) {
    std::string uuid = entry.path().filename().string();
    if (IsMigUuid(uuid)) left.insert(std::move(uuid));
  }
  return left;
}

Status MpsControl::Keep(const std::vector<MpsGpu>& gpus, const std::set<std::string>& undecided) {
  Status result;
  std::map<std::string, const MpsGpu*> wanted;
  for (const MpsGpu& gpu : gpus) {
    if (IsUuid(gpu.uuid)) {
      wanted[gpu.uuid] = &gpu;
    } else {
      result =
          Invalid(fmt::format("GPU {} has no UUID that MPS can use: '{}'", gpu.index, gpu.uuid));
    }
  }
  const std::scoped_lock lock(mutex_);
  limits_mib_.clear();
  for (const auto& [uuid, gpu] : wanted) limits_mib_[uuid] = gpu->memory_mib;
  for (const auto& [uuid, gpu] : wanted) {
    const auto known = daemons_.find(uuid);
    // One that has ended as it should begins anew: that it starts is no fault, then.
    const bool anew = known == daemons_.end() || !known->second->IsFor(*gpu) ||
                      known->second->State().phase == MpsState::Phase::kGone;
    if (anew) {
      Add(*gpu, true);
    } else {
      known->second->Want(true);
    }
  }
  for (const auto& [uuid, daemon] : daemons_) {
    if (!wanted.contains(uuid) && !undecided.contains(uuid)) daemon->Want(false);
  }
  std::error_code fault;
  for (const auto& entry : std::filesystem::directory_iterator(options_.folder, fault)) {
    const std::string uuid = entry.path().filename().string();
    if (!IsUuid(uuid) || daemons_.contains(uuid) || undecided.contains(uuid)) continue;
    Add({-1, uuid, 0}, false);
  }
  return result;
}

int MpsControl::LimitMib(const std::string& uuid) const {
  const std::scoped_lock lock(mutex_);
  const auto limit = limits_mib_.find(uuid);
  const auto daemon = daemons_.find(uuid);
  const bool serves =
      daemon != daemons_.end() && daemon->second->State().phase == MpsState::Phase::kServing;
  return serves && limit != limits_mib_.end() ? limit->second : 0;
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
