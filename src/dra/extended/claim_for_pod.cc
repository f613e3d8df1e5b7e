#include "dra/extended_resources.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "cluster/resource_names.h"

namespace nos::dra {
namespace {

using cluster::Container;
using cluster::Pod;
using Mapping = ExtendedClaim::Mapping;

constexpr std::string_view kAnnotation = "resource.kubernetes.io/extended-resource-claim";
constexpr size_t kMaxName = 253;  // of an object

// The API server sets a missing request to the limit; manifests that it has not seen lack it.
int64_t AmountOf(const Container& container, std::string_view resource) {
  for (const cluster::ResourceList* list : {&container.requests, &container.limits}) {
    if (const auto asked = list->find(resource); asked != list->end()) return asked->second.Value();
  }
  return 0;
}

// Calls visit(resource) for each name of the form DOMAIN/NAME, some twice.
template <typename Visit>
void ForEachDomainResource(const Container& container, Visit visit) {
  for (const cluster::ResourceList* list : {&container.requests, &container.limits}) {
    for (const auto& [resource, amount] : *list) {
      if (resource.find('/') != std::string::npos) visit(resource);
    }
  }
}

// "container-I-request-J": the container among all containers, init containers first, and the
// resource among its requests in the order of their names.
std::string RequestName(size_t index, const Container& container, std::string_view resource) {
  std::set<std::string_view> names;
  for (const auto& [name, amount] : container.requests) names.insert(name);
  for (const auto& [name, amount] : container.limits) names.insert(name);
  return fmt::format("container-{}-request-{}", index,
                     std::distance(names.begin(), names.find(resource)));
}

// The requests for one resource of one class. Containers that run side by side have requests of
// their own; an init container uses those of the containers that start after it, and what is
// missing comes from one request that init containers share.
class RequestsFor {
 public:
  RequestsFor(const Pod& pod, std::string_view resource, const std::string& device_class)
      : resource_(resource), class_(device_class), inits_(pod.init_containers.size()) {
    for (const Container& container : pod.init_containers) all_.push_back(&container);
    for (const Container& container : pod.containers) all_.push_back(&container);
    own_.resize(all_.size());
  }

  void AppendTo(std::vector<DeviceRequest>& requests, std::vector<Mapping>& mappings) {
    for (size_t i = 0; i < all_.size(); ++i) {
      const int64_t amount = AmountOf(*all_[i], resource_);
      if (EndsBeforeOthers(i) || amount <= 0) continue;
      const DeviceRequest& request = own_[i].emplace(MakeRequest(i, amount));
      mappings.push_back({all_[i]->name, resource_, request.name});
    }
    std::vector<Mapping> of_inits;
    for (size_t i = 0; i < inits_; ++i) {
      if (EndsBeforeOthers(i)) Reuse(i, of_inits);
    }
    if (shared_) requests.push_back(*shared_);
    for (Mapping& mapping : of_inits) {
      if (shared_ && of_shared_.contains(mapping.request)) mapping.request = shared_->name;
    }
    for (const auto& request : own_) {
      if (request) requests.push_back(*request);
    }
    std::ranges::move(of_inits, std::back_inserter(mappings));
  }

 private:
  bool EndsBeforeOthers(size_t i) const { return i < inits_ && !all_[i]->restart_always; }

  DeviceRequest MakeRequest(size_t i, int64_t count) const {
    DeviceRequest request;
    request.name = RequestName(i, *all_[i], resource_);
    request.exactly.emplace();
    request.exactly->device_class = class_;
    request.exactly->mode = "ExactCount";
    request.exactly->count = count;
    return request;
  }

  void Reuse(size_t i, std::vector<Mapping>& mappings) {
    int64_t missing = AmountOf(*all_[i], resource_);
    for (size_t later = i; later < own_.size() && missing > 0; ++later) {
      const std::optional<DeviceRequest>& request = own_[later];
      if (!request) continue;
      mappings.push_back({all_[i]->name, resource_, request->name});
      missing -= CountOf(own_[later]);
    }
    if (missing <= 0) return;
    DeviceRequest request = MakeRequest(i, missing);
    mappings.push_back({all_[i]->name, resource_, request.name});
    of_shared_.insert(request.name);
    if (!shared_ || CountOf(shared_) < missing) shared_ = std::move(request);
  }

  static int64_t CountOf(const std::optional<DeviceRequest>& request) {
    return request && request->exactly ? request->exactly->count : 0;
  }

  std::string resource_;
  const std::string& class_;
  size_t inits_;
  std::vector<const Container*> all_;
  std::vector<std::optional<DeviceRequest>> own_;  // by container
  std::optional<DeviceRequest> shared_;
  std::set<std::string> of_shared_;  // names of requests that `shared_` replaces
};

template <typename Visit>
void ForEachContainer(const Pod& pod, Visit visit) {
  std::ranges::for_each(pod.init_containers, visit);
  std::ranges::for_each(pod.containers, visit);
}

}  // namespace

bool Offers(const cluster::NodeInfo& node, const std::string& resource) {
  const cluster::ResourceList& allocatable = node.node->allocatable;
  const auto offered = allocatable.find(resource);
  if (offered != allocatable.end() && offered->second.Value() > 0) return true;
  return cluster::IsManagedOn(node, cluster::InternAskedResource(resource));
}

bool AsksForExtendedResources(const Pod& pod) {
  bool asks = false;
  ForEachContainer(pod, [&](const Container& container) {
    ForEachDomainResource(container, [&](const std::string&) { asks = true; });
  });
  return asks;
}

std::string ExtendedClaimKey(const Pod& pod) {
  const std::string rest = "-extended-resources-" + pod.meta.uid;
  std::string name = pod.meta.name.substr(0, kMaxName - std::min(kMaxName, rest.size()));
  while (!name.empty() && (name.back() == '.' || name.back() == '-')) name.pop_back();
  return pod.meta.ns + "/" + name + rest;
}

bool IsExtendedClaim(const ResourceClaim& claim) {
  const auto found = claim.annotations.find(kAnnotation);
  return found != claim.annotations.end() && found->second == "true";
}

ExtendedResources::ExtendedResources(const cluster::Table<DeviceClass>& classes) {
  std::map<std::string_view, const DeviceClass*> named;
  for (const auto& [name, device_class] : classes.rows()) {
    if (device_class->extended_resource_name.empty()) continue;
    const auto [found, added] =
        named.try_emplace(device_class->extended_resource_name, device_class.get());
    if (!added && device_class->created > found->second->created) {
      found->second = device_class.get();
    }
  }
  for (const auto& [resource, device_class] : named) {
    classes_.insert_or_assign(std::string(resource), device_class->name);
  }
}

const std::string* ExtendedResources::ClassOf(std::string_view resource) const {
  const auto found = classes_.find(resource);
  return found == classes_.end() ? nullptr : &found->second;
}

std::vector<std::string> ExtendedResources::ServedFor(const Pod& pod) const {
  if (classes_.empty()) return {};
  std::set<std::string> served;
  ForEachContainer(pod, [&](const Container& container) {
    ForEachDomainResource(container, [&](const std::string& resource) {
      const bool asks = AmountOf(container, resource) > 0;
      if (asks && ClassOf(resource) != nullptr) served.insert(resource);
    });
  });
  return {served.begin(), served.end()};
}

ExtendedClaim ExtendedResources::ClaimFor(const Pod& pod, const cluster::NodeInfo& node) const {
  ExtendedClaim made;
  auto claim = std::make_shared<ResourceClaim>();
  for (const std::string& resource : ServedFor(pod)) {
    if (Offers(node, resource)) continue;
    RequestsFor(pod, resource, *ClassOf(resource)).AppendTo(claim->requests, made.mappings);
  }
  if (claim->requests.empty()) return {};
  std::ranges::sort(claim->requests, {}, &DeviceRequest::name);
  const std::string key = ExtendedClaimKey(pod);
  claim->ns = pod.meta.ns;
  claim->name = key.substr(key.find('/') + 1);
  claim->uid = "of pod " + pod.meta.uid;  // until the API server gives it one
  claim->annotations.emplace(kAnnotation, "true");
  claim->spec = Name(SpecText(*claim));
  made.claim = std::move(claim);
  return made;
}

Json WriteExtendedClaim(const ResourceClaim& claim, const Pod& pod) {
  JsonArray requests;
  for (const DeviceRequest& request : claim.requests) {
    if (!request.exactly) continue;
    requests.push_back(
        JsonObject{{"name", request.name},
                   {"exactly", JsonObject{{"deviceClassName", request.exactly->device_class},
                                          {"allocationMode", request.exactly->mode},
                                          {"count", request.exactly->count}}}});
  }
  const JsonObject owner{{"apiVersion", "v1"},
                         {"kind", "Pod"},
                         {"name", pod.meta.name},
                         {"uid", pod.meta.uid},
                         {"controller", true}};
  return JsonObject{
      {"apiVersion", "resource.k8s.io/v1"},
      {"kind", "ResourceClaim"},
      {"metadata", JsonObject{{"name", claim.name},
                              {"namespace", claim.ns},
                              {"annotations", JsonObject{{kAnnotation, "true"}}},
                              {"finalizers", JsonArray{std::string(kClaimFinalizer)}},
                              {"ownerReferences", JsonArray{owner}}}},
      {"spec", JsonObject{{"devices", JsonObject{{"requests", std::move(requests)}}}}}};
}

}  // namespace nos::dra
