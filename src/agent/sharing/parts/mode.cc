// MIG instances of hybrid nodes that several pods share by MPS (device/mig_parts.h). A part is
// offered while a daemon serves its instance; the daemon ends before the last part is destroyed.
#include <utility>

#include "agent/device_plugin.h"
#include "agent/node/divided_instances.h"
#include "agent/sharing/mps/service.h"
#include "agent/sharing/strategies.h"
#include "device/mig_parts.h"

namespace nos::agent {
namespace {

class PartSharing final : public SharingModeStrategy {
 public:
  PartSharing(std::shared_ptr<MpsService> mps, std::vector<gpu::InstancePart> parts)
      : mps_(std::move(mps)), parts_(std::move(parts)) {}

  std::string_view section() const override { return "hybrid"; }
  void Describe(ConfigFields& fields, DevicePlugins&) override {
    fields.Text(
        "migParts", text_,
        "Equal MPS shares into which MIG instances of such a node may be divided, such as "
        "3g.40gb.mps4,2g.20gb.mps2 (nvidia.com/mig-3g.40gb.mps4). A GPU uses the entries of its "
        "profiles. Empty: none. Requires mps.enabled.");
  }
  Status UsePlugin(const PluginTraits& plugin) override;
  void AddSettings(SharingSettings& settings) const override {
    if (settings.hybrid && mps_->enabled() && offered_) settings.parts = parts_;
  }
  std::unique_ptr<device::Backend> Decorate(device::Backend& backend,
                                            const ModeContext& context) override {
    if (!mps_->enabled()) return nullptr;
    return std::make_unique<device::MigParts>(backend, context.catalogue, parts_);
  }
  Result<std::optional<kubelet::ContainerGrant>> Grant(const kubelet::Allocation& allocation,
                                                       device::Backend& backend) const override {
    if (!mps_->enabled()) return std::optional<kubelet::ContainerGrant>();
    const MpsGrantOptions options = mps_->Grants(backend);
    return GrantMigParts(allocation, options, options.share_gib != nullptr);
  }
  void RequestDaemons(const ObservedState& round) override;
  void KeepDaemons(ObservedState& round) override;
  bool MayDestroy(const device::Operation& operation, const ObservedState& round) override;

 private:
  const std::shared_ptr<MpsService> mps_;
  std::string text_;  // of the configuration
  std::vector<gpu::InstancePart> parts_;
  bool offered_ = true;  // the plugin supports parts
  // UUIDs of divided instances whose last part is about to be destroyed: their daemons are stopped
  // first.
  std::set<std::string> ending_;
};

Status PartSharing::UsePlugin(const PluginTraits& plugin) {
  Result<std::vector<gpu::InstancePart>> parts = gpu::ParseParts(text_);
  if (!parts.ok()) return parts.status().Within("hybrid.migParts");
  parts_ = std::move(parts).value();
  offered_ = !plugin.serves_mps;
  if (parts_.empty() || mps_->enabled()) return Status::Ok();
  return Invalid("hybrid.migParts requires mps.enabled: parts of instances are shared by MPS");
}

// Divided instances are served as long as they have parts, except those whose last part is being
// destroyed. Daemons of an earlier agent continue while pods may use them.
void PartSharing::RequestDaemons(const ObservedState& round) {
  if (mps_->control() == nullptr) return;
  std::vector<device::MpsGpu> served;
  std::set<std::string> undecided;
  const NodeDevices& devices = round.devices;
  const std::map<std::string, DividedInstance> divided = DividedInstancesOf(devices);
  std::erase_if(ending_, [&](const std::string& uuid) {
    const auto left = divided.find(uuid);
    return left == divided.end() || left->second.parts.size() > 1 ||
           !round.unwanted.contains(left->second.parts.front()->uuid);
  });
  for (const auto& [uuid, instance] : divided) {
    const device::GpuInstance& part = *instance.parts.front();
    const auto profile = instance.gpu->model->FindProfile(part.profile);
    if (!profile || ending_.contains(uuid)) continue;
    served.push_back({instance.gpu->index, uuid, 0,
                      instance.gpu->model->profile(*profile).memory_mib,
                      device::DriverIdOf(part.id)});
  }
  for (const auto& [id, pod] : devices.holders) {
    if (const auto part = device::ParseMigPartId(id)) undecided.insert(part->mig_uuid);
  }
  if (devices.unseen_shares || !devices.unreadable.empty()) {
    std::set<std::string> left = mps_->control()->Left();
    for (const device::GpuInfo& info : devices.infos) {  // for these GPUs it is known
      if (info.share_gib > 0) left.erase(info.uuid);
    }
    undecided.merge(left);
  }
  mps_->Request(std::move(served), std::move(undecided));
}

// Marks parts of instances without a serving daemon as unhealthy, so that no new pod gets them.
void PartSharing::KeepDaemons(ObservedState& round) {
  if (mps_->control() == nullptr) return;
  mps_->Keep();
  const std::set<std::string> serving = mps_->Serving(), starting = mps_->Starting();
  for (const auto& [uuid, instance] : DividedInstancesOf(round.devices)) {
    if (serving.contains(uuid)) continue;
    round.waits |= starting.contains(uuid);
    for (const device::GpuInstance* part : instance.parts) {
      round.devices.unhealthy.insert(part->uuid);
    }
  }
}

bool PartSharing::MayDestroy(const device::Operation& operation, const ObservedState& round) {
  const auto part = device::ParseMigPartId(operation.uuid);
  if (!part || !mps_->IsServed(part->mig_uuid)) return true;
  if (DividedInstancesOf(round.devices)[part->mig_uuid].parts.size() > 1) return true;
  ending_.insert(part->mig_uuid);
  mps_->End(part->mig_uuid);
  return false;
}

}  // namespace

std::shared_ptr<SharingModeStrategy> MakePartSharing(std::shared_ptr<MpsService> mps,
                                                     const SharingOptions& options) {
  return std::make_shared<PartSharing>(std::move(mps), options.parts);
}

}  // namespace nos::agent
