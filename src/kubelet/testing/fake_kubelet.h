// The device manager of a kubelet, for tests: holds the offer and allocates devices to pods.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"

namespace nos::kubelet {

class FakeKubelet final : public DevicePlugin, public PodResources {
 public:
  Status Offer(const std::vector<OfferedDevice>& devices) override;
  bool Withdraws() const override { return withdraws; }
  bool RefuseAllocation(const std::string& device_id) override { return device_id != taken_late; }
  Result<std::vector<DeviceAssignment>> List() override;
  Result<std::vector<ClaimAssignment>> ListClaims() override;
  Result<std::vector<OfferedDevice>> Allocatable() override;

  // Allocates a free offered device to the pod's container. A container called "init" is an init
  // container, whose devices List() omits, as kubelets do. Error: kExhausted.
  Status Admit(const std::string& ns, const std::string& pod, const std::string& resource,
               const std::string& container = "main");
  // Assigns a device without checking the offer.
  void Assign(const DeviceAssignment& assignment) { assignments_.push_back(assignment); }
  void AssignClaim(const ClaimAssignment& device) { claimed_.push_back(device); }
  void Remove(const std::string& ns, const std::string& pod);
  bool Holds(const std::string& device_id) const;
  bool Offers(const std::string& device_id) const;
  // The holder as "ns/pod", or "".
  std::string HolderOf(const std::string& device_id) const;

  const std::vector<OfferedDevice>& offer() const { return offer_; }
  int offers = 0;  // calls of Offer
  bool withdraws = true;
  bool down = false;
  bool mute = false;         // accepts offers, but the answer is lost
  Status trouble{};          // answer of Offer in that case
  bool forgetful = false;    // has just restarted: reports no assignments
  bool slow = false;         // has read offers, but not applied them
  std::string taken_late{};  // a device allocated after it left the offer
  // Called after an offer was applied: for races.
  std::function<void()> on_offer;

 private:
  std::vector<OfferedDevice> offer_;
  std::vector<DeviceAssignment> assignments_;
  std::vector<ClaimAssignment> claimed_;
};

}  // namespace nos::kubelet
