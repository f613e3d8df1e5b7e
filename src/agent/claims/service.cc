#include <fmt/core.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "agent/claim_service.h"
#include "agent/events.h"
#include "agent/node_modes.h"
#include "base/log.h"
#include "base/text.h"

namespace nos::agent {
namespace {

constexpr int kApiThreads = 4;
constexpr Duration kEventTimeout = std::chrono::seconds(2);

ClaimDriverOptions DriverOptions(const ClaimServiceOptions& options) {
  ClaimDriverOptions driver;
  driver.node = options.node;
  driver.checkpoint =
      options.plugins + "/" + std::string(dra::kNosDriver) + "/prepared-claims.json";
  driver.metadata_folder =
      options.plugins + "/" + std::string(dra::kNosDriver) + "/device-metadata";
  driver.cdi_folder = options.cdi_folder;
  driver.host = options.host;
  return driver;
}

bool Exists(const std::string& path) {
  struct stat file{};
  return stat(path.c_str(), &file) == 0;
}

// "v1.36.2+k3s1". Feature gate DRAExtendedResource of the kubelet: on by default from 1.36 on.
bool KnowsExtendedResources(std::string_view kubelet_version) {
  constexpr int64_t kMinor = 36;
  if (!kubelet_version.starts_with("v1.")) return false;
  kubelet_version.remove_prefix(3);
  const auto minor = ParseInt(kubelet_version.substr(0, kubelet_version.find('.')));
  return minor && *minor >= kMinor;
}

// MPS shares and replicas have ids that begin with the UUID of their device.
Result<std::set<std::string>> HeldBy(kubelet::PodResources& pod_resources) {
  NOS_ASSIGN(const auto assignments, pod_resources.List());
  std::set<std::string> held;
  for (const kubelet::DeviceAssignment& one : assignments) {
    held.insert(one.device_id.substr(0, one.device_id.find("::")));
  }
  return held;
}

}  // namespace

ClaimService::ClaimService(ClaimServiceOptions options, ClaimServiceCollaborators collaborators)
    : options_(std::move(options)),
      others_(std::move(collaborators)),
      // The folder is left from a time when the node was used by claims.
      released_(!Exists(DriverOptions(options_).checkpoint)),
      faults_({options_.node, options_.retry}),
      client_(others_.transport),
      driver_(DriverOptions(options_),
              {[this](std::function<void(kube::Client&)> call) { Call(std::move(call)); },
               [this](int gpu, std::function<void()> task) {
                 return queues_.Run(gpu, std::move(task));
               },
               [this](int gpu) -> device::Backend& { return queues_.BackendOf(gpu); },
               [this] { return HeldBy(others_.pod_resources); }, others_.daemons, others_.wake,
               others_.metrics}),
      queues_(others_.make_backend),
      workers_(std::make_unique<kube::Workers>(others_.transport, kApiThreads)) {
  // Programs may depend on daemons that an earlier agent has started.
  if (!released_ && others_.daemons != nullptr) others_.daemons->AwaitClaims();
}

ClaimService::~ClaimService() {
  queues_.Stop();
  std::unique_ptr<kube::Workers> ending;
  {
    const std::lock_guard lock(workers_mutex_);
    ending = std::move(workers_);
  }
  ending.reset();  // without the lock: a running function may call again
}

void ClaimService::Call(std::function<void(kube::Client&)> call) {
  const std::lock_guard lock(workers_mutex_);
  if (workers_ != nullptr) workers_->Post(std::move(call));
}

void ClaimService::Use(bool use, const std::string& node_uid) {
  bool news = false;
  use = use && options_.enabled;
  {
    const std::lock_guard lock(mutex_);
    news = wanted_.use != use || wanted_.node_uid != node_uid;
    wanted_ = {use, node_uid};
    if (use) released_ = false;
  }
  if (news) others_.wake();
}

Time ClaimService::Step(Time now) {
  Wanted wanted;
  {
    const std::lock_guard lock(mutex_);
    wanted = wanted_;
    if (released_) return now + options_.poll;
  }
  // 1. Serve the kubelet: claims may have devices since before a restart.
  problem_ = Start();
  if (!problem_.ok()) {
    Log(LogLevel::kError, "failed to start DRA driver", {{"error", problem_.message()}});
    return now + options_.retry;
  }
  // 2. Create the instances of claims that schedulers have allocated.
  FollowClaims(now);
  driver_.EndUnusedDaemons();
  WriteReports(now);
  FollowFaults(now);
  // 3. Announce the GPUs, or the end of that.
  problem_ = UpdateSlices(now, wanted);
  PublishHealth(now, wanted.use.value_or(false));
  if (!problem_.ok()) {
    Log(LogLevel::kWarn, "failed to update ResourceSlices", {{"error", problem_.message()}});
    return now + options_.retry;
  }
  // 4. Keep what containers need when they restart.
  if (problem_ = driver_.KeepSpec(); !problem_.ok()) {
    Log(LogLevel::kWarn, "failed to keep CDI specification of ResourceClaims",
        {{"error", problem_.message()}});
    return now + options_.retry;
  }
  if (wanted.use == false && Release()) return now + options_.poll;
  Time next = now + (wanted.use == false ? options_.retry : options_.poll);
  if (const auto due = driver_.NextDue()) next = std::min(next, std::max(*due, now));
  next = std::min(next, faults_.NextPublication());
  return std::min(next, claims_->reflector().NextDue());
}

// True if no claim has a device any more. The agent may then offer the GPUs otherwise.
bool ClaimService::Release() {
  const bool idle = claims_->synced() && driver_.Idle() && !driver_.HasAllocated();
  // Without a checkpoint the next agent on this node knows that no claim has a device.
  if (!idle || !driver_.Forget().ok()) return false;
  server_.reset();
  claims_.reset();
  loaded_ = read_.withdrawn = false;
  const std::lock_guard lock(mutex_);
  released_ = wanted_.use == false;
  return released_;
}

Status ClaimService::Start() {
  if (server_ == nullptr) {
    server_ = std::make_unique<kubelet::DraPluginServer>(
        kubelet::DraPluginOptions{std::string(dra::kNosDriver), options_.plugins, options_.registry,
                                  "", others_.wake},
        driver_);
  }
  if (claims_ == nullptr) {
    kube::ReflectorOptions watch;
    watch.relist_every = options_.relist_every;
    watch.may_be_unknown = true;
    watch.wake = others_.wake;
    claims_ = std::make_unique<kube::Cache<AllocatedClaim>>(
        kResourceClaims,
        [pool = options_.node](JsonSource json, AllocatedClaim& to) {
          return ReadAllocatedClaim(pool, json, to);
        },
        watch);
  }
  if (gpus_.empty()) NOS_RETURN_IF_ERROR(ReadGpus());
  if (!loaded_) {
    NOS_RETURN_IF_ERROR(server_->MakeFolders());
    NOS_RETURN_IF_ERROR(driver_.Load());
    loaded_ = true;
  }
  return server_->Keep();
}

dra::GpuOfDriver ClaimService::FactsOf(const device::GpuInfo& info) const {
  dra::GpuOfDriver gpu;
  gpu.index = info.index;
  gpu.uuid = info.uuid;
  gpu.product = info.product;
  gpu.memory_mib = info.memory_mib;
  gpu.model = others_.catalogue.FindByProduct(info.product);
  if (gpu.model == nullptr) gpu.model = others_.catalogue.FindByPciId(info.pci_device_id);
  if (gpu.model != nullptr && gpu.model->counted()) gpu.model = nullptr;
  gpu.placements = gpu.model != nullptr && info.mig_capable;
  if (gpu.placements && NeedsReset(*gpu.model)) {
    gpu.placements = info.mig_enabled;
    gpu.whole = !info.mig_enabled;
  }
  gpu.pci_bus_id = device::PciBusIdOf(info.uuid, options_.host);
  if (!info.problem.empty()) gpu.fault = "NotReadable";
  gpu.shares.time_slices = options_.time_slices;
  std::map<std::string, std::string> unserved;
  if (others_.daemons != nullptr) {
    gpu.shares.memory_gib = std::max(info.could_share_gib, info.share_gib);
    gpu.shares.max_clients = info.max_shares;
    unserved = others_.daemons->Troubles();
  }
  faults_.faults().AddTo(gpu, unserved);
  return gpu;
}

// A GPU that disappears stays announced as unhealthy: consumers forget the counters of allocated
// devices that their slice does not list.
Status ClaimService::ReadGpus() {
  NOS_ASSIGN(const std::vector<device::GpuInfo> infos, others_.gpus());
  std::vector<dra::GpuOfDriver> gpus;
  for (const device::GpuInfo& info : infos) {
    const auto known = std::ranges::find(gpus_, info.index, &dra::GpuOfDriver::index);
    if (info.problem.empty() || known == gpus_.end()) {
      if (!info.uuid.empty()) gpus.push_back(FactsOf(info));
      continue;
    }
    gpus.push_back(*known);
    gpus.back().fault = "NotReadable";
  }
  for (const dra::GpuOfDriver& known : gpus_) {
    const bool there = std::ranges::any_of(
        gpus, [&](const auto& gpu) { return gpu.index == known.index || gpu.uuid == known.uuid; });
    if (there) continue;
    gpus.push_back(known);
    gpus.back().fault = "NotFound";
  }
  gpus_ = std::move(gpus);
  driver_.SetGpus(gpus_);
  return Status::Ok();
}

// Claims keep the shares that they have when no others are to be given. Shares of a GPU stay
// announced until the last of them ends: consumers forget the counters of allocated devices that
// their slice does not list.
std::vector<dra::GpuOfDriver> ClaimService::AnnouncedGpus() const {
  std::vector<dra::GpuOfDriver> gpus = gpus_;
  if (options_.shares) return gpus;
  const std::set<std::string> shared = SharedDevices();
  for (dra::GpuOfDriver& gpu : gpus) {
    std::vector<std::string> shares;
    bool in_use = false;
    for (const dra::DriverDevice& device : dra::DevicesOf(gpu)) {
      if (device.sharing == dra::DeviceSharing::kNone) continue;
      shares.push_back(device.name);
      in_use = in_use || shared.contains(device.name);
    }
    if (!in_use) {
      gpu.shares = {};
      continue;
    }
    for (const std::string& name : shares) gpu.device_faults.emplace(name, "SharesOff");
  }
  return gpus;
}

std::set<std::string> ClaimService::SharedDevices() const {
  std::set<std::string> shared;
  const auto add = [&](const std::vector<ClaimedDevice>& devices) {
    for (const ClaimedDevice& device : devices) {
      if (WithoutSharing(device.device) != device.device) shared.insert(device.device);
    }
  };
  if (claims_ != nullptr) {
    const auto all = claims_->Snapshot();
    for (const auto& claim : *all) add(claim->devices);
  }
  for (const auto& [uid, claim] : driver_.prepared()) add(claim.devices);
  return shared;
}

void ClaimService::FollowClaims(Time now) {
  claims_->Pump(client_, now);
  if (!claims_->synced()) return;
  std::map<std::string, AllocatedClaim> allocated;
  const auto all = claims_->Snapshot();
  for (const auto& claim : *all) {
    if (!claim->devices.empty()) allocated[claim->uid] = *claim;
  }
  driver_.SetAllocated(std::move(allocated), now);
}

void ClaimService::FollowFaults(Time now) {
  std::vector<device::HealthCondition> conditions;
  if (others_.health != nullptr) conditions = others_.health->Conditions();
  faults_.Follow(std::move(conditions), driver_, gpus_, now);
}

// While the node is left or not decided about, no other part of the agent has read the GPUs.
void ClaimService::PublishHealth(Time now, bool gpus_are_read) {
  if (faults_.NextPublication() > now) return;
  if (!gpus_are_read) (void)ReadGpus();
  faults_.Publish(*server_, AnnouncedGpus(), now);
}

// A report that cannot be written is made again.
void ClaimService::WriteReports(Time now) {
  for (const CreationReport& report : driver_.TakeReports()) {
    const Result<bool> written =
        WriteCreated(client_, options_.node, report.claim, report.status, now);
    if (written.ok()) {
      if (*written) AnnounceFailure(report, now);
      continue;
    }
    Log(LogLevel::kWarn, "failed to write conditions of ResourceClaim",
        {{"claim", report.claim.ns + "/" + report.claim.name},
         {"error", written.status().message()}});
  }
}

void ClaimService::AnnounceFailure(const CreationReport& report, Time now) {
  if (report.status.ok()) return;
  std::vector<std::string> devices;
  for (const ClaimedDevice& device : report.claim.devices) devices.push_back(device.device);
  kube::Client hasty = client_.Within(kEventTimeout);
  const kube::EventNote note =
      events::DeviceNotCreated(report.claim.ns, report.claim.name, report.claim.uid,
                               Join(devices, ", "), options_.node, report.status.message());
  events_.Record(hasty, note.object, note.type, note.reason, note.message, now);
}

// A kubelet is updated after the node was drained, so the version of the last read counts while the
// Node cannot be read.
bool ClaimService::ServesExtendedResources() {
  if (options_.extended_resources != "auto") return options_.extended_resources == "always";
  if (const auto node = client_.Get(kube::kNodes, "", options_.node); node.ok()) {
    const std::string_view version = FindString(*node, "status", "nodeInfo", "kubeletVersion");
    kubelet_serves_extended_ = KnowsExtendedResources(version);
  }
  return kubelet_serves_extended_;
}

Status ClaimService::UpdateSlices(Time now, const Wanted& wanted) {
  if (!wanted.use) return Status::Ok();
  if (!*wanted.use) {
    if (!read_.withdrawn) NOS_RETURN_IF_ERROR(slices_.Withdraw(client_, options_.node));
    read_ = {};
    read_.withdrawn = true;
    return Status::Ok();
  }
  read_.withdrawn = false;
  // A pod that is bound before the kubelet knows the driver waits for the kubelet's next attempt.
  NOS_RETURN_IF_ERROR(server_->Registration());
  const std::vector<device::HealthCondition>& health = faults_.faults().conditions();
  std::set<std::string> ending;
  if (!options_.shares) ending = SharedDevices();
  if (read_.next > now && read_.node_uid == wanted.node_uid && read_.health == health &&
      read_.ending == ending) {
    return Status::Ok();
  }
  NOS_RETURN_IF_ERROR(ReadGpus());
  const auto files = device::FindDriverFiles(options_.host);
  const std::string version = files.ok() ? files->version : "";
  const dra::NodeOfDriver node{options_.node, wanted.node_uid, version, ServesExtendedResources()};
  NOS_RETURN_IF_ERROR(slices_.Publish(client_, node, AnnouncedGpus()));
  read_ = {now + options_.poll, wanted.node_uid, health, std::move(ending), false};
  return Status::Ok();
}

}  // namespace nos::agent
