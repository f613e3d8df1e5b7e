#include "agent/loop/device_offer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "reconcile/node_write.h"

namespace nos::agent {
namespace {

// A retry does not help: missing permission, or an admission policy rejects the write.
bool IsForbidden(const Status& status) {
  return status.code() == Code::kPermission || status.code() == Code::kInvalid;
}

}  // namespace

DeviceOffer::DeviceOffer(Options options, kubelet::DevicePlugin& device_plugin,
                         kubelet::PodResources& pod_resources)
    : options_(options),
      device_plugin_(device_plugin),
      pod_resources_(pod_resources),
      drains_(options.drain) {}

void DeviceOffer::Track(const ObservedState& round) {
  drains_.Look(round.unwanted, CountsOf(round), *round.node);
}

bool DeviceOffer::WillWithdraw(const ObservedState& round, Time now) const {
  return std::ranges::any_of(round.unwanted, [&](const auto& instance) {
    return IsListed(instance.first) && drains_.Drained(instance.first, now);
  });
}

// An instance to destroy stays in the offer until it is drained, because pods may have been sent
// for it.
Status DeviceOffer::Publish(const ObservedState& round, Time now) {
  std::map<std::string, std::string> users = round.devices.users;
  for (const std::string& uuid : round.devices.Held()) users.try_emplace(uuid);
  device_plugin_.Avoid(users);
  std::set<std::string> withheld;
  for (const auto& [uuid, resource] : round.unwanted) {
    if (!IsListed(uuid) || drains_.Drained(uuid, now)) withheld.insert(uuid);
  }
  std::erase_if(awaited_by_, [&](const auto& item) { return !withheld.contains(item.first); });
  std::vector<kubelet::OfferedDevice> offer = OfferOf(round.devices, withheld);
  if (offered_ == offer && !device_plugin_.IsStale()) return Status::Ok();
  const bool same = offered_ == offer;
  for (const kubelet::OfferedDevice& device : offer) resources_.insert(device.resource);
  offered_.reset();  // if the call fails, the kubelet's list is unknown
  NOS_RETURN_IF_ERROR(device_plugin_.Offer(offer));
  offered_ = std::move(offer);
  if (same) return Status::Ok();  // the kubelet has it
  offer_changed_ = true;
  looks_ = 0;
  return Status::Ok();
}

Status DeviceOffer::OfferToReader(const NodeDevices& devices,
                                  const std::set<std::string>& left_out) {
  offered_.reset();  // the plugin, not this agent, determines its list
  return device_plugin_.Offer(OfferOf(devices, left_out));
}

// True if the kubelet may hand out the device, as far as is known.
bool DeviceOffer::IsListed(const std::string& uuid) const {
  return !offered_ || std::ranges::any_of(*offered_, [&](const kubelet::OfferedDevice& device) {
    return device.device_id == uuid;
  });
}

// Number of devices that schedulers may count on.
DeviceOffer::Counts DeviceOffer::CountsOf(const ObservedState& round) const {
  Counts counts;
  for (const std::string& resource : resources_) counts[resource] = 0;
  std::set<std::string> going;
  for (const auto& [uuid, resource] : round.unwanted) {
    going.insert(uuid);
    counts[resource] = 0;
  }
  for (const kubelet::OfferedDevice& device : OfferOf(round.devices, going)) {
    counts[device.resource] += device.healthy ? 1 : 0;
  }
  return counts;
}

// The counts that the node does not show. If the kubelet has written another value since, its value
// stands, except that instances to destroy are always subtracted.
DeviceOffer::Counts DeviceOffer::OutdatedCounts(const ObservedState& round, const Counts& counts) {
  std::set<std::string> draining;
  for (const auto& [uuid, resource] : round.unwanted) draining.insert(resource);
  Counts changes;
  for (const auto& [resource, count] : counts) {
    const int64_t shown = reconcile::AllocatableOf(*round.node, resource);
    const bool drains = shown > count && draining.contains(resource);
    const auto own = written_.find(resource);
    // The kubelet has overwritten it.
    if (own != written_.end() && own->second != shown) written_.erase(own);
    const bool outdated = Withdraws() && written_.contains(resource) && shown != count;
    if (drains || outdated || (offer_changed_ && shown != count)) changes[resource] = count;
  }
  return changes;
}

Result<std::shared_ptr<const cluster::Node>> DeviceOffer::UpdateAllocatable(
    const ObservedState& round, kube::Client& client, const Clock& clock) {
  const Counts counts = CountsOf(round);
  Counts changes = OutdatedCounts(round, counts);
  NOS_ASSIGN(const bool adopted, KubeletAdoptedOffer());
  if (!adopted) {
    std::erase_if(changes, [&](const auto& change) {
      return change.second > reconcile::AllocatableOf(*round.node, change.first);
    });
  }
  std::shared_ptr<const cluster::Node> written;
  bool refused = false;
  if (!changes.empty()) {
    Result<cluster::Node> patched = reconcile::PatchNodeDevices(client, *round.node, changes);
    if (patched.ok()) {
      written = std::make_shared<const cluster::Node>(std::move(patched).value());
      for (const auto& [resource, count] : changes) written_[resource] = count;
    } else if (!IsForbidden(patched.status())) {
      return patched.status();
    } else {  // the kubelet will write it later
      refused = true;
      Log(LogLevel::kWarn, "failed to update device counts of Node",
          {{"error", patched.status().ToString()}});
    }
  }
  offer_changed_ &= !adopted;
  drains_.OnWritten(round.unwanted, counts, written ? *written : *round.node, refused, clock.Now());
  return written;
}

Status DeviceOffer::ClearAllocatable(const cluster::Node& node, kube::Client& client) const {
  if (!Withdraws()) return Status::Ok();
  Counts none;
  for (const std::string& resource : resources_) {
    if (reconcile::AllocatableOf(node, resource) > 0) none[resource] = 0;
  }
  return none.empty() ? Status::Ok() : reconcile::PatchNodeDevices(client, node, none).status();
}

// The kubelet rejects pods that need new devices before it has adopted the offer.
Result<bool> DeviceOffer::KubeletAdoptedOffer() {
  look_again_.reset();
  if (!offer_changed_ || !offered_) return true;
  NOS_ASSIGN(const auto allocatable, pod_resources_.Allocatable());
  const std::set<kubelet::OfferedDevice> known(allocatable.begin(), allocatable.end());
  const bool adopted = std::ranges::all_of(*offered_, [&](const kubelet::OfferedDevice& device) {
    return !device.healthy || known.contains(device);
  });
  if (!adopted) look_again_ = options_.looks.After(++looks_);
  return adopted;
}

bool DeviceOffer::IsDraining(const std::string& uuid, Time now) const {
  return Withdraws() ? IsListed(uuid) : !drains_.Drained(uuid, now);
}

std::optional<Time> DeviceOffer::NextDrained(const ObservedState& round, Time now) const {
  std::optional<Time> next;
  for (const auto& [uuid, resource] : round.unwanted) {
    if (!IsDraining(uuid, now)) continue;
    const Time drained = std::max(now, drains_.DrainedAt(uuid));
    next = std::min(next.value_or(drained), drained);
  }
  return next;
}

void DeviceOffer::RecordAdmissions(const ObservedState& round) {
  for (const auto& [uuid, resource] : round.unwanted) {
    if (IsListed(uuid)) continue;
    const auto pods = round.pending_admission.find(resource);
    awaited_by_.try_emplace(
        uuid, pods == round.pending_admission.end() ? std::set<std::string>() : pods->second);
  }
}

// The kubelet chooses no device that is off the list. A device that cannot be taken off the list
// counts as awaited for the drain's time-out.
bool DeviceOffer::IsAwaited(const std::string& uuid, const ObservedState& round, Time now) const {
  const auto pods = round.pending_admission.find(round.unwanted.at(uuid));
  if (pods == round.pending_admission.end()) return false;
  if (!Withdraws()) return now < drains_.DrainedAt(uuid) + options_.drain.timeout;
  const auto by = awaited_by_.find(uuid);
  return by != awaited_by_.end() && std::ranges::any_of(by->second, [&](const std::string& pod) {
           return pods->second.contains(pod);
         });
}

}  // namespace nos::agent
