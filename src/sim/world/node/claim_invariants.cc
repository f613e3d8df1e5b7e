#include "sim/world/node/claim_invariants.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "sim/world/node/claim_keeper.h"
#include "sim/world/node/device_slices.h"

namespace nos::sim {
namespace {

using Problems = std::vector<std::string>;

const JsonArray& ListOf(const Json* list) {
  static const JsonArray kNone;
  return list != nullptr && list->is_array() ? list->get_array() : kNone;
}

bool IsAllocated(const Json& claim) {
  const Json* allocation = Find(claim, "status", "allocation");
  return allocation != nullptr && !allocation->is_null();
}

bool IsReservedFor(const Json& claim, const std::string& pod_uid) {
  return std::ranges::any_of(
      ListOf(Find(claim, "status", "reservedFor")),
      [&](const Json& consumer) { return FindString(consumer, "uid") == pod_uid; });
}

// The reason for which the pod may not use the claim; "" if it may.
std::string WhyNot(const cluster::Pod& pod, const std::string& name, const Result<Json>& claim) {
  if (!claim.ok()) return fmt::format("claim {}: {}", name, claim.status().ToString());
  if (!IsAllocated(*claim)) return fmt::format("claim {} is not allocated", name);
  if (IsReservedFor(*claim, pod.meta.uid)) return "";
  return fmt::format("claim {} is not reserved for it", name);
}

// Names of the devices that the driver has to prepare, sorted.
std::vector<std::string> DevicesOf(const Json& claim, const std::string& node) {
  std::vector<std::string> names;
  for (const Json& result : ListOf(Find(claim, "status", "allocation", "devices", "results"))) {
    const Json* admin = Find(result, "adminAccess");
    const bool monitors = admin != nullptr && *admin == true;
    const bool here = FindString(result, "driver") == kGpuDriver;
    if (!here || monitors) continue;
    const bool of_node = FindString(result, "pool") == node;
    const std::string device(FindString(result, "device"));
    names.push_back(of_node ? device : fmt::format("{}/{}", FindString(result, "pool"), device));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

Problems CheckBoundClaims(const cluster::Pod& pod, kube::Client& client) {
  Problems problems;
  const auto add = [&](const std::string& why) {
    problems.push_back(fmt::format("{} was bound to {}: {}", pod.Key(), pod.node_name, why));
  };
  for (const cluster::PodClaim& reference : pod.claims) {
    if (reference.unneeded) continue;
    if (reference.claim.empty()) {
      add(fmt::format("no claim was made from {}", reference.template_name));
      continue;
    }
    const auto claim = client.Get(kResourceClaims, pod.meta.ns, reference.claim);
    const std::string why = WhyNot(pod, reference.claim, claim);
    if (!why.empty()) {
      add(why);
      continue;
    }
    for (const Json& result : ListOf(Find(*claim, "status", "allocation", "devices", "results"))) {
      if (FindString(result, "pool") == pod.node_name) continue;
      add(fmt::format("claim {} has a device of {}", reference.claim, FindString(result, "pool")));
    }
  }
  return problems;
}

Problems CheckRunningClaims(const Machine& machine, kube::Client& client) {
  Problems problems;
  if (machine.driver() == nullptr || machine.kubelet().down()) return problems;
  const std::string& node = machine.kubelet().name();
  for (const auto& [uid, running] : machine.kubelet().pods()) {
    const bool runs = running.stage == RunningPod::Stage::kRunning && running.pod != nullptr;
    if (!runs || !running.prepared) continue;  // not prepared: it has no claims, or has just ended
    // A pod that was deleted by force has lost its claims.
    const auto object = client.Get(kube::kPods, running.pod->meta.ns, running.pod->meta.name);
    if (!object.ok() || FindString(*object, "metadata", "uid") != uid) continue;
    for (const cluster::PodClaim& reference : running.pod->claims) {
      if (reference.claim.empty()) continue;
      const auto claim = client.Get(kResourceClaims, running.pod->meta.ns, reference.claim);
      const std::string why = WhyNot(*running.pod, reference.claim, claim);
      if (!why.empty()) {
        problems.push_back(fmt::format("{}: {} runs: {}", node, running.pod->Key(), why));
        continue;
      }
      const auto given = DevicesOf(*claim, node);
      const auto has =
          machine.driver()->PreparedFor(std::string(FindString(*claim, "metadata", "uid")));
      if (given == has) continue;
      problems.push_back(fmt::format("{}: {} runs on {}, and claim {} was given {}", node,
                                     running.pod->Key(), Join(has, ","), reference.claim,
                                     Join(given, ",")));
    }
  }
  return problems;
}

Problems CheckUsers(const std::vector<Json>& claims,
                    const std::vector<std::shared_ptr<const cluster::Pod>>& pods) {
  Problems problems;
  for (const Json& claim : claims) {
    const std::string key = kube::KeyOf(FindString(claim, "metadata", "namespace"),
                                        FindString(claim, "metadata", "name"));
    const JsonArray& users = ListOf(Find(claim, "status", "reservedFor"));
    if (IsAllocated(claim) && users.empty()) {
      problems.push_back(fmt::format("claim {} keeps devices without a user", key));
    }
    for (const Json& user : users) {
      const bool there = std::ranges::any_of(pods, [&](const auto& pod) {
        return pod->meta.uid == FindString(user, "uid") && !pod->Finished();
      });
      if (there) continue;
      problems.push_back(fmt::format("claim {} is reserved for {}, which has ended", key,
                                     FindString(user, "name")));
    }
  }
  return problems;
}

}  // namespace nos::sim
