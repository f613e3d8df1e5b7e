#include <algorithm>

#include "cluster/objects.h"

namespace nos::cluster {
namespace {

void AddTo(ResourceList& total, const ResourceList& more) {
  for (const auto& [name, quantity] : more) total[name] = total[name] + quantity;
}

void RaiseTo(ResourceList& total, const ResourceList& least) {
  for (const auto& [name, quantity] : least) total[name] = std::max(total[name], quantity);
}

// The API server sets missing requests from limits before it stores a pod; a pod from a file may
// lack this default.
ResourceList ContainerRequests(const Container& container, const ResourceList& when_missing) {
  ResourceList requests = container.resizing.value_or(container.requests);
  requests.insert(container.limits.begin(), container.limits.end());
  requests.insert(when_missing.begin(), when_missing.end());
  return requests;
}

bool IsPodLevel(std::string_view name) {
  return name == "cpu" || name == "memory" || name.starts_with("hugepages-");
}

// Pod-level requests replace the sum over containers. A pod-level limit applies if neither the pod
// nor any container requests the resource.
void ApplyPodLevel(const Pod& pod, ResourceList& total) {
  for (const auto& [name, quantity] : pod.limits) {
    if (IsPodLevel(name)) total.try_emplace(name, quantity);
  }
  for (const auto& [name, quantity] : pod.requests) {
    if (IsPodLevel(name)) total[name] = quantity;
  }
}

}  // namespace

ResourceList PodRequests(const Pod& pod, const ResourceList& when_missing) {
  ResourceList total;
  for (const Container& container : pod.containers) {
    AddTo(total, ContainerRequests(container, when_missing));
  }
  ResourceList sidecars;    // sidecars started so far
  ResourceList start_peak;  // maximum requests at any moment before the containers start
  for (const Container& container : pod.init_containers) {
    ResourceList needed = ContainerRequests(container, when_missing);
    if (container.restart_always) {
      AddTo(total, needed);
      AddTo(sidecars, needed);
      needed = sidecars;
    } else {
      AddTo(needed, sidecars);
    }
    RaiseTo(start_peak, needed);
  }
  RaiseTo(total, start_peak);
  ApplyPodLevel(pod, total);
  AddTo(total, pod.overhead);
  return total;
}

}  // namespace nos::cluster
