#include "kubelet/testing/fake_kubelet.h"

#include <algorithm>

namespace nos::kubelet {

Status FakeKubelet::Offer(const std::vector<OfferedDevice>& devices) {
  if (down) return {Code::kUnavailable, "the kubelet does not answer"};
  ++offers;
  offer_ = devices;
  if (on_offer) on_offer();
  if (mute) return {Code::kUnavailable, "no answer"};
  return trouble;
}

Result<std::vector<DeviceAssignment>> FakeKubelet::List() {
  if (down) return Status(Code::kUnavailable, "the kubelet does not answer");
  if (forgetful) return std::vector<DeviceAssignment>();
  std::vector<DeviceAssignment> listed = assignments_;
  std::erase_if(listed, [](const auto& assignment) { return assignment.container == "init"; });
  return listed;
}

Result<std::vector<ClaimAssignment>> FakeKubelet::ListClaims() {
  if (down) return Status(Code::kUnavailable, "the kubelet does not answer");
  return forgetful ? std::vector<ClaimAssignment>() : claimed_;
}

Result<std::vector<OfferedDevice>> FakeKubelet::Allocatable() {
  if (down) return Status(Code::kUnavailable, "the kubelet does not answer");
  std::vector<OfferedDevice> healthy = slow ? std::vector<OfferedDevice>() : offer_;
  std::erase_if(healthy, [](const OfferedDevice& device) { return !device.healthy; });
  return healthy;
}

Status FakeKubelet::Admit(const std::string& ns, const std::string& pod,
                          const std::string& resource, const std::string& container) {
  for (const OfferedDevice& device : offer_) {
    if (device.resource != resource || !device.healthy || Holds(device.device_id)) continue;
    assignments_.push_back({ns, pod, container, resource, device.device_id});
    return Status::Ok();
  }
  return {Code::kExhausted, "UnexpectedAdmissionError: no free " + resource};
}

void FakeKubelet::Remove(const std::string& ns, const std::string& pod) {
  std::erase_if(assignments_, [&](const DeviceAssignment& assignment) {
    return assignment.ns == ns && assignment.pod == pod;
  });
  std::erase_if(claimed_, [&](const ClaimAssignment& device) {
    return device.ns == ns && device.pod == pod;
  });
}

std::string FakeKubelet::HolderOf(const std::string& device_id) const {
  for (const DeviceAssignment& assignment : assignments_) {
    if (assignment.device_id == device_id) return assignment.ns + "/" + assignment.pod;
  }
  return "";
}

bool FakeKubelet::Holds(const std::string& device_id) const {
  return std::any_of(assignments_.begin(), assignments_.end(),
                     [&](const auto& assignment) { return assignment.device_id == device_id; });
}

bool FakeKubelet::Offers(const std::string& device_id) const {
  return std::any_of(offer_.begin(), offer_.end(),
                     [&](const auto& device) { return device.device_id == device_id; });
}

}  // namespace nos::kubelet
