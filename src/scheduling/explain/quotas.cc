#include "scheduling/explain/quotas.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "scheduling/claim_charges.h"
#include "scheduling/framework.h"
#include "scheduling/quota_plugin.h"

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using cluster::NodeInfo;
using cluster::Pod;
using quota::ChargeRules;
using quota::Refusal;

// The empty node could hold what the pod requests. A hybrid node advertises a slice only when its
// GPUs are partitioned for it.
bool IsLargeEnough(const NodeInfo& node, const cluster::ResourceVector& asked) {
  return std::ranges::all_of(asked.entries(), [&](const auto& entry) {
    return (node.gpus.whole && cluster::IsManagedOn(node, entry.first)) ||
           entry.second <= node.allocatable.Get(entry.first);
  });
}

// A node for each different charge of the pod, the least first, among sufficiently large nodes.
// Null: any node.
std::vector<const cluster::Node*> NodesByCharge(const Pod& pod, const ClusterSnapshot& snapshot,
                                                const ChargeRules& rules) {
  if (!quota::DependsOnNode(pod)) return {nullptr};
  const cluster::ResourceVector asked = cluster::RequestsOf(pod);
  std::map<quota::GpuWorth, const cluster::Node*> by_worth;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const NodeInfo& node = snapshot.node(i);
    if (!IsLargeEnough(node, asked)) continue;
    by_worth.try_emplace(quota::GpuWorthOf(node.node.get(), rules), node.node.get());
  }
  if (by_worth.empty()) return {nullptr};
  std::vector<const cluster::Node*> nodes;
  for (const auto& [worth, node] : by_worth) nodes.push_back(node);
  return nodes;
}

// Claims that pods with a node are charged for, of those that the pod names.
std::set<std::string> ClaimsInUse(const Pod& pod, const ClusterSnapshot& snapshot) {
  std::set<std::string> in_use;
  const std::set<std::string> own = ChargedClaimsOf(pod);
  for (size_t i = 0; i < snapshot.size() && !own.empty(); ++i) {
    for (const auto& other : snapshot.node(i).pods) {
      if (other->claims.empty() || other->meta.ns != pod.meta.ns || other->Key() == pod.Key()) {
        continue;
      }
      std::ranges::set_intersection(own, ChargedClaimsOf(*other),
                                    std::inserter(in_use, in_use.end()));
    }
  }
  return in_use;
}

// The refusal on the node where the least is missing. Absent: some node is not refused.
std::optional<Refusal> RefusalOf(const ExplainInput& input, size_t account) {
  const ChargeRules rules = WithClaims(input.framework.quotas()->options().charges, input.snapshot);
  const std::set<std::string> in_use = ClaimsInUse(input.pod, input.snapshot);
  std::optional<Refusal> least;
  for (const cluster::Node* node : NodesByCharge(input.pod, input.snapshot, rules)) {
    std::set<std::string> counted = in_use;
    quota::Amounts charge = quota::ChargePartsOf(input.pod, node, rules).TakeNew(counted);
    charge.Add(input.charged_with_it);
    auto refusal = input.balance->WhyNot(account, charge);
    if (!refusal) return std::nullopt;
    if (!least || refusal->Lack() < least->Lack()) least = std::move(refusal);
  }
  return least;
}

// True if the pod fits somewhere once pods end whose quota has a part in the refusal.
bool FitsWithoutHolders(const ExplainInput& input, const Refusal& refusal) {
  if (refusal.held < refusal.Lack()) return false;
  const auto own = input.balance->AccountOf(input.pod.meta.ns);
  ClusterSnapshot without = input.snapshot;
  for (size_t i = 0; i < input.snapshot.size(); ++i) {
    const NodeInfo& node = input.snapshot.node(i);
    for (const auto& other : node.pods) {
      const auto account = input.balance->AccountOf(other->meta.ns);
      const bool holds =
          refusal.kind == Refusal::Kind::kNothingIdle ? account.has_value() : account == own;
      if (holds) (void)without.Vacate(*other, node.node->meta.name);  // the pod is on the node
    }
  }
  return input.partitioning.Schedule(input.pod, without).node != nullptr;
}

}  // namespace

void AskQuota(const ExplainInput& input, Explanation& why) {
  if (input.balance == nullptr || input.framework.quotas() == nullptr) return;
  const auto account = input.balance->AccountOf(input.pod.meta.ns);
  if (!account) return;
  const auto refusal = RefusalOf(input, *account);
  if (!refusal) return;
  why.quota = refusal->Text();
  why.for_quota = refusal->Remedy();
  if (input.partitioning.Schedule(input.pod, input.snapshot).node != nullptr) return;
  why.for_quota += FitsWithoutHolders(input, *refusal)
                       ? "; if you raise it, no node has room for the pod until others end"
                       : "; even then no node has room for it now";
}

Admitted AdmittedBy(const quota::Balance& balance, const Framework& framework, const Pod& pod,
                    const ClusterSnapshot& snapshot) {
  const auto account = balance.AccountOf(pod.meta.ns);
  if (framework.quotas() == nullptr || !account) return {};
  const ChargeRules rules = WithClaims(framework.quotas()->options().charges, snapshot);
  const std::set<std::string> in_use = ClaimsInUse(pod, snapshot);
  const auto why_not = [&](const cluster::Node* node) {
    std::set<std::string> counted = in_use;
    return balance.WhyNot(*account, quota::ChargePartsOf(pod, node, rules).TakeNew(counted));
  };
  Admitted admitted;
  if (!quota::DependsOnNode(pod)) {
    admitted.refusal = why_not(nullptr);
    admitted.everywhere = !admitted.refusal;
    return admitted;
  }
  std::map<quota::GpuWorth, std::optional<Refusal>> by_worth;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const cluster::Node* node = snapshot.node(i).node.get();
    const auto [one, fresh] = by_worth.try_emplace(quota::GpuWorthOf(node, rules));
    if (fresh) one->second = why_not(node);
    if (!one->second) admitted.nodes.push_back(i);
    if (one->second && !admitted.refusal) admitted.refusal = one->second;
  }
  admitted.everywhere = admitted.nodes.size() == snapshot.size();
  return admitted;
}

quota::Amounts ChargeFor(const Framework& framework, const Pod& pod, const cluster::Node* node,
                         const ClusterSnapshot& snapshot, std::set<std::string>& counted) {
  if (framework.quotas() == nullptr) return {};
  const ChargeRules rules = WithClaims(framework.quotas()->options().charges, snapshot);
  if (node == nullptr) node = NodesByCharge(pod, snapshot, rules).front();
  counted.merge(ClaimsInUse(pod, snapshot));
  return quota::ChargePartsOf(pod, node, rules).TakeNew(counted);
}

}  // namespace nos::scheduling
