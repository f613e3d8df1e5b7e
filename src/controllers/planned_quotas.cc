#include "controllers/planned_quotas.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

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

using Refusals = std::map<size_t, quota::Refusal>;  // by their place among the pods

// Without these; but all of a gang that cannot be placed stay, for its reason to be told.
void LeaveOut(const Refusals& refused, GangedPods& ganged) {
  std::set<size_t> out;
  for (const auto& [i, refusal] : refused) out.insert(i);
  for (const planning::Gang& gang : ganged.gangs) {
    if (gang.problem.empty()) continue;
    for (const int member : gang.members) out.erase(static_cast<size_t>(member));
  }
  std::vector<int> place(ganged.pods.size(), -1);  // by the former one
  std::vector<Pod> pods;
  for (size_t i = 0; i < ganged.pods.size(); ++i) {
    if (out.contains(i)) continue;
    place[i] = static_cast<int>(pods.size());
    pods.push_back(ganged.pods[i]);
  }
  for (planning::Gang& gang : ganged.gangs) {
    std::erase_if(gang.members, [&](int member) { return place[member] < 0; });
    for (int& member : gang.members) member = place[member];
  }
  ganged.pods = std::move(pods);
}

// Lets pods in one after the other: those of a gang together, where the first of them has its turn.
class Admission {
 public:
  Admission(quota::Balance balance, const quota::ChargeRules& rules, GangedPods& ganged)
      : balance_(std::move(balance)), rules_(rules), ganged_(ganged) {
    for (planning::Gang& gang : ganged_.gangs) {
      for (const int member : gang.members) gang_of_[static_cast<size_t>(member)] = &gang;
    }
  }

  void AdmitAll(const std::vector<size_t>& order, bool only_guaranteed) {
    for (const size_t i : order) {
      const auto gang = gang_of_.find(i);
      if (gang != gang_of_.end()) {
        AdmitGang(*gang->second, order, only_guaranteed);
      } else if (!admitted_.contains(i)) {
        (void)Admit(i, only_guaranteed);
      }
    }
  }
  const Refusals& refused() const { return refused_; }

 private:
  bool Admit(size_t i, bool only_guaranteed) {
    const cluster::Pod& pod = *ganged_.pods[i];
    const auto account = balance_.AccountOf(pod.meta.ns);
    const quota::Amounts charge = quota::ChargeOf(pod, nullptr, rules_);
    if (account) {
      if (only_guaranteed && !balance_.IsGuaranteed(*account, charge)) return false;
      if (auto refusal = balance_.WhyNot(*account, charge)) {
        refused_.insert_or_assign(i, *std::move(refusal));
        return false;
      }
      balance_.Add(*account, charge);
    }
    refused_.erase(i);
    admitted_.insert(i);
    return true;
  }

  // As many of it as it lacks, or none; and then what others there are of it.
  void AdmitGang(planning::Gang& gang, const std::vector<size_t>& order, bool only_guaranteed) {
    const auto waits = [&](size_t i) {
      const auto own = gang_of_.find(i);
      return own != gang_of_.end() && own->second == &gang && !admitted_.contains(i);
    };
    if (!gang.problem.empty() || !seen_.insert({&gang, only_guaranteed}).second) return;
    const quota::Balance before = balance_;
    const std::set<size_t> admitted = admitted_;
    for (const size_t i : order) {
      if (waits(i)) (void)Admit(i, only_guaranteed);
    }
    const auto count = static_cast<int>(std::ranges::count_if(
        gang.members, [&](int i) { return admitted_.contains(static_cast<size_t>(i)); }));
    if (count >= std::min(gang.Lacking(), static_cast<int>(gang.members.size()))) return;
    balance_ = before;
    admitted_ = admitted;
    if (only_guaranteed) return;
    for (const int member : gang.members) {
      const auto refusal = refused_.find(static_cast<size_t>(member));
      if (refusal != refused_.end() && gang.problem.empty()) gang.problem = refusal->second.Text();
    }
  }

  quota::Balance balance_;
  const quota::ChargeRules& rules_;
  GangedPods& ganged_;
  std::map<size_t, planning::Gang*> gang_of_;
  std::set<std::pair<const planning::Gang*, bool>> seen_;
  std::set<size_t> admitted_;
  Refusals refused_;
};

// With what schedulers keep for pods whose nodes are not empty yet, and so are not planned for.
quota::Balance WithPromised(const quota::Ledger& ledger, const std::vector<Pod>& pods,
                            const GangedPods& ganged, const cluster::ClusterSnapshot& snapshot,
                            const scheduling::FrameworkChoice& frameworks) {
  quota::Balance balance = ledger.balance();
  std::set<std::string> planned;
  for (const Pod& pod : ganged.pods) planned.insert(pod->Key());
  for (const Pod& pod : pods) {
    const bool waits = pod->node_name.empty() && !pod->Finished() && !pod->meta.deleted;
    if (!waits || pod->nominated_node.empty() || planned.contains(pod->Key())) continue;
    const quota::ChargeRules* rules = RulesOf(*pod, frameworks);
    const auto account = balance.AccountOf(pod->meta.ns);
    if (rules == nullptr || !account || ledger.ChargeOf(pod->Key()) != nullptr) continue;
    const cluster::NodeInfo* node = snapshot.Find(pod->nominated_node);
    balance.Add(*account,
                quota::ChargeOf(*pod, node == nullptr ? nullptr : node->node.get(), *rules));
  }
  return balance;
}

}  // namespace

std::vector<std::string> FindClaimsBeyondQuota(const Claims& claims, const std::vector<Pod>& pods,
                                               const cluster::ClusterSnapshot& snapshot,
                                               const cluster::Surroundings& around,
                                               const scheduling::FrameworkChoice& frameworks) {
  std::vector<quota::SharedQuota> quotas = quota::QuotasOf(around);
  if (quotas.empty()) return {};
  std::vector<Pod> chosen, kept;
  const quota::ChargeRules* rules = nullptr;  // all profiles have the same
  for (const Pod& pod : pods) {
    const bool waits = pod->node_name.empty() && !pod->Finished();
    const quota::ChargeRules* own = waits ? RulesOf(*pod, frameworks) : nullptr;
    if (own == nullptr) continue;
    rules = own;
    if (!pod->nominated_node.empty()) {
      chosen.push_back(pod);
    } else if (claims.Holds(pod->Key())) {
      kept.push_back(pod);
    }
  }
  if (rules == nullptr || chosen.empty() || kept.empty()) return {};
  quota::Balance balance = quota::LedgerOf(std::move(quotas), snapshot, pods, *rules).balance();
  const auto admit = [&](const Pod& pod, bool always) {
    const auto account = balance.AccountOf(pod->meta.ns);
    if (!account) return true;
    const quota::Amounts charge = quota::ChargeOf(*pod, nullptr, *rules);
    if (!always && balance.WhyNot(*account, charge)) return false;
    balance.Add(*account, charge);
    return true;
  };
  for (const Pod& pod : chosen) (void)admit(pod, true);
  std::vector<std::string> beyond;
  for (const Pod& pod : kept) {
    if (!admit(pod, false)) beyond.push_back(pod->Key());
  }
  return beyond;
}

RefusedByQuota LeaveOutRefused(GangedPods& ganged, const std::vector<Pod>& pods,
                               const cluster::ClusterSnapshot& snapshot,
                               const cluster::Surroundings& around,
                               const scheduling::FrameworkChoice& frameworks,
                               const std::set<std::string>& last) {
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
  const auto rank = [&](size_t i) {
    const cluster::Pod& pod = *ganged.pods[i];
    return std::tuple(pod.nominated_node.empty(), last.contains(pod.Key()), -int64_t{pod.priority},
                      pod.meta.created, pod.Key());
  };
  std::ranges::sort(order, {}, rank);
  Admission admission(WithPromised(quota::LedgerOf(std::move(quotas), snapshot, pods, *rules), pods,
                                   ganged, snapshot, frameworks),
                      *rules, ganged);
  std::vector<size_t> first = order;
  std::erase_if(first, [&](size_t i) { return last.contains(ganged.pods[i]->Key()); });
  admission.AdmitAll(first, true);
  admission.AdmitAll(order, false);
  RefusedByQuota out;
  for (const auto& [i, refusal] : admission.refused()) out.emplace_back(ganged.pods[i], refusal);
  LeaveOut(admission.refused(), ganged);
  return out;
}

}  // namespace nos::controllers
