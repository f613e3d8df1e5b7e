// A kubelet's device side for tests: holds the offer and hands devices to pods.
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
  bool Condemn(const std::string& device_id) override { return device_id != taken_late; }
  Result<std::vector<DeviceAssignment>> List() override;
  Result<std::vector<OfferedDevice>> Allocatable() override;

  // Gives the pod's container a free offered device. One called "init" is an init container: of its
  // devices kubelets do not tell. Error: kExhausted.
  Status Admit(const std::string& ns, const std::string& pod, const std::string& resource,
               const std::string& container = "main");
  // Whatever it offers.
  void Assign(const DeviceAssignment& assignment) { assignments_.push_back(assignment); }
  void Remove(const std::string& ns, const std::string& pod);
  bool Holds(const std::string& device_id) const;
  bool Offers(const std::string& device_id) const;
  // "ns/pod", or "".
  std::string HolderOf(const std::string& device_id) const;

  const std::vector<OfferedDevice>& offer() const { return offer_; }
  int offers = 0;  // calls of Offer
  bool withdraws = true;
  bool down = false;
  bool mute = false;         // takes offers, but its answer is lost
  Status trouble{};          // what Offer answers then
  bool forgetful = false;    // has just started: says that nothing is held
  bool slow = false;         // has read offers, but not taken them over
  std::string taken_late{};  // a device: since it left the offer
  // Called after an offer has been taken over: for races.
  std::function<void()> on_offer;

 private:
  std::vector<OfferedDevice> offer_;
  std::vector<DeviceAssignment> assignments_;
};

}  // namespace nos::kubelet
