#include "controllers/planned_quotas.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "quota/ledger.h"
#include "scheduling/plugins/capacity_scheduling/capacity_scheduling.h"

namespace nos::controllers {
namespace {

using Pod = std::shared_ptr<const cluster::Pod>;

const quota::ChargeRules* RulesOf(const cluster::Pod& pod,
                                  const scheduling::FrameworkChoice& frameworks) {
  const scheduling::CapacityScheduling* quotas = frameworks.For(pod).quotas();
  return quotas == nullptr ? nullptr : &quotas->options().charges;
}

quota::Balance BalanceOf(std::vector<quota::SharedQuota> quotas,
                         const cluster::ClusterSnapshot& snapshot,
                         const quota::ChargeRules& rules) {
  quota::Balance balance(std::move(quotas));
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const cluster::NodeInfo& node = snapshot.node(i);
    for (const Pod& pod : node.pods) {
      const auto account = balance.AccountOf(pod->meta.ns);
      if (account) balance.Add(*account, quota::ChargeOf(*pod, node.node.get(), rules));
    }
  }
  return balance;
}

// Without these; a gang of which one is refused is not planned for.
void LeaveOut(const std::map<size_t, quota::Refusal>& refused, GangedPods& ganged) {
  std::vector<int> place(ganged.pods.size(), -1);  // by the former one
  std::vector<bool> in_gang(ganged.pods.size());
  for (planning::Gang& gang : ganged.gangs) {
    for (const int member : gang.members) {
      in_gang[member] = true;
      const auto found = refused.find(static_cast<size_t>(member));
      if (found != refused.end() && gang.problem.empty()) gang.problem = found->second.Text();
    }
  }
  std::vector<Pod> pods;
  for (size_t i = 0; i < ganged.pods.size(); ++i) {
    if (refused.contains(i) && !in_gang[i]) continue;
    place[i] = static_cast<int>(pods.size());
    pods.push_back(ganged.pods[i]);
  }
  for (planning::Gang& gang : ganged.gangs) {
    for (int& member : gang.members) member = place[member];
  }
  ganged.pods = std::move(pods);
}

}  // namespace

RefusedByQuota LeaveOutRefused(GangedPods& ganged, const cluster::ClusterSnapshot& snapshot,
                               const cluster::Surroundings& around,
                               const scheduling::FrameworkChoice& frameworks,
                               FunctionRef<bool(const cluster::Pod&)> may_come_last) {
  std::vector<quota::SharedQuota> quotas = quota::QuotasOf(around);
  const quota::ChargeRules* rules = nullptr;  // all profiles have the same
  std::vector<size_t> order;
  for (size_t i = 0; i < ganged.pods.size() && !quotas.empty(); ++i) {
    const quota::ChargeRules* own = RulesOf(*ganged.pods[i], frameworks);
    if (own == nullptr) continue;
    rules = own;
    order.push_back(i);
  }
  if (rules == nullptr) return {};
  quota::Balance balance = BalanceOf(std::move(quotas), snapshot, *rules);
  const auto rank = [&](size_t i) {
    const cluster::Pod& pod = *ganged.pods[i];
    return std::tuple(pod.nominated_node.empty(), may_come_last(pod), -int64_t{pod.priority},
                      pod.meta.created, pod.Key());
  };
  std::ranges::sort(order, {}, rank);
  std::map<size_t, quota::Refusal> refused;
  const auto admit = [&](size_t i, bool only_guaranteed) {
    const auto account = balance.AccountOf(ganged.pods[i]->meta.ns);
    if (!account) return true;
    const quota::Amounts charge = quota::ChargeOf(*ganged.pods[i], nullptr, *rules);
    if (only_guaranteed && !balance.IsGuaranteed(*account, charge)) return false;
    if (auto refusal = balance.WhyNot(*account, charge)) {
      refused.insert_or_assign(i, *std::move(refusal));
      return false;
    }
    refused.erase(i);
    balance.Add(*account, charge);
    return true;
  };
  std::erase_if(order, [&](size_t i) { return admit(i, true); });
  for (const size_t i : order) (void)admit(i, false);
  RefusedByQuota out;
  for (const auto& [i, refusal] : refused) out.emplace_back(ganged.pods[i], refusal);
  LeaveOut(refused, ganged);
  return out;
}

}  // namespace nos::controllers
