#include "agent/sharing/mps/service.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "agent/sharing/mps/limited_folder.h"
#include "base/log.h"
#include "device/mig_parts.h"
#include "device/mps_share.h"

namespace nos::agent {
namespace {

using enum device::MpsState::Phase;

bool StartsFirst(const device::MpsState& state) {
  return state.phase == kStarting && state.starts <= 1;
}

constexpr const char* kSharedMemory = "/dev/shm";
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kPipesMib = 16;  // sockets, locks and process ids

// Containers that a former agent has started keep the folders that they have.
bool AreSharesInUse(kubelet::PodResources& pod_resources) {
  const auto assignments = pod_resources.List();
  return !assignments.ok() || std::ranges::any_of(*assignments, [](const auto& assignment) {
    return device::ParseMpsShareId(assignment.device_id) ||
           device::ParseMigPartId(assignment.device_id);
  });
}

void LimitOrWarn(const std::string& folder, const FolderLimit& limit) {
  if (const Status limited = LimitFolder(folder, limit); !limited.ok()) {
    Log(LogLevel::kWarn, "failed to limit the size of a folder that MPS clients can fill",
        {{"folder", folder}, {"error", limited.message()}});
  }
}

// The host's folder is new and belongs to root. Clients of all users share memory there, as in
// every /dev/shm.
void OpenSharedMemory() {
  if (chmod(kSharedMemory, 01777) == 0) return;
  Log(LogLevel::kWarn, "failed to open /dev/shm for MPS clients of all users",
      {{"error", std::generic_category().message(errno)}});
}

}  // namespace

void MpsService::Start(const ModeContext& context) {
  const bool may_mount = !AreSharesInUse(context.pod_resources);
  LimitOrWarn(options_.control.folder, {kPipesMib * kMiB, 0755, may_mount});
  if (!options_.shm_folder.empty()) {
    LimitOrWarn(kSharedMemory, {options_.shm_mib * kMiB, 01777, may_mount});
    OpenSharedMemory();
  }
  options_.control.daemon.on_change = [this, look = context.look] {
    {
      const std::lock_guard lock(changes_mutex_);
      ++changes_;
    }
    changed_.notify_all();
    look();
  };
  own_ = std::make_unique<device::MpsControl>(options_.control, context.health);
  control_ = own_.get();
}

void MpsService::Request(std::vector<device::MpsGpu> served, std::set<std::string> undecided) {
  Demand& demand = requested_ ? *requested_ : requested_.emplace();
  demand.served.insert(demand.served.end(), served.begin(), served.end());
  demand.undecided.merge(undecided);
}

void MpsService::Keep() {
  if (!requested_) return;
  const std::lock_guard lock(mutex_);
  kept_ = *std::move(requested_);
  requested_.reset();
  Apply();
}

void MpsService::End(const std::string& uuid) {
  const std::lock_guard lock(mutex_);
  if (!kept_) return;
  std::erase_if(kept_->served, [&](const device::MpsGpu& gpu) { return gpu.uuid == uuid; });
  Apply();
}

void MpsService::AwaitClaims() {
  const std::lock_guard lock(mutex_);
  for_claims_.reset();
}

void MpsService::ServeForClaims(std::vector<device::MpsGpu> devices) {
  const std::lock_guard lock(mutex_);
  for_claims_ = std::move(devices);
  Apply();
}

bool MpsService::AwaitServing(const std::string& uuid, Duration at_most) {
  return Await([&] { return control_->Serves(uuid); }, at_most);
}

bool MpsService::AwaitEnd(const std::string& uuid, Duration at_most) {
  return Await([&] { return !IsServed(uuid); }, at_most);
}

// Daemons report changes from their threads, and must not wait for a condition that reads them.
bool MpsService::Await(const std::function<bool()>& holds, Duration at_most) {
  const auto deadline = std::chrono::steady_clock::now() + at_most;
  for (;;) {
    std::unique_lock lock(changes_mutex_);
    const uint64_t seen = changes_;
    lock.unlock();
    if (holds()) return true;
    lock.lock();
    const bool changed = changed_.wait_until(lock, deadline, [&] { return changes_ != seen; });
    if (!changed) return false;
  }
}

std::map<std::string, std::string> MpsService::Troubles() const {
  std::map<std::string, std::string> troubles;
  for (const device::MpsState& state : States()) {
    const bool down = state.phase == kWaiting || state.phase == kStarting;
    if (down && !StartsFirst(state)) troubles[state.gpu_uuid] = state.trouble;
  }
  return troubles;
}

device::ContainerEdits MpsService::AccessTo(const std::string& uuid, int64_t memory_mib,
                                            int64_t total_mib) const {
  const bool in_proportion = options_.by_memory && total_mib > 0;
  const int64_t percentage =
      in_proportion ? std::clamp<int64_t>(100 * memory_mib / total_mib, 1, 100) : 0;
  const kubelet::ContainerGrant access =
      MpsAccess(uuid, fmt::format("{}M", memory_mib), percentage, DaemonGrants());
  device::ContainerEdits edits{access.environment, {}};
  for (const auto& mount : access.mounts) {
    edits.folders.push_back({mount.host_path, mount.container_path});
  }
  return edits;
}

// REQUIRES: the lock is held.
void MpsService::Apply() {
  std::vector<device::MpsGpu> served;
  std::set<std::string> undecided;
  if (kept_) {
    served = kept_->served;
    undecided = kept_->undecided;
  }
  if (for_claims_) served.insert(served.end(), for_claims_->begin(), for_claims_->end());
  if (!kept_ || !for_claims_) undecided.merge(control_->Left());
  for (const device::MpsGpu& gpu : served) undecided.erase(gpu.uuid);
  if (const Status kept = control_->Keep(served, undecided); !kept.ok()) {
    Log(LogLevel::kWarn, "failed to keep MPS daemons of GPUs", {{"error", kept.message()}});
  }
}

std::vector<device::MpsState> MpsService::States() const {
  return control_ == nullptr ? std::vector<device::MpsState>() : control_->States();
}

bool MpsService::IsServed(const std::string& uuid) const {
  return std::ranges::any_of(States(),
                             [&](const device::MpsState& state) { return state.gpu_uuid == uuid; });
}

std::set<std::string> MpsService::Serving() const {
  std::set<std::string> serving;
  for (const device::MpsState& state : States()) {
    if (state.phase == kServing) serving.insert(state.gpu_uuid);
  }
  return serving;
}

std::set<std::string> MpsService::Starting() const {
  std::set<std::string> starting;
  for (const device::MpsState& state : States()) {
    if (StartsFirst(state)) starting.insert(state.gpu_uuid);
  }
  return starting;
}

bool MpsService::IsChanging(int gpu) const {
  return std::ranges::any_of(States(), [&](const device::MpsState& state) {
    return state.gpu == gpu &&
           (StartsFirst(state) || state.phase == kServing || state.phase == kLeaving);
  });
}

MpsGrantOptions MpsService::DaemonGrants() const {
  MpsGrantOptions options;
  options.shm_folder = options_.shm_folder;
  if (const device::MpsControl* daemons = control_; daemons != nullptr) {
    options.pipe_folder = [daemons](const std::string& uuid) { return daemons->PipeFolder(uuid); };
    options.part_mib = [daemons](const std::string& uuid) { return daemons->LimitMib(uuid); };
    options.serves = [daemons](const std::string& uuid) { return daemons->Serves(uuid); };
  }
  return options;
}

MpsGrantOptions MpsService::Grants(device::Backend& backend) const {
  MpsGrantOptions options = DaemonGrants();
  if (!options_.by_memory) return options;
  options.share_gib = [&backend](const std::string& uuid) {
    const auto infos = backend.ListGpus();
    if (!infos.ok()) return 0;
    const auto gpu = std::ranges::find(*infos, uuid, &device::GpuInfo::uuid);
    return gpu == infos->end() ? 0 : gpu->share_gib;
  };
  return options;
}

}  // namespace nos::agent
