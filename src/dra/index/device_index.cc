#include "dra/device_index.h"

#include <algorithm>
#include <set>
#include <utility>

#include "dra/context.h"

namespace nos::dra {
namespace {

// Some 0.4 ms: an expression may be made to cost more.
constexpr int64_t kPrefetchSteps = 2'000;

constexpr const char* kGroupsOfPods = "scheduling.k8s.io";

using cluster::NodeInfo;
using cluster::Pod;

// Pods that take devices and are on `node` and not on `other`.
template <typename TakesDevices>
std::vector<const Pod*> OnlyOn(const NodeInfo& node, const NodeInfo* other,
                               const TakesDevices& takes_devices) {
  std::set<std::string_view> uids;
  if (other != nullptr) {
    for (const auto& pod : other->pods) {
      if (takes_devices(*pod)) uids.insert(pod->meta.uid);
    }
  }
  std::vector<const Pod*> pods;
  for (const auto& pod : node.pods) {
    if (takes_devices(*pod) && !uids.contains(pod->meta.uid)) pods.push_back(pod.get());
  }
  return pods;
}

const std::string& NodeOf(const ResourceSlice& slice) { return slice.nodes.node_name; }

std::string GroupKeyOf(const Pod& pod) { return pod.meta.ns + "/" + pod.scheduling_group; }

}  // namespace

std::vector<std::string> ClaimKeysOf(const Pod& pod) {
  std::vector<std::string> keys = SpecClaimKeysOf(pod);
  if (pod.extended_claim.empty()) return keys;
  std::string key = pod.meta.ns + "/" + pod.extended_claim;
  if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
  return keys;
}

std::vector<std::string> SpecClaimKeysOf(const Pod& pod) {
  std::vector<std::string> keys;
  for (const cluster::PodClaim& claim : pod.claims) {
    if (claim.claim.empty()) continue;
    std::string key = pod.meta.ns + "/" + claim.claim;
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(std::move(key));
  }
  return keys;
}

bool IsReservedFor(const ResourceClaim& claim, const Pod& pod) {
  return IsReservedForGroupOf(claim, pod) ||
         std::ranges::any_of(claim.reserved_for,
                             [&](const auto& user) { return user.uid == pod.meta.uid; });
}

// Pods do not know the uid of their group.
bool IsReservedForGroupOf(const ResourceClaim& claim, const Pod& pod) {
  return !pod.scheduling_group.empty() &&
         std::ranges::any_of(claim.reserved_for, [&](const ClaimConsumer& user) {
           return user.api_group == kGroupsOfPods && user.resource == "podgroups" &&
                  user.name == pod.scheduling_group;
         });
}

// Source: k8s.io/dynamic-resource-allocation 0.37, resourceclaim.BindTo.
ClaimConsumer ConsumerFor(const ResourceClaim& claim, const Pod& pod,
                          const cluster::ClusterContext& context) {
  ClaimConsumer consumer{"", kPodConsumer, pod.meta.name, pod.meta.uid};
  if (pod.scheduling_group.empty()) return consumer;
  const cluster::SchedulingGroup* group =
      context.scheduling_groups.Find(pod.meta.ns + "/" + pod.scheduling_group);
  if (group == nullptr) return consumer;
  for (const cluster::PodClaim& of_pod : pod.claims) {
    if (of_pod.claim != claim.name) continue;
    for (const cluster::PodClaim& of_group : group->claims) {
      const bool made = !of_group.template_name.empty();
      if (of_group.name == of_pod.name && of_group.template_name == of_pod.template_name &&
          (made || of_group.claim == of_pod.claim)) {
        return {kGroupsOfPods, "podgroups", group->meta.name, group->meta.uid};
      }
    }
  }
  return consumer;
}

// The allocator writes one term that names the node.
const std::string& NodeOf(const Allocation& allocation) {
  static const std::string none;
  if (!allocation.node_selector || allocation.node_selector->size() != 1) return none;
  const cluster::NodeSelectorTerm& term = allocation.node_selector->front();
  if (term.match_fields.size() != 1) return none;
  const cluster::SelectorRequirement& field = term.match_fields.front();
  const bool names_one =
      field.key == "metadata.name" && field.op == "In" && field.values.size() == 1;
  return names_one ? field.values.front() : none;
}

// Applies to the inventory what differs between a node and the base, until it is destroyed.
class DeviceIndex::Supposition {
 public:
  Supposition(DeviceIndex& index, const NodeInfo& node, const FindClass& find_class)
      : index_(index) {
    const NodeInfo* base =
        index.base_ == nullptr ? nullptr : index.base_->Find(node.node->meta.name);
    if (base == &node || index.base_ == nullptr) return;
    const auto takes_devices = [&](const Pod& pod) {
      return pod.HasClaims() || !index.extended_.ServedFor(pod).empty();
    };
    if (base != nullptr) Release(OnlyOn(*base, &node, takes_devices), node);
    for (const Pod* pod : OnlyOn(node, base, takes_devices)) Add(*pod, node, find_class);
  }
  ~Supposition() {
    for (const std::string& uid : added_) index_.inventory_.Release(uid);
    for (const std::string& key : released_) {
      const Held& held = index_.claims_.at(key);
      index_.inventory_.Allocate(held.claim->uid, *held.allocation());
    }
  }
  Supposition(const Supposition&) = delete;
  Supposition& operator=(const Supposition&) = delete;

 private:
  // A claim is free once all of its users have left `node`, those included that are about to be
  // stored.
  void Release(const std::vector<const Pod*>& pods, const NodeInfo& node) {
    std::set<std::string_view> left;
    for (const Pod* pod : pods) left.insert(pod->meta.uid);
    std::set<std::string> kept;
    for (const auto& pod : node.pods) {
      for (std::string& key : ClaimKeysOf(*pod)) kept.insert(std::move(key));
    }
    const auto has_left = [&](const ClaimConsumer& user) { return left.contains(user.uid); };
    for (const Pod* pod : pods) {
      for (const std::string& key : ClaimKeysOf(*pod)) {
        const auto held = index_.claims_.find(key);
        if (held == index_.claims_.end() || held->second.allocation() == nullptr) continue;
        if (kept.contains(key)) continue;
        const Claim& claim = held->second.claim;
        if (!std::ranges::all_of(claim->reserved_for, has_left)) continue;
        if (std::ranges::find(released_, key) != released_.end()) continue;
        index_.inventory_.Release(claim->uid);
        released_.push_back(key);
      }
    }
  }

  // A pod whose claims do not fit takes no devices.
  void Add(const Pod& pod, const NodeInfo& node, const FindClass& find_class) {
    std::vector<Claim> claims;
    for (const std::string& key : ClaimKeysOf(pod)) {
      const Claim& claim = index_.FindClaim(key);
      const bool waits =
          claim != nullptr && !claim->allocation && index_.FindAssumed(key) == nullptr;
      if (waits && std::ranges::find(added_, claim->uid) == added_.end()) claims.push_back(claim);
    }
    const bool has_extended = index_.claims_.contains(pod.meta.ns + "/" + pod.extended_claim) ||
                              index_.claims_.contains(ExtendedClaimKey(pod));
    if (!has_extended) {
      if (Claim made = index_.extended_.ClaimFor(pod, node).claim) {
        claims.push_back(std::move(made));
      }
    }
    if (claims.empty()) return;
    const PreparedClaims prepared(claims, find_class, index_.features());
    if (prepared.fault()) return;
    AllocationOptions options;
    options.ranking = &index_.ranking_;  // as for pods that are placed
    const AllocationOutcome outcome =
        dra::Allocate(index_.inventory_, prepared, *node.node, options);
    if (outcome.kind != AllocationOutcome::Kind::kAllocated) return;
    for (size_t i = 0; i < claims.size(); ++i) {
      index_.inventory_.Allocate(claims[i]->uid, outcome.allocations[i]);
      added_.push_back(claims[i]->uid);
    }
  }

  DeviceIndex& index_;
  std::vector<std::string> released_;
  std::vector<std::string> added_;
};

DeviceIndex::DeviceIndex(const Features& features,
                         std::shared_ptr<const DeviceExpressions> expressions,
                         const gpu::Catalogue& catalogue)
    : expressions_(std::move(expressions)),
      inventory_(features, *expressions_),
      ranking_(catalogue) {}

void DeviceIndex::CountPlaced(const Pod& pod, int change) {
  if (pod.scheduling_group.empty()) return;
  const auto count = placed_members_.try_emplace(GroupKeyOf(pod)).first;
  count->second += change;
  if (count->second == 0) placed_members_.erase(count);
}

bool DeviceIndex::HasPlacedMember(const Pod& pod) const {
  return placed_members_.contains(GroupKeyOf(pod));
}

void DeviceIndex::Reset(const cluster::ClusterContext& context) {
  std::vector<std::string> gone;
  for (const auto& [key, held] : claims_) {
    const bool in_doubt = held.assumed && held.assumed->doubtful;
    if (held.is_new && !in_doubt) continue;  // being created
    if (context.device_claims.Find(key) == nullptr) gone.push_back(key);
  }
  for (const std::string& key : gone) SetClaim(key, nullptr);
  gone.clear();
  for (const auto& [name, slice] : slices_) {
    if (context.device_slices.Find(name) == nullptr) gone.push_back(name);
  }
  for (const std::string& name : gone) SetSlice(name, nullptr);
  for (const auto& [name, slice] : context.device_slices.rows()) SetSlice(name, slice);
  for (const auto& [key, claim] : context.device_claims.rows()) SetClaim(key, claim);
  Follow(kTaintRuleKind, "", context);
  Follow(kClassKind, "", context);
}

DeviceIndex::Affected DeviceIndex::Follow(std::string_view kind, const std::string& key,
                                          const cluster::ClusterContext& context) {
  if (kind == kClaimKind) return SetClaim(key, context.device_claims.Share(key));
  if (kind == kSliceKind) return SetSlice(key, context.device_slices.Share(key));
  if (kind == kTaintRuleKind) {
    std::vector<std::shared_ptr<const DeviceTaintRule>> rules;
    for (const auto& [name, rule] : context.device_taint_rules.rows()) rules.push_back(rule);
    if (rules == rules_) return {};
    rules_ = std::move(rules);
    std::vector<DeviceTaintRule> all;
    for (const auto& rule : rules_) all.push_back(*rule);
    inventory_.SetTaintRules(std::move(all));
  }
  if (kind == kClassKind) extended_ = ExtendedResources(context.device_classes);
  most_.clear();
  return {true, {}};
}

DeviceIndex::Affected DeviceIndex::SetSlice(const std::string& name,
                                            std::shared_ptr<const ResourceSlice> slice) {
  Affected affected;
  const auto add = [&](const ResourceSlice& of) {
    NodeOf(of).empty() ? void(affected.all = true) : affected.nodes.push_back(NodeOf(of));
  };
  const auto known = slices_.find(name);
  if (known != slices_.end()) {
    if (known->second == slice) return affected;
    add(*known->second);
  }
  most_.clear();
  if (slice == nullptr) {
    if (known == slices_.end()) return affected;
    inventory_.RemoveSlice(name);
    slices_.erase(known);
    return affected;
  }
  add(*slice);
  inventory_.PutSlice(slice);
  slices_[name] = std::move(slice);
  return affected;
}

// An allocation that is stored as it was assumed changes nothing. A new claim keeps its assumption
// when the API server has created it.
DeviceIndex::Affected DeviceIndex::SetClaim(const std::string& key, const Claim& claim) {
  Affected affected;
  const auto add = [&](const Allocation& of) {
    const std::string& node = NodeOf(of);
    node.empty() ? void(affected.all = true) : affected.nodes.push_back(node);
  };
  const auto known = claims_.find(key);
  Held next{claim, {}, false};
  if (known != claims_.end()) {
    Held& before = known->second;
    const bool created = claim != nullptr && before.is_new;
    const bool successor = claim == nullptr || (claim->uid != before.claim->uid && !created);
    if (!successor && !claim->allocation) next.assumed = before.assumed;
    const Allocation* had = before.allocation();
    const Allocation* has = claim == nullptr ? nullptr : next.allocation();
    const bool same =
        !successor && !created && had != nullptr && has != nullptr && had->devices == has->devices;
    next.expired = before.expired && same;
    if (had != nullptr && !same) {
      inventory_.Release(before.claim->uid);
      add(*had);
    }
    if (has != nullptr && !same) {
      inventory_.Allocate(claim->uid, *has);
      add(*has);
    }
    if (claim == nullptr) {
      claims_.erase(known);
    } else {
      before = std::move(next);
    }
    return affected;
  }
  if (claim == nullptr) return affected;
  if (const std::optional<Allocation>& stored = claim->allocation; stored) {
    inventory_.Allocate(claim->uid, *stored);
    add(*stored);
  }
  claims_.emplace(key, std::move(next));
  return affected;
}

void DeviceIndex::Assume(const std::string& key, const Allocation& allocation,
                         const std::string& pod_uid, const std::string& gang) {
  Held& held = claims_.at(key);
  inventory_.Allocate(held.claim->uid, allocation);
  held.assumed = {allocation, pod_uid, gang, false};
  held.expired = false;
}

void DeviceIndex::AssumeNew(const Claim& claim, const Allocation& allocation,
                            const std::string& pod_uid) {
  claims_.emplace(claim->Key(), Held{claim, {}, true});
  Assume(claim->Key(), allocation, pod_uid);
}

void DeviceIndex::Withdraw(const std::string& key) {
  const auto found = claims_.find(key);
  if (found == claims_.end() || !found->second.assumed) return;
  inventory_.Release(found->second.claim->uid);
  found->second.assumed.reset();
  if (found->second.is_new) claims_.erase(found);
}

const DeviceIndex::Assumption* DeviceIndex::FindAssumed(const std::string& key) const {
  const auto found = claims_.find(key);
  if (found == claims_.end()) return nullptr;
  const std::optional<Assumption>& assumed = found->second.assumed;
  return assumed ? &*assumed : nullptr;
}

void DeviceIndex::SetDoubtful(const std::string& key) {
  const auto found = claims_.find(key);
  if (found == claims_.end()) return;
  std::optional<Assumption>& assumed = found->second.assumed;
  if (assumed) assumed->doubtful = true;
}

void DeviceIndex::SetExpired(const std::string& key) {
  const auto found = claims_.find(key);
  if (found != claims_.end()) found->second.expired = true;
}

bool DeviceIndex::IsExpired(const std::string& key) const {
  const auto found = claims_.find(key);
  return found != claims_.end() && found->second.expired;
}

const DeviceIndex::Claim& DeviceIndex::FindClaim(const std::string& key) const {
  static const Claim none;
  const auto found = claims_.find(key);
  return found == claims_.end() ? none : found->second.claim;
}

void DeviceIndex::Prefetch(const cluster::Node& node, const std::vector<PreparedClaims>& claims) {
  ranking_.Ranks(inventory_.View(node));
  AllocationOptions options;
  options.max_steps = kPrefetchSteps;
  for (const PreparedClaims& prepared : claims) {
    if (!prepared.fault()) (void)dra::Allocate(inventory_, prepared, node, options);
  }
}

AllocationOutcome DeviceIndex::Allocate(const PreparedClaims& claims, const NodeInfo& node,
                                        const FindClass& find_class,
                                        const AllocationOptions& options) {
  const Supposition supposed(*this, node, find_class);
  // LastAnswer keeps outcomes of one ranking; others are temporary objects.
  if (options.ranking != &ranking_) {
    return dra::Allocate(inventory_, claims, *node.node, options);
  }
  if (auto known = last_.Recall(claims, node.node, version(), options)) return *std::move(known);
  AllocationOutcome outcome = dra::Allocate(inventory_, claims, *node.node, options);
  last_.Remember(claims, node.node, version(), options, outcome);
  return outcome;
}

}  // namespace nos::dra
