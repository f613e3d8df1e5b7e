#include "scheduling/plugins/node_resources_fit/scored_resources.h"

namespace nos::scheduling {
namespace {

// Source: k8s.io/kubernetes pkg/apis/core/v1/helper.
bool IsNative(std::string_view name) {
  return name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != name.npos;
}

}  // namespace

bool IsExtendedResource(std::string_view name) {
  return !IsNative(name) && !name.starts_with("requests.");
}

bool IsScalarResource(std::string_view name) {
  return IsExtendedResource(name) || name.starts_with("hugepages-") ||
         name.starts_with("attachable-volumes-") || name.find("kubernetes.io/") != name.npos;
}

ScoredResources::ScoredResources(const std::vector<WeightedResource>& resources, Requests requests)
    : requests_(requests) {
  for (const auto& [name, weight] : resources) {
    const cluster::ResourceId id = cluster::InternResource(name);
    const bool scalar = IsScalarResource(name);
    // Other resources, such as "pods", are not scored.
    if (scalar || id == cluster::kCpu || id == cluster::kMemory ||
        id == cluster::kEphemeralStorage) {
      resources_.push_back({id, weight, scalar});
    }
  }
}

std::vector<int64_t> ScoredResources::AskedBy(const cluster::Pod& pod) const {
  const cluster::ResourceVector requests = cluster::RequestsOf(pod);
  const bool assume = requests_ == Requests::kAssumed;
  const cluster::ScoredRequests assumed =
      assume ? cluster::ScoredRequestsOf(pod) : cluster::ScoredRequests{};
  std::vector<int64_t> asked;
  asked.reserve(resources_.size());
  for (const Resource& resource : resources_) {
    asked.push_back(assume && resource.id == cluster::kCpu      ? assumed.cpu
                    : assume && resource.id == cluster::kMemory ? assumed.memory
                                                                : requests.Get(resource.id));
  }
  return asked;
}

}  // namespace nos::scheduling
