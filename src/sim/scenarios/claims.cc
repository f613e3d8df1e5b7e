#include "sim/scenarios/claims.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "sim/world/node/claim_keeper.h"
#include "sim/world/node/device_slices.h"

namespace nos::sim {
namespace {

constexpr char kNamespace[] = "default";

const JsonArray& ListOf(const Json* list) {
  static const JsonArray kNone;
  return list != nullptr && list->is_array() ? list->get_array() : kNone;
}

kube::Resource ResourceOf(const std::string& kind) {
  if (kind == "ResourceClaim") return kResourceClaims;
  if (kind == "ResourceClaimTemplate") return kClaimTemplates;
  if (kind == "DeviceClass") return {"resource.k8s.io", "v1", "deviceclasses", kind, false};
  return {"resource.k8s.io", "v1", "devicetaintrules", kind, false};
}

// The parts of "NS/NAME", or of "NAME" in namespace "default".
struct Named {
  std::string ns, name;
};
Named NamedIn(const kube::Resource& resource, const std::string& text) {
  const size_t slash = text.find('/');
  if (!resource.namespaced) return {"", text};
  if (slash == std::string::npos) return {kNamespace, text};
  return {text.substr(0, slash), text.substr(slash + 1)};
}

Status Put(kube::Client& client, const OnClaims& operation) {
  const kube::Resource resource = ResourceOf(operation.kind);
  const Named named = NamedIn(resource, operation.name);
  JsonObject metadata = {{"name", named.name}};
  if (resource.namespaced) metadata["namespace"] = named.ns;
  const Json object = JsonObject{{"apiVersion", "resource.k8s.io/v1"},
                                 {"kind", operation.kind},
                                 {"metadata", std::move(metadata)},
                                 {"spec", operation.spec}};
  return client.Create(resource, named.ns, object).status();
}

// Writes finalizer and allocation as a scheduler does, but names no user.
Status Allocate(kube::Client& client, const OnClaims& operation) {
  NOS_ASSIGN(Json claim, client.Get(kResourceClaims, kNamespace, operation.name));
  MakeObject(claim, "metadata")["finalizers"] = JsonArray{kClaimFinalizer};
  NOS_ASSIGN(claim, client.Update(kResourceClaims, kNamespace, claim));
  const JsonArray& requests = ListOf(Find(claim, "spec", "devices", "requests"));
  JsonArray results;
  std::string node;
  for (size_t i = 0; i < operation.devices.size() && !requests.empty(); ++i) {
    const std::string& device = operation.devices[i];
    const size_t slash = device.find('/');
    node = device.substr(0, slash);
    const Json& request = requests[std::min(i, requests.size() - 1)];
    results.push_back(JsonObject{{"request", FindString(request, "name")},
                                 {"driver", kGpuDriver},
                                 {"pool", node},
                                 {"device", device.substr(slash + 1)}});
  }
  const JsonObject field = {
      {"key", "metadata.name"}, {"operator", "In"}, {"values", JsonArray{Json(node)}}};
  const JsonObject term = {{"matchFields", JsonArray{field}}};
  MakeObject(claim, "status")["allocation"] =
      JsonObject{{"devices", JsonObject{{"results", std::move(results)}}},
                 {"nodeSelector", JsonObject{{"nodeSelectorTerms", JsonArray{term}}}}};
  return client.Update(kResourceClaims, kNamespace, claim, "status").status();
}

struct SeenClaim {
  std::string name;
  bool allocated = false;
  std::vector<std::string> devices;  // "node/device", sorted
};

SeenClaim Read(const Json& claim) {
  SeenClaim seen{std::string(FindString(claim, "metadata", "name")), false, {}};
  const Json* allocation = Find(claim, "status", "allocation");
  seen.allocated = allocation != nullptr && !allocation->is_null();
  for (const Json& result : ListOf(Find(claim, "status", "allocation", "devices", "results"))) {
    seen.devices.push_back(
        fmt::format("{}/{}", FindString(result, "pool"), FindString(result, "device")));
  }
  std::ranges::sort(seen.devices);
  return seen;
}

// The claim of this name, or else those that were made for the pod of this name.
std::vector<SeenClaim> Claims(World& world, kube::Client& client, const std::string& name) {
  std::vector<SeenClaim> seen;
  if (const auto claim = client.Get(kResourceClaims, kNamespace, name); claim.ok()) {
    seen.push_back(Read(*claim));
    return seen;
  }
  const auto pod = world.FindPod(name);
  const auto list = client.List(kResourceClaims, "", {});
  if (pod == nullptr || !list.ok()) return seen;
  for (const Json& claim : list->items) {
    for (const Json& owner : ListOf(Find(claim, "metadata", "ownerReferences"))) {
      if (FindString(owner, "uid") == pod->meta.uid) seen.push_back(Read(claim));
    }
  }
  return seen;
}

bool IsLike(std::string_view device, std::string_view pattern) {
  if (!pattern.ends_with('*')) return device == pattern;
  return device.starts_with(pattern.substr(0, pattern.size() - 1));
}

// True if devices and patterns can be paired one to one. Exact patterns choose first.
bool AreLike(std::vector<std::string> devices, std::vector<std::string> patterns) {
  if (devices.size() != patterns.size()) return false;
  std::ranges::stable_sort(patterns, std::ranges::greater(), &std::string::size);
  for (const std::string& pattern : patterns) {
    const auto match = std::ranges::find_if(
        devices, [&](const std::string& device) { return IsLike(device, pattern); });
    if (match == devices.end()) return false;
    devices.erase(match);
  }
  return true;
}

bool Holds(const std::vector<SeenClaim>& claims, const ExpectClaim& expect) {
  if (expect.outcome == "gone") return claims.empty();
  if (claims.empty()) return false;
  if (expect.outcome == "pending") {
    return std::ranges::none_of(claims, &SeenClaim::allocated);
  }
  if (!std::ranges::all_of(claims, &SeenClaim::allocated)) return false;
  std::vector<std::string> devices;
  for (const SeenClaim& claim : claims) {
    devices.insert(devices.end(), claim.devices.begin(), claim.devices.end());
  }
  const bool there = std::ranges::all_of(devices, [&](const std::string& device) {
    return expect.node.empty() || device.starts_with(expect.node + "/");
  });
  if (expect.outcome == "allocated") return there;
  return std::ranges::any_of(expect.alternatives,
                             [&](const auto& patterns) { return AreLike(devices, patterns); });
}

}  // namespace

Status Perform(kube::Client& client, const OnClaims& operation) {
  if (operation.verb == OnClaims::Verb::kPut) return Put(client, operation);
  if (operation.verb == OnClaims::Verb::kAllocate) return Allocate(client, operation);
  const kube::Resource resource = ResourceOf(operation.kind);
  const Named named = NamedIn(resource, operation.name);
  return client.Delete(resource, named.ns, named.name);
}

std::string WhyNot(World& world, kube::Client& client, const ExpectClaim& expect) {
  const std::vector<SeenClaim> claims = Claims(world, client, expect.claim);
  if (Holds(claims, expect)) return "";
  if (claims.empty()) return "there is no such claim";
  std::vector<std::string> parts;
  for (const SeenClaim& claim : claims) {
    parts.push_back(
        fmt::format("{} {}", claim.name, claim.allocated ? Join(claim.devices, ",") : "pending"));
  }
  return Join(parts, "; ");
}

}  // namespace nos::sim
