#include "scheduling/engine/quota_admission.h"

#include <utility>

#include "scheduling/claim_charges.h"
#include "scheduling/engine/pod_order.h"
#include "scheduling/framework.h"

namespace nos::scheduling {

quota::Balance QuotaAdmission::BalanceToReclaim(const cluster::Pod& pod,
                                                std::set<std::string> left_out,
                                                FunctionRef<bool(const std::string&)> sees_to_it,
                                                std::string_view on) const {
  quota::Balance balance = BalanceFor(pod, left_out, on);
  const auto own = balance.AccountOf(pod.meta.ns);
  if (!own || !nominator_.IsGuaranteed(pod, on)) return balance;
  const bool together = balance.IsGuaranteed(*own, charges_.Of(pod, cache_.snapshot().Find(on)));
  for (const auto& [node, nominations] : nominator_.Standings()) {
    for (const Nominator::Nomination& other : nominations) {
      const bool may_be = together || balance.AccountOf(other.pod->meta.ns) != own;
      if (may_be && other.standing == Nominator::QuotaStanding::kGuaranteed &&
          sees_to_it(other.key)) {
        left_out.insert(other.key);
      }
    }
  }
  return BalanceFor(pod, left_out, on);
}

// If two pods served by different schedulers count each other, the older one goes ahead, or neither
// would be scheduled.
quota::Balance QuotaAdmission::BalanceFor(const cluster::Pod& pod,
                                          const std::set<std::string>& left_out,
                                          std::string_view on) const {
  quota::Balance balance = charges_.ledger().balance();
  if (balance.size() == 0 || nominator_.empty()) return balance;
  const auto own = balance.AccountOf(pod.meta.ns);
  const bool own_is_guaranteed = nominator_.IsGuaranteed(pod, on);
  std::set<std::string> counted = ChargedClaimsOf(pod);  // the pod is charged for these itself
  for (const auto& [node, nominations] : nominator_.Standings()) {
    for (const Nominator::Nomination& other : nominations) {
      const auto account = balance.AccountOf(other.pod->meta.ns);
      if (!account || IsSame(*other.pod, pod)) continue;
      if (left_out.contains(other.key) || cache_.FindPlaced(other.key) != nullptr) continue;
      const bool guaranteed = other.standing == Nominator::QuotaStanding::kGuaranteed;
      const bool alike = guaranteed == own_is_guaranteed &&
                         (account != own || other.pod->priority == pod.priority);
      if (alike && other.by_others && IsOlder(pod, *other.pod)) continue;
      const bool first =
          account == own ? other.pod->priority >= pod.priority : !own_is_guaranteed || guaranteed;
      if (first && other.charge) balance.Add(*account, other.charge->TakeNew(counted));
    }
  }
  return balance;
}

std::optional<quota::Refusal> QuotaAdmission::WhyNot(const Framework& framework,
                                                     const cluster::Pod& pod,
                                                     const cluster::NodeInfo* node) const {
  const auto account = charges_.ledger().balance().AccountOf(pod.meta.ns);
  if (framework.quotas() == nullptr || !account) return std::nullopt;
  const quota::Amounts charge = charges_.Of(pod, node);
  if (nominator_.empty() && evicted_.empty())
    return charges_.ledger().balance().WhyNot(*account, charge);
  const std::string_view on = node == nullptr ? "" : std::string_view(node->node->meta.name);
  const quota::Balance promised = BalanceFor(pod, {}, on);
  const quota::Balance settled = evicted_.Without(charges_.ledger().balance(), pod);
  return evicted_.Without(promised, pod).WhyNot(*account, charge, &settled, &promised);
}

QuotaGate::QuotaGate(const QuotaAdmission& admission, const Framework& framework,
                     const cluster::Pod& pod)
    : admission_(admission), framework_(framework), pod_(pod) {
  if (framework.quotas() == nullptr || !admission.charges().HasQuota(pod)) return;
  by_node_ = quota::DependsOnNode(pod);
  if (!by_node_) everywhere_ = admission.WhyNot(framework, pod, nullptr);
}

const quota::Refusal* QuotaGate::On(const cluster::NodeInfo& node) {
  if (!by_node_) return Everywhere();
  const auto [found, fresh] =
      by_worth_.try_emplace(quota::GpuWorthOf(node.node.get(), admission_.charges().rules()));
  std::optional<quota::Refusal>& refusal = found->second;
  if (fresh) refusal = admission_.WhyNot(framework_, pod_, &node);
  return refusal ? &*refusal : nullptr;
}

}  // namespace nos::scheduling
