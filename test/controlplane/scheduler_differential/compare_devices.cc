#include "scheduler_differential/compare_devices.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cluster/selectors.h"
#include "dra/device_index.h"
#include "dra/objects.h"
#include "scheduling/reasons.h"

namespace nos::differential {
namespace {

namespace codes = scheduling::codes;

// kube-scheduler's texts.
constexpr const char* kCannotAllocate = "cannot allocate all claims";
constexpr const char* kNotAvailable = "resourceclaim not available on the node";
constexpr const char* kInvalidPools = "invalid resource pools were encountered";

bool Has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The pod's claims without an allocation, and those with one.
struct Claims {
  std::vector<const dra::ResourceClaim*> open, allocated;
};

Claims ClaimsOf(const ClaimQuestion& question) {
  Claims claims;
  for (const std::string& key : dra::SpecClaimKeysOf(question.pod)) {
    const dra::ResourceClaim* claim = question.picture.context.device_claims.Find(key);
    if (claim != nullptr) (claim->allocation ? claims.allocated : claims.open).push_back(claim);
  }
  return claims;
}

// Calls visit(const ExactRequest&) for each request of the open claims, and each alternative.
template <typename Visit>
void ForEachRequest(const Claims& claims, const Visit& visit) {
  for (const dra::ResourceClaim* claim : claims.open) {
    for (const dra::DeviceRequest& request : claim->requests) {
      if (request.exactly) visit(*request.exactly);
      for (const dra::ExactRequest& alternative : request.first_available) visit(alternative);
    }
  }
}

bool Selects(const dra::NodeSelection& nodes, const cluster::Node& node) {
  return nodes.all_nodes || nodes.node_name == node.meta.name ||
         (nodes.selector && cluster::MatchesAny(*nodes.selector, node));
}

std::vector<const dra::ResourceSlice*> SlicesOn(const ClaimQuestion& question,
                                                const std::string& name) {
  std::vector<const dra::ResourceSlice*> slices;
  const auto node = std::ranges::find_if(question.picture.nodes,
                                         [&](const auto& one) { return one->meta.name == name; });
  if (node == question.picture.nodes.end()) return slices;
  for (const auto& [key, slice] : question.picture.context.device_slices.rows()) {
    const bool here = Selects(slice->nodes, **node) ||
                      std::ranges::any_of(slice->devices, [&](const dra::Device& device) {
                        return device.nodes != nullptr && Selects(*device.nodes, **node);
                      });
    if (here) slices.push_back(slice.get());
  }
  return slices;
}

// True if the node sees fewer slices of a pool than the pool has.
bool SeesIncompletePool(const std::vector<const dra::ResourceSlice*>& slices) {
  struct Seen {
    int64_t generation = -1, count = 0, expected = 0;
  };
  std::map<std::pair<std::string, std::string>, Seen> pools;
  for (const dra::ResourceSlice* slice : slices) {
    Seen& seen = pools[{slice->driver.str(), slice->pool.str()}];
    if (slice->generation > seen.generation) seen = {slice->generation, 0, slice->slice_count};
    if (slice->generation == seen.generation) ++seen.count;
  }
  return std::ranges::any_of(
      pools, [](const auto& pool) { return pool.second.count != pool.second.expected; });
}

// True if two slices of the pool that `message` names list a device of the same name.
bool NamesInvalidPool(const ClaimQuestion& question, const std::string& message) {
  std::map<std::string, std::set<std::string>> devices;  // by driver, pool and generation
  for (const auto& [key, slice] : question.picture.context.device_slices.rows()) {
    const std::string pool = slice->pool.str();
    if (!Has(message, fmt::format("pool {} is invalid: ", pool))) continue;
    auto& names = devices[fmt::format("{}/{}/{}", slice->driver.str(), pool, slice->generation)];
    for (const dra::Device& device : slice->devices) {
      if (!names.insert(device.name.str()).second) return true;
    }
  }
  return false;
}

// Before 1.37 slices with counters count on every node: an incomplete pool of one node keeps
// requests for all devices from all nodes. True if `message` names such a pool.
bool NamesPoolWithCounters(const ClaimQuestion& question, const std::string& message) {
  if (question.devices.minor < 35 || question.devices.minor > 36) return false;
  return std::ranges::any_of(question.picture.context.device_slices.rows(), [&](const auto& row) {
    const dra::ResourceSlice& slice = *row.second;
    return !slice.shared_counters.empty() &&
           Has(message, fmt::format("resource pool {}/{} is currently", slice.driver.str(),
                                    slice.pool.str()));
  });
}

bool AnyConsumesCounters(const std::vector<const dra::ResourceSlice*>& slices) {
  return std::ranges::any_of(slices, [](const dra::ResourceSlice* slice) {
    return std::ranges::any_of(slice->devices,
                               [](const dra::Device& device) { return !device.consumes->empty(); });
  });
}

// Before 1.36 an alternative after the first gets some of the devices if it wants all: as many as
// the first alternative asks for, or those that the alternative before it selects.
bool LaterWantsAll(const ClaimQuestion& question, const Claims& claims) {
  if (question.devices.minor > 35) return false;
  return std::ranges::any_of(claims.open, [](const dra::ResourceClaim* claim) {
    return std::ranges::any_of(claim->requests, [](const dra::DeviceRequest& request) {
      const auto& list = request.first_available;
      return !list.empty() && std::any_of(list.begin() + 1, list.end(),
                                          [](const auto& one) { return one.mode == "All"; });
    });
  });
}

// Before 1.37 distinct values are compared with the last device of each request only.
bool CountsBesideDistinct(const ClaimQuestion& question, const Claims& claims) {
  if (question.devices.minor > 36) return false;
  return std::ranges::any_of(claims.open, [](const dra::ResourceClaim* claim) {
    bool several = false;
    ForEachRequest({{claim}, {}}, [&](const dra::ExactRequest& request) {
      several = several || request.count > 1 || request.mode == "All";
    });
    return several && std::ranges::any_of(claim->constraints, [](const auto& constraint) {
             return constraint.distinct_attribute.has_value();
           });
  });
}

// The difference that a fault of kube-scheduler's search explains, whichever scheduler finds the
// node feasible.
std::string WhyEither(const ClaimQuestion& question) {
  const Claims claims = ClaimsOf(question);
  if (LaterWantsAll(question, claims)) return "all devices for an alternative after the first";
  return CountsBesideDistinct(question, claims) ? "distinct values of several devices" : "";
}

// Why only kube-scheduler finds the node feasible; "": it should not.
std::string WhyOnlyKube(const ClaimQuestion& question, const std::string& node) {
  if (question.devices.minor <= 34 && SeesIncompletePool(SlicesOn(question, node))) {
    return "devices of an incomplete pool";
  }
  return WhyEither(question);
}

// Before 1.36.3 a device that is refused for a taint or constraint keeps its counters during the
// search.
bool KeepsCounters(const ClaimQuestion& question, const Claims& claims,
                   const std::vector<const dra::ResourceSlice*>& slices) {
  if (question.devices.minor > 35 || !AnyConsumesCounters(slices)) return false;
  const auto& rules = question.picture.context.device_taint_rules.rows();
  const bool tainted = std::ranges::any_of(slices, [&](const dra::ResourceSlice* slice) {
    return std::ranges::any_of(slice->devices, [&](const dra::Device& device) {
      return !device.consumes->empty() &&
             (!device.taints.empty() || std::ranges::any_of(rules, [&](const auto& rule) {
               return dra::Selects(*rule.second, slice->driver, slice->pool, device.name);
             }));
    });
  });
  return tainted || std::ranges::any_of(claims.open, [](const dra::ResourceClaim* claim) {
           return !claim->constraints.empty();
         });
}

// Why only nos finds the node feasible; "": it should not.
std::string WhyOnlyNos(const ClaimQuestion& question, const std::string& node) {
  const Claims claims = ClaimsOf(question);
  const auto slices = SlicesOn(question, node);
  bool admin = false;
  ForEachRequest(claims, [&](const dra::ExactRequest& request) {
    admin = admin || request.admin_access.value_or(false);
  });
  if (admin && AnyConsumesCounters(slices)) return "admin access to devices that consume counters";
  if (KeepsCounters(question, claims, slices)) return "counters of a refused device";
  return WhyEither(question);
}

// Only this node's devices are unusable; all other faults end kube-scheduler's attempt.
bool IsInvalidPool(const scheduling::Verdict& verdict) {
  return verdict.code == codes::kDevicesRefused && verdict.message.starts_with("pool ");
}

// A constraint forbids one of all devices that a request asks for. nos refuses the node;
// kube-scheduler does too, or gives up on the pod, by the device at which it looks first.
bool IsConstraintOnAll(const scheduling::Verdict& verdict) {
  return verdict.code == codes::kDevicesRefused &&
         Has(verdict.message, " asks for all devices, but a constraint excludes ");
}

// kube-scheduler's text for a verdict of nos.
std::string KubeText(const scheduling::Verdict& verdict) {
  const std::string& code = verdict.code;
  if (IsInvalidPool(verdict)) return kInvalidPools;
  if (IsConstraintOnAll(verdict)) return kCannotAllocate;
  if (code == codes::kInsufficientDevices) return kCannotAllocate;
  if (code == codes::kDevicesElsewhere) return kNotAvailable;
  return verdict.message;
}

// "0/5 nodes are available", then the sorted reasons with their counts.
std::vector<std::string> ExpectedParts(const Opinion& nos) {
  std::map<std::string, int> counts;
  for (const auto& [name, node] : nos.nodes) {
    ++counts[KubeText(node.verdict)];
    for (const auto& reason : node.verdict.more) ++counts[reason.message];
  }
  std::vector<std::string> parts{fmt::format("0/{} nodes are available", nos.nodes.size())};
  for (const auto& [text, count] : counts) parts.push_back(fmt::format("{} {}", count, text));
  std::sort(parts.begin() + 1, parts.end());
  return parts;
}

bool IsHeldBack(const Opinion& nos) {
  const std::string& code = nos.refusal.code;
  return code == codes::kResourceClaimNotFound || code == codes::kResourceClaimDeleted ||
         code == codes::kResourceClaimOfAnother || !nos.gate.empty();
}

// True if nos refuses a node for a fault that ends kube-scheduler's attempt where it meets it.
bool IsFault(const scheduling::Verdict& verdict) {
  return verdict.code == codes::kDevicesRefused && !IsInvalidPool(verdict) &&
         !IsConstraintOnAll(verdict);
}

bool IsSameFault(std::string_view kube, std::string_view nos) {
  constexpr std::pair<const char*, const char*> kTexts[] = {
      {": CEL runtime error: ", " fails for device "},
      {" is currently being updated", " is being updated"},
      {" is currently invalid", " is invalid: "},
      {" exceeds the claim limit of ", " a claim has at most "}};
  return std::ranges::any_of(
      kTexts, [&](const auto& texts) { return Has(kube, texts.first) && Has(nos, texts.second); });
}

bool AnyNode(const Opinion& nos, const auto& holds) {
  return std::ranges::any_of(nos.nodes,
                             [&](const auto& item) { return holds(item.second.verdict); });
}

// kube-scheduler gives up on the pod because of a fault that it met on some node.
ClaimVerdict OnFault(const Outcome& kube, const Opinion& nos, const ClaimQuestion& question) {
  const bool here = nos.feasible > 0;  // to nos
  if (AnyNode(nos, [&](const scheduling::Verdict& verdict) {
        return IsFault(verdict) && IsSameFault(kube.message, verdict.message);
      })) {
    return {"", here ? "a fault on one node" : ""};
  }
  if (Has(kube.message, "a claim constraint would not be satisfied")) {
    return {"", here ? "all devices where a constraint forbids one" : ""};
  }
  if (question.devices.minor <= 34 && NamesInvalidPool(question, kube.message)) {
    return {"", "an invalid pool"};
  }
  if (NamesPoolWithCounters(question, kube.message)) {
    return {"", "an incomplete pool with counters on another node"};
  }
  // kube-scheduler looks for devices of the pod's other claims there first.
  const bool elsewhere = AnyNode(nos, [](const scheduling::Verdict& verdict) {
    return verdict.code == codes::kDevicesElsewhere;
  });
  if (elsewhere && !ClaimsOf(question).open.empty()) {
    return {"", "a fault where an allocated claim forbids the node"};
  }
  return {fmt::format("only kube-scheduler finds a fault: {}", kube.message), ""};
}

// The reasons with their counts. `merged`: kube-scheduler looks for devices first and nos at the
// allocated claims, so that their texts count as one.
std::map<std::string, int> Merged(const std::vector<std::string>& parts, bool merged) {
  std::map<std::string, int> counts;
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t space = parts[i].find(' ');
    std::string text = parts[i].substr(space == std::string::npos ? 0 : space + 1);
    if (merged && (text == kNotAvailable || text == kInvalidPools)) text = kCannotAllocate;
    counts[text] += std::atoi(parts[i].c_str());
  }
  return counts;
}

std::string OnReasons(const Outcome& kube, const Opinion& nos, const ClaimQuestion& question) {
  if (!nos.refusal.fits()) {
    const bool class_missing = Has(nos.refusal.message, "DeviceClass") &&
                               Has(kube.message, "device class") &&
                               Has(kube.message, "does not exist");
    return class_missing ? ""
                         : fmt::format("kube-scheduler says: {}\nnos says: {}", kube.message,
                                       nos.refusal.message);
  }
  const Claims claims = ClaimsOf(question);
  const bool both = !claims.open.empty() && !claims.allocated.empty();
  const std::vector<std::string> theirs = ReasonsOf(kube.message), ours = ExpectedParts(nos);
  if (theirs.front() == ours.front() && Merged(theirs, both) == Merged(ours, both)) return "";
  return fmt::format("kube-scheduler says: {}\nnos says: {}", kube.message,
                     nos.diagnosis.ToString());
}

// The nodes that are feasible to kube-scheduler.
std::set<std::string> FeasibleTo(const Outcome& kube) {
  std::set<std::string> nodes;
  if (!kube.reason.empty()) return nodes;
  nodes.insert(kube.node);
  for (const auto& [name, scores] : kube.log.scores) nodes.insert(name);
  return nodes;
}

}  // namespace

ClaimVerdict CompareOnClaims(const Outcome& kube, const Opinion& nos,
                             const ClaimQuestion& question) {
  if (!nos.contradiction.empty()) return {"nos contradicts itself: " + nos.contradiction, ""};
  if (kube.held || IsHeldBack(nos)) {
    const bool same = kube.held && IsHeldBack(nos) && nos.feasible == 0;
    return {same ? ""
                 : fmt::format("{} holds the pod back: {}",
                               kube.held ? "only kube-scheduler" : "only nos", nos.refusal.message),
            ""};
  }
  if (kube.reason == "SchedulerError") return OnFault(kube, nos, question);
  if (nos.refusal.fits() && AnyNode(nos, IsFault)) {
    // Before 1.36 a later alternative that wants all devices may not be looked at.
    std::string why = WhyEither(question);
    if (!why.empty()) return {"", std::move(why)};
    return {fmt::format("only nos finds a fault: {}", nos.diagnosis.ToString()), ""};
  }
  ClaimVerdict verdict;
  const std::set<std::string> theirs = FeasibleTo(kube);
  for (const auto& [name, node] : nos.nodes) {
    if (node.verdict.fits() == theirs.contains(name)) continue;
    const std::string why =
        node.verdict.fits() ? WhyOnlyNos(question, name) : WhyOnlyKube(question, name);
    if (why.empty()) {
      return {fmt::format("only {} finds {} feasible: {}{}",
                          node.verdict.fits() ? "nos" : "kube-scheduler", name,
                          node.verdict.message, kube.message),
              ""};
    }
    verdict.allowed = why;
  }
  if (!verdict.allowed.empty()) return verdict;
  verdict.disagreement = kube.reason.empty()
                             ? ScoreDisagreement(kube.log, nos, {"DynamicResources"})
                             : OnReasons(kube, nos, question);
  return verdict;
}

}  // namespace nos::differential
