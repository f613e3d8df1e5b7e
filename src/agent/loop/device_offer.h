// Offers the node's devices to the kubelet and keeps the node's allocatable in step, so that an
// instance leaves both before it is destroyed.
//
//   offer.Track(round);                                  // what is unwanted, and what counts it
//   if (offer.WillWithdraw(round, now)) ...              // read pods uncached, track again
//   NOS_RETURN_IF_ERROR(offer.Publish(round));
//   NOS_ASSIGN(const auto written, offer.UpdateAllocatable(round, client, clock));
//   if (offer.IsDraining(uuid, now) || offer.IsAwaited(uuid, round, now)) return;  // not yet
//
// An unwanted instance moves counted -> uncounted -> drained -> withdrawn. Allocatable stops
// counting it (UpdateAllocatable); `settle` later it is drained; the next Publish leaves it out. It
// stays awaited while pods that were being admitted at that time may still get it. A plugin that
// cannot withdraw single devices (DevicePlugin::Withdraws) gets its list after all operations, by
// OfferToReader, and a drained instance there counts as withdrawn.
//
// New devices are offered before allocatable counts them, because the kubelet rejects pods whose
// devices it does not know. Owned by one thread; the references outlive it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "agent/node/drains.h"
#include "agent/node/observed_state.h"
#include "base/back_off.h"
#include "base/clock.h"
#include "kube/client.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"

namespace nos::agent {

class DeviceOffer {
 public:
  struct Options {
    DrainTimes drain{};
    // Pauses between looks whether the kubelet has adopted an offer.
    BackOff looks{};
  };

  DeviceOffer(Options options, kubelet::DevicePlugin& device_plugin,
              kubelet::PodResources& pod_resources);

  bool Withdraws() const { return device_plugin_.Withdraws(); }
  bool WasOffered(const std::string& resource) const { return resources_.contains(resource); }

  // Follows the drains of the unwanted instances. Call it for each observation before an instance
  // is withdrawn or destroyed.
  void Track(const ObservedState& round);
  // True if the next Publish takes an instance off the kubelet's list.
  bool WillWithdraw(const ObservedState& round, Time now) const;
  // Gives the kubelet the list of devices without withdrawn instances. REQUIRES: Withdraws().
  // Error: as DevicePlugin::Offer; the kubelet's list is then unknown.
  Status Publish(const ObservedState& round, Time now);
  // The same for a plugin that reads the devices itself: all of them except `left_out`.
  Status OfferToReader(const NodeDevices& devices, const std::set<std::string>& left_out);

  // Writes allocatable early, as the kubelet would write it at its next sync. Returns the node as
  // written; null if nothing changes or the API server forbids it. Error: that of the client, or of
  // the kubelet.
  Result<std::shared_ptr<const cluster::Node>> UpdateAllocatable(const ObservedState& round,
                                                                 kube::Client& client,
                                                                 const Clock& clock);
  // Sets the counts to 0, before the offer ends with the process.
  Status ClearAllocatable(const cluster::Node& node, kube::Client& client) const;
  // When to look again whether the kubelet has adopted the offer; no value: it has.
  std::optional<Duration> look_again() const { return look_again_; }

  // True if schedulers may still send pods for the device, or the kubelet may choose it for one.
  bool IsDraining(const std::string& uuid, Time now) const;
  // When the first of the draining instances is drained; Time::max() if that is unknown.
  std::optional<Time> NextDrained(const ObservedState& round, Time now) const;
  // Records the pods that are being admitted, for each unwanted instance off the list.
  void RecordAdmissions(const ObservedState& round);
  // True if the device may be given to a pod that is being admitted. REQUIRES: `uuid` is in
  // round.unwanted and not draining.
  bool IsAwaited(const std::string& uuid, const ObservedState& round, Time now) const;
  // Refuses later allocations of the device. False: it was allocated meanwhile and must stay.
  bool RefuseAllocation(const std::string& uuid) { return device_plugin_.RefuseAllocation(uuid); }

 private:
  using Counts = std::map<std::string, int64_t>;  // by resource

  bool IsListed(const std::string& uuid) const;
  Counts CountsOf(const ObservedState& round) const;
  Counts OutdatedCounts(const ObservedState& round, const Counts& counts);
  Result<bool> KubeletAdoptedOffer();

  const Options options_;
  kubelet::DevicePlugin& device_plugin_;
  kubelet::PodResources& pod_resources_;
  Drains drains_;
  // The offer that the kubelet has confirmed.
  std::optional<std::vector<kubelet::OfferedDevice>> offered_;
  int looks_ = 0;                       // checks whether the kubelet has adopted this offer
  std::optional<Duration> look_again_;  // until the next one
  bool offer_changed_ = false;          // the node does not show the new offer yet
  // For each UUID that has left the offer: the pods that were being admitted at that time.
  std::map<std::string, std::set<std::string>> awaited_by_;
  std::set<std::string> resources_;  // resources that were ever offered
  Counts written_;                   // the counts that we last wrote into the node
};

}  // namespace nos::agent
