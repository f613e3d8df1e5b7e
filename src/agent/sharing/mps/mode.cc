// GPUs that are shared by MPS: which ones are, and which ones were by an earlier agent.
//
// A share has a memory limit only while a daemon serves its GPU. Therefore a daemon runs until the
// GPU is no longer to be shared and has no shares left. A restarted agent does not know what the
// earlier one shared: it takes a GPU over if pods hold shares of it or a daemon runs, and changes
// nothing there before. Owned by one thread, except Grant() and Prefer().
#include <algorithm>
#include <utility>

#include "agent/device_plugin.h"
#include "agent/sharing/mps/requirements.h"
#include "agent/sharing/mps/service.h"
#include "agent/sharing/strategies.h"
#include "device/mps_gpus.h"
#include "device/mps_share.h"
#include "device/plain_gpus.h"
#include "gpu/occupancy.h"

namespace nos::agent {
namespace {

// True if the GPU has a device without a profile in its model. Such a device exists only in memory:
// pods have held it since the agent had other settings.
bool HasStrangers(const device::ObservedGpu& gpu) {
  return std::ranges::any_of(gpu.instances, [&](const device::GpuInstance& instance) {
    if (device::IsMigProfile(instance.profile)) return false;
    const auto profile = gpu.model->FindProfile(instance.profile);
    return !profile || !gpu::Occupancy(*gpu.model).Add({*profile, instance.start});
  });
}

// True if pods hold more shares than the GPU may have now.
bool IsOverfull(const device::ObservedGpu& gpu, const NodeDevices& devices) {
  const auto info = std::ranges::find(devices.infos, gpu.index, &device::GpuInfo::index);
  return info != devices.infos.end() && info->share_gib > 0 &&
         gpu.model != &gpu::SharesOf(info->share_gib, info->max_shares);
}

// Memory limit in GiB for clients of the GPU's daemon. A share in use that is larger than the GPU
// may have now keeps its size.
int MostOf(const device::GpuInfo& info, const device::ObservedGpu* gpu) {
  int most = info.share_gib;
  if (gpu == nullptr) return most;
  for (const device::GpuInstance& share : gpu->instances) {
    most = std::max(most, device::ParseMpsProfile(share.profile).value_or(0));
  }
  return most;
}

class MpsSharing final : public SharingModeStrategy {
 public:
  MpsSharing(std::shared_ptr<MpsService> service, MpsPodRequirements needs)
      : service_(std::move(service)), needs_(needs) {}

  std::string_view section() const override { return "mps"; }
  void Describe(ConfigFields& fields, DevicePlugins& plugins) override;
  std::string_view plugin() const override {
    return service_->enabled() ? std::string_view(plugin_) : std::string_view();
  }
  Status UsePlugin(const PluginTraits& plugin) override;
  std::unique_ptr<device::Backend> Decorate(device::Backend& backend,
                                            const ModeContext& context) override;
  ShareDaemons* Daemons() override {
    return service_->enabled() && service_->control() != nullptr ? service_.get() : nullptr;
  }
  Result<std::optional<kubelet::ContainerGrant>> Grant(const kubelet::Allocation& allocation,
                                                       device::Backend& backend) const override {
    if (!service_->enabled()) return std::optional<kubelet::ContainerGrant>();
    return GrantMpsShares(allocation, service_->Grants(backend));
  }
  std::function<std::vector<std::string>(const kubelet::Choice&)> Prefer() const override {
    if (prefers_) return PreferOneGpu;
    return {};
  }

  std::optional<RequestedMode> ModeOf(std::string_view label) const override {
    return label == "mps" ? std::optional<RequestedMode>({.mps = true}) : std::nullopt;
  }
  // Adds empty targets for GPUs whose devices are to be destroyed as they become free, whatever the
  // spec says: their sharing mode must change, or no plan can include their devices, or they have
  // more shares than allowed.
  void OnObserved(ObservedState& round) override;
  // Nodes that are not hybrid neither take over GPUs in MIG mode nor share them.
  std::set<int> NotTakenOver(const ObservedState& round) const override;
  bool Recovers(int gpu, std::span<const device::HealthCondition> faults) const override;
  std::vector<PodViolation> CheckPods(const NodeDevices& devices, Pods pods) const override {
    if (!service_->enabled()) return {};
    return FindMpsViolations(devices, pods, needs_);
  }
  void RequestDaemons(const ObservedState& round) override;
  void KeepDaemons(ObservedState&) override { service_->Keep(); }

  // Shares a GPU as the node's mode requests, or ends that.
  std::optional<device::Operation> Next(const ObservedState& round,
                                        const Deferral& deferral) const override;
  bool IsServed(const std::string& uuid) const override { return service_->IsServed(uuid); }
  // Puts back the compute mode of a GPU that an earlier agent shared, if this agent shares none.
  std::optional<Status> Apply(const device::Operation& operation, Gpus gpus,
                              device::Backend& backend) override;

 private:
  std::set<std::string> WereShared(const ObservedState& round) const;
  std::optional<device::Operation> NextPutBack(const ObservedState& round,
                                               const Deferral& deferral) const;

  const std::shared_ptr<MpsService> service_;
  MpsPodRequirements needs_;
  bool prefers_ = false;  // the kubelet asks which shares a container should get
  std::string plugin_ = "builtin";
  int64_t overhead_mib_ = gpu::kShareOverheadMib, max_clients_ = gpu::kMaxShares;
  std::set<std::string> leaving_;  // UUIDs of GPUs whose daemons were asked to stop
};

void MpsSharing::Describe(ConfigFields& fields, DevicePlugins& plugins) {
  MpsServiceOptions& options = service_->options();
  fields.Flag("enabled", options.enabled,
              "Share the GPUs of a node with label nos.nebuly.com/gpu-partitioning=mps by memory "
              "(nvidia.com/gpu-<N>gb). With plugin builtin, requires devicePlugin.mode builtin.");
  plugins.DescribeForShares(fields, plugin_);
  fields.Text("program", options.control.program,
              "NVIDIA's MPS control daemon: a path, or a name in $PATH.");
  fields.Text(
      "keeper", options.control.keeper,
      "Socket of `nos mps` on this node, which starts the daemons, so that they outlive the "
      "agent's container. Empty: the agent starts them.");
  fields.Text("folder", options.control.folder,
              "Folder of the daemons' pipes; containers get their GPU's folder at the same path.");
  fields.Text("logFolder", options.control.log_folder, "Folder of the daemons' logs.");
  fields.Text(
      "shmFolder", options.shm_folder,
      "Folder on the host that daemons and containers mount as /dev/shm. Empty: pods must set "
      "hostIPC.");
  fields.Number("shmMiB", options.shm_mib, 16, int64_t{1} << 20,
                "Size of that folder in MiB, for all containers together: more cannot be written.");
  fields.Flag(
      "multiUser", options.control.multi_user,
      "If true, all users share one MPS server and its faults. If false, pods of other users "
      "wait.");
  fields.Flag(
      "computeByMemory", options.by_memory,
      "If true, a share may use multiprocessors in proportion to its memory, else all of them.");
  fields.Number("overheadMiB", overhead_mib_, 0, 16384,
                "Memory per GPU in MiB reserved for the MPS server and its clients' contexts.");
  fields.Number("clientsPerGpu", max_clients_, 1, gpu::kMaxClients,
                "Maximum number of shares per GPU: the client limit of its MPS server.");
}

Status MpsSharing::UsePlugin(const PluginTraits& plugin) {
  if (!service_->enabled()) return Status::Ok();
  if (!plugin.shares) {
    return Invalid(
        "mps.enabled requires devicePlugin.mode builtin or mps.plugin nebuly: NVIDIA's plugin "
        "offers no shares");
  }
  // A plugin that serves the GPUs runs a server for one user, reached through the host's IPC.
  const MpsServiceOptions& options = service_->options();
  needs_ = {plugin.serves_mps || options.shm_folder.empty(),
            plugin.serves_mps || !options.control.multi_user};
  prefers_ = !plugin.serves_mps;
  return Status::Ok();
}

std::unique_ptr<device::Backend> MpsSharing::Decorate(device::Backend& backend,
                                                      const ModeContext& context) {
  if (!service_->enabled()) return nullptr;
  if (!context.plugin.traits().serves_mps) service_->Start(context);
  return context.plugin.MakeShares(backend, {overhead_mib_, static_cast<int>(max_clients_)},
                                   context.pod_resources);
}

void MpsSharing::OnObserved(ObservedState& round) {
  for (const device::ObservedGpu& gpu : round.devices.gpus) {
    if (HasStrangers(gpu) || IsOverfull(gpu, round.devices))
      round.targets.push_back({gpu.index, {}});
  }
  if (round.mode.Shares()) return;  // on a hybrid node no mode is outdated
  const bool to_mps = round.mode.mps;
  for (const device::ObservedGpu& gpu : round.devices.gpus) {
    // A GPU that is about to be shared must not be partitioned again, even if an old spec requests
    // it.
    const bool partitioned = gpu.mig_enabled || to_mps;
    if (!partitioned || gpu.model->counted() == to_mps) continue;
    if (!to_mps || service_->enabled()) round.targets.push_back({gpu.index, {}});
  }
}

bool MpsSharing::Recovers(int gpu, std::span<const device::HealthCondition> faults) const {
  const bool unserved = std::ranges::all_of(faults, [](const device::HealthCondition& fault) {
    return fault.kind == device::HealthCondition::Kind::kMps;
  });
  return unserved && service_->IsChanging(gpu);
}

// UUIDs of GPUs that an earlier agent shared and this one does not share yet: pods hold shares of
// them, or a daemon runs.
std::set<std::string> MpsSharing::WereShared(const ObservedState& round) const {
  std::set<std::string> shared;
  const device::MpsControl* daemons = service_->control();
  for (const auto& [id, pod] : round.devices.holders) {
    if (const auto share = device::ParseMpsShareId(id)) shared.insert(share->gpu_uuid);
  }
  for (const device::GpuInfo& info : round.devices.infos) {
    const bool exclusive = info.compute_mode == device::ComputeMode::kExclusiveProcess;
    const bool served = daemons != nullptr && daemons->HasLeft(info.uuid);
    // On a hybrid node no other tool sets this compute mode, which prevents pods from taking turns
    // on the GPU.
    const bool ours = served || round.mode.Shares();
    // A GPU in MIG mode has the compute mode from an earlier time.
    if (exclusive && ours && !info.mig_enabled) shared.insert(info.uuid);
    if (info.share_gib > 0) shared.erase(info.uuid);
  }
  return shared;
}

std::set<int> MpsSharing::NotTakenOver(const ObservedState& round) const {
  std::set<int> gpus;
  const bool hybrid = round.mode.Shares();
  const std::set<std::string> were_shared = WereShared(round);
  for (const device::GpuInfo& info : round.devices.infos) {
    const bool ours = were_shared.contains(info.uuid) && (hybrid || !info.mig_enabled);
    if (ours) gpus.insert(info.index);
  }
  return gpus;
}

std::optional<device::Operation> MpsSharing::Next(const ObservedState& round,
                                                  const Deferral& deferral) const {
  if (!service_->enabled()) return NextPutBack(round, deferral);
  const std::set<std::string> were_shared = WereShared(round);
  std::vector<device::GpuInfo> infos = round.devices.infos;
  if (round.mode.per_gpu) {
    // The specs decide about all other GPUs.
    std::erase_if(infos, [&](const device::GpuInfo& info) {
      return deferral.gpu(info) || (info.share_gib == 0 && !were_shared.contains(info.uuid));
    });
  }
  return device::NextSwitch(round.mode.mps, infos, round.devices.gpus, were_shared, round.keep,
                            deferral.operation);
}

std::optional<Status> MpsSharing::Apply(const device::Operation& operation, Gpus,
                                        device::Backend& backend) {
  const bool puts_back =
      !service_->enabled() && operation.kind == device::Operation::Kind::kDisableMps;
  if (!puts_back) return std::nullopt;
  return backend.SetComputeMode(operation.gpu, device::ComputeMode::kDefault);
}

// Resets the compute mode of GPUs that an earlier agent shared, if this agent shares none and no
// pod holds a share.
std::optional<device::Operation> MpsSharing::NextPutBack(const ObservedState& round,
                                                         const Deferral& deferral) const {
  std::set<std::string> held = round.keep;
  for (const auto& [id, pod] : round.devices.holders) {
    if (const auto share = device::ParseMpsShareId(id)) held.insert(share->gpu_uuid);
  }
  const std::set<std::string> were_shared = WereShared(round);
  for (const device::GpuInfo& info : round.devices.infos) {
    const bool left = info.compute_mode == device::ComputeMode::kExclusiveProcess &&
                      were_shared.contains(info.uuid) && !held.contains(info.uuid);
    if (!left || !info.problem.empty()) continue;
    device::Operation operation{
        device::Operation::Kind::kDisableMps, info.index, "", 0, 0, info.uuid};
    if (!deferral.operation(operation)) return operation;
  }
  return std::nullopt;
}

// One daemon for each shared GPU. Daemons of an earlier agent continue until this agent has taken
// over their GPUs.
void MpsSharing::RequestDaemons(const ObservedState& round) {
  if (service_->control() == nullptr) return;
  const bool hybrid = round.mode.Shares(), to_mps = round.mode.mps;
  std::set<std::string> undecided = WereShared(round);
  std::vector<device::MpsGpu> served;
  std::set<std::string> leave;
  for (const device::GpuInfo& info : round.devices.infos) {
    if (info.share_gib == 0) {
      if (to_mps && !hybrid) undecided.insert(info.uuid);
      continue;
    }
    const auto gpu = std::ranges::find(round.devices.gpus, info.index, &device::ObservedGpu::index);
    const auto target = std::ranges::find(round.targets, info.index, &device::Target::gpu);
    const bool otherwise =
        target != round.targets.end() && target->model != nullptr && !target->model->counted();
    // While its daemon stops, the GPU counts as unhealthy and therefore has no target.
    const bool ends = leaving_.contains(info.uuid) && round.devices.broken.contains(info.index);
    const bool leaves = hybrid ? otherwise || ends : !to_mps;
    const bool left = leaves && !round.devices.unseen_shares && gpu != round.devices.gpus.end() &&
                      gpu->instances.empty();
    if (left) leave.insert(info.uuid);
    const auto* read = gpu == round.devices.gpus.end() ? nullptr : &*gpu;
    if (!left) served.push_back({info.index, info.uuid, MostOf(info, read)});
  }
  leaving_ = std::move(leave);
  service_->Request(std::move(served), std::move(undecided));
}

}  // namespace

std::shared_ptr<SharingModeStrategy> MakeMpsSharing(std::shared_ptr<MpsService> service,
                                                    const SharingOptions& options) {
  return std::make_shared<MpsSharing>(std::move(service), options.mps_requirements);
}

}  // namespace nos::agent
