#include "kubelet/pod_resources_client.h"

#include <podresources.pb.h>

#include <utility>

#include "kubelet/grpc_call.h"

namespace nos::kubelet {
namespace {

constexpr const char* kList = "/v1.PodResourcesLister/List";
constexpr const char* kAllocatable = "/v1.PodResourcesLister/GetAllocatableResources";

// Calls a method whose request is empty: such a message serializes to zero bytes.
template <typename Answer>
Result<Answer> Ask(const char* method, const PodResourcesOptions& options) {
  NOS_ASSIGN(const std::string bytes,
             UnaryCall(options.socket, method, "",
                       {.timeout = options.timeout, .max_answer = options.max_bytes}));
  Answer answer;
  if (answer.ParseFromString(bytes)) return answer;
  return Status(Code::kUnavailable,
                std::string("the kubelet's answer to ") + method + " is not readable");
}

}  // namespace

// With sharing enabled, NVIDIA's plugin offers each device several times: "MIG-...::0",
// "MIG-...::1". The id of an MPS share also contains its size.
// Source: NVIDIA/k8s-device-plugin, internal/rm/devices.go (AnnotatedID).
std::string PodResourcesClient::DeviceOf(const std::string& id) const {
  const size_t first = id.find("::");
  const bool share = first != std::string::npos && id.rfind("::") > first;
  return share && options_.mps_shares ? id : id.substr(0, first);
}

Result<std::vector<DeviceAssignment>> PodResourcesClient::List() {
  NOS_ASSIGN(const auto answer, Ask<v1::ListPodResourcesResponse>(kList, options_));
  std::vector<DeviceAssignment> assignments;
  for (const v1::PodResources& pod : answer.pod_resources()) {
    for (const v1::ContainerResources& container : pod.containers()) {
      for (const v1::ContainerDevices& devices : container.devices()) {
        if (!devices.resource_name().starts_with(options_.resource_prefix)) continue;
        for (const std::string& id : devices.device_ids()) {
          assignments.push_back({pod.namespace_(), pod.name(), container.name(),
                                 devices.resource_name(), DeviceOf(id)});
        }
      }
    }
  }
  return assignments;
}

Result<std::vector<ClaimAssignment>> PodResourcesClient::ListClaims() {
  NOS_ASSIGN(const auto answer, Ask<v1::ListPodResourcesResponse>(kList, options_));
  std::vector<ClaimAssignment> claimed;
  for (const v1::PodResources& pod : answer.pod_resources()) {
    for (const v1::ContainerResources& container : pod.containers()) {
      for (const v1::DynamicResource& claim : container.dynamic_resources()) {
        for (const v1::ClaimResource& device : claim.claim_resources()) {
          claimed.push_back({pod.namespace_(), pod.name(), container.name(), device.driver_name(),
                             device.device_name()});
        }
      }
    }
  }
  return claimed;
}

Result<std::vector<OfferedDevice>> PodResourcesClient::Allocatable() {
  NOS_ASSIGN(const auto answer, Ask<v1::AllocatableResourcesResponse>(kAllocatable, options_));
  std::vector<OfferedDevice> offered;
  for (const v1::ContainerDevices& devices : answer.devices()) {
    if (!devices.resource_name().starts_with(options_.resource_prefix)) continue;
    for (const std::string& id : devices.device_ids()) {
      offered.push_back({devices.resource_name(), DeviceOf(id)});
    }
  }
  return SortedOffer(std::move(offered));
}

}  // namespace nos::kubelet
