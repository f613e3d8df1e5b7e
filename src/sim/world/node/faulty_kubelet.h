// The agent's two unix sockets to the kubelet, with injected faults. One thread.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"
#include "sim/world/events/faults.h"

namespace nos::sim {

class FaultyKubelet final : public kubelet::DevicePlugin, public kubelet::PodResources {
 public:
  // All must outlive the object.
  FaultyKubelet(kubelet::DevicePlugin& plugin, kubelet::PodResources& resources, Faults& faults,
                Life& life, const Clock& clock)
      : plugin_(plugin), resources_(resources), faults_(faults), life_(life), clock_(clock) {}

  Status Offer(const std::vector<kubelet::OfferedDevice>& devices) override {
    NOS_RETURN_IF_ERROR(Reach(faults_.rates().offer_failed));
    NOS_RETURN_IF_ERROR(plugin_.Offer(devices));
    return faults_.Strike(faults_.rates().offer_unanswered) ? Silence() : Status::Ok();
  }
  Result<std::vector<kubelet::DeviceAssignment>> List() override {
    NOS_RETURN_IF_ERROR(Reach(faults_.rates().offer_failed));
    const Time now = clock_.Now();
    if (faults_.Strike(faults_.rates().kubelet_forgets)) knows_at_ = now + std::chrono::seconds(1);
    if (now < knows_at_) return std::vector<kubelet::DeviceAssignment>();
    return resources_.List();
  }
  Result<std::vector<kubelet::ClaimAssignment>> ListClaims() override {
    NOS_RETURN_IF_ERROR(Reach(faults_.rates().offer_failed));
    return resources_.ListClaims();
  }

  void Avoid(const std::map<std::string, std::string>& users) override { plugin_.Avoid(users); }
  Result<std::vector<kubelet::OfferedDevice>> Allocatable() override {
    NOS_RETURN_IF_ERROR(Reach(faults_.rates().offer_failed));
    return resources_.Allocatable();
  }

 private:
  Status Reach(double failure) {
    if (life_.alive && faults_.Strike(faults_.rates().crash)) life_.alive = false;
    return !life_.alive || faults_.Strike(failure) ? Silence() : Status::Ok();
  }
  static Status Silence() { return {Code::kUnavailable, "the kubelet does not answer (injected)"}; }

  kubelet::DevicePlugin& plugin_;
  kubelet::PodResources& resources_;
  Faults& faults_;
  Life& life_;
  const Clock& clock_;
  Time knows_at_{};
};

}  // namespace nos::sim
