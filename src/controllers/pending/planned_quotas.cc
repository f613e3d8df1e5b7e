#include "controllers/pending/planned_quotas.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "controllers/pending/pod_rank.h"
#include "gpu/modes.h"
#include "quota/ledger.h"
#include "scheduling/claim_charges.h"
#include "scheduling/framework.h"
#include "scheduling/preemption.h"
#include "scheduling/quota_plugin.h"

namespace nos::controllers {
namespace {

using Pod = std::shared_ptr<const cluster::Pod>;

const quota::ChargeRules* RulesOf(const cluster::Pod& pod,
                                  const scheduling::FrameworkChoice& frameworks) {
  const scheduling::QuotaPlugin* quotas = frameworks.For(pod).quotas();
  return quotas == nullptr ? nullptr : &quotas->options().charges;
}

// True also if the node's GPUs could switch to a model that has the profile.
bool Gives(const cluster::NodeInfo& node, std::string_view resource) {
  return std::ranges::any_of(node.gpus.gpus, [&](const cluster::Gpu& gpu) {
    return gpu.model->FindProfile(resource) ||
           (gpu.alternative != nullptr && gpu.alternative->FindProfile(resource));
  });
}

// Charges pods without a node. A whole GPU or a time slice counts as the smallest one that a hybrid
// node offers: a node that reports larger ones than it has must not keep plans from pods that
// others can serve. If no hybrid node offers one, it counts as the smallest of the nodes that are
// large enough for the pod, because its scheduler refuses it only if its quota refuses it on all of
// them.
class ChargesWithoutNode {
 public:
  ChargesWithoutNode(const quota::ChargeRules& rules, const cluster::ClusterSnapshot& snapshot)
      : rules_(rules), snapshot_(snapshot) {
    for (size_t i = 0; i < snapshot.size(); ++i) {
      const cluster::NodeInfo& node = snapshot.node(i);
      if (!node.gpus.whole) continue;
      const quota::GpuWorth worth = quota::GpuWorthOf(node.node.get(), rules);
      if (Gives(node, gpu::kWholeGpu)) hybrid_.whole = Least(hybrid_.whole, worth.whole);
      if (Gives(node, gpu::kTimeSlice)) {
        hybrid_.time_slice = Least(hybrid_.time_slice, worth.time_slice);
      }
    }
  }
  quota::ChargeParts Of(const cluster::Pod& pod) {
    if (!quota::DependsOnNode(pod)) return quota::ChargePartsOf(pod, nullptr, rules_);
    const cluster::ResourceVector asked = cluster::RequestsOf(pod);
    const auto [known, fresh] = rules_for_.try_emplace(asked.entries());
    if (fresh) known->second = RulesFor(asked);
    return quota::ChargePartsOf(pod, nullptr, known->second);
  }

 private:
  // `known`: 0 if nothing is known yet.
  static int64_t Least(int64_t known, int64_t here) {
    return known == 0 ? here : std::min(known, here);
  }
  quota::ChargeRules RulesFor(const cluster::ResourceVector& asked) const {
    quota::GpuWorth worth = hybrid_;
    for (size_t i = 0; i < snapshot_.size(); ++i) {
      const cluster::NodeInfo& node = snapshot_.node(i);
      const bool large = std::ranges::all_of(asked.entries(), [&](const auto& entry) {
        return entry.second <= node.allocatable.Get(entry.first);
      });
      if (!large) continue;
      const quota::GpuWorth here = quota::GpuWorthOf(node.node.get(), rules_);
      if (hybrid_.whole == 0) worth.whole = Least(worth.whole, here.whole);
      if (hybrid_.time_slice == 0) worth.time_slice = Least(worth.time_slice, here.time_slice);
    }
    quota::ChargeRules rules = rules_;
    if (worth.whole > 0) rules.gpu_memory_gb = worth.whole;
    rules.time_slice_gb = worth.time_slice;
    return rules;
  }

  const quota::ChargeRules rules_;
  const cluster::ClusterSnapshot& snapshot_;
  quota::GpuWorth hybrid_;  // the smallest; 0: no hybrid node offers it
  std::map<std::vector<std::pair<cluster::ResourceId, int64_t>>, quota::ChargeRules> rules_for_;
};

using Refusals = std::map<size_t, quota::Refusal>;  // by index in the list of pods

// Removes refused pods. Members of gangs with a problem stay, so that the reason is reported.
void LeaveOut(const Refusals& refused, GangedPods& ganged) {
  std::set<size_t> out;
  for (const auto& [i, refusal] : refused) out.insert(i);
  for (const planning::Gang& gang : ganged.gangs) {
    if (gang.problem.empty()) continue;
    for (const int member : gang.members) out.erase(static_cast<size_t>(member));
  }
  std::vector<int> place(ganged.pods.size(), -1);  // new index by old index
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

// A pod without a node, and its charge.
struct Charged {
  Pod pod;
  size_t account;
  quota::ChargeParts charge;  // without claims that pods with a node are charged for
};

// Quota usage from the view of a pending pod. Charges of preempted pods count as released to other
// quotas. In the pod's own quota they still count.
class QuotaUse {
 public:
  QuotaUse(const quota::Ledger& ledger, const std::vector<Pod>& pods) : balance_(ledger.balance()) {
    std::set<std::string> gone;
    for (const Pod& pod : pods) {
      const std::string key = pod->Key();
      const auto account = balance_.AccountOf(pod->meta.ns);
      if (!account || ledger.ChargeOf(key) == nullptr) continue;
      if (!scheduling::EndsByPreemption(*pod)) continue;
      const quota::Amounts charge =
          ledger.FreedBy(key, [&](const std::string& other) { return gone.contains(other); });
      gone.insert(key);
      leaving_[*account].Add(charge);
      balance_.Add(*account, charge, -1);
    }
  }
  void Add(const Charged& each) { balance_.Add(each.account, each.charge.TakeNew(claims_)); }
  bool IsGuaranteed(const Charged& each) {
    return For(each, [&] { return balance_.IsGuaranteed(each.account, MoreFor(each)); });
  }
  std::optional<quota::Refusal> WhyNot(const Charged& each) {
    return For(each, [&] { return balance_.WhyNot(each.account, MoreFor(each)); });
  }
  // Charges the nominated pods that min covers, by priority and age. Returns the others, which come
  // after everything that min covers.
  std::vector<Charged> AddGuaranteed(std::vector<Charged> promised) {
    std::ranges::sort(promised, {}, [](const Charged& each) { return RankOf(*each.pod); });
    std::erase_if(promised, [&](const Charged& each) {
      const bool guaranteed = IsGuaranteed(each);
      if (guaranteed) Add(each);
      return guaranteed;
    });
    return promised;
  }

 private:
  template <typename Ask>
  std::invoke_result_t<Ask> For(const Charged& each, Ask ask) {
    const auto own = leaving_.find(each.account);
    if (own == leaving_.end()) return ask();
    balance_.Add(each.account, own->second);
    const auto answer = ask();
    balance_.Add(each.account, own->second, -1);
    return answer;
  }

  // The charge without claims of pods that were added before.
  quota::Amounts MoreFor(const Charged& each) const {
    std::set<std::string> counted = claims_;
    return each.charge.TakeNew(counted);
  }

  quota::Balance balance_;
  std::map<size_t, quota::Amounts> leaving_;  // by account
  std::set<std::string> claims_;              // of the pods that were added
};

// The nominated pods that borrow. A pod of lower priority must not take its own share of min before
// such a pod of the same quota: the scheduler would evict it again, and its successor would come
// back, for ever.
class Borrowers {
 public:
  void Add(const Charged& each) {
    int32_t& highest = highest_.try_emplace(each.account, each.pod->priority).first->second;
    highest = std::max(highest, each.pod->priority);
  }
  bool Precede(const Charged& each) const {
    const auto found = highest_.find(each.account);
    return found != highest_.end() && found->second > each.pod->priority;
  }

 private:
  std::map<size_t, int32_t> highest_;  // priority by account
};

// Admits pods one after the other. All members of a gang are admitted at the turn of its first one.
class Admission {
 public:
  // The pods that a round may admit. kGuaranteedFirst: pods that min covers, except pods that a
  // nominated borrower of the same quota precedes. kGuaranteed: all pods that min covers.
  enum class Round { kGuaranteedFirst, kGuaranteed, kAll };

  // `charged`: the pods that have a quota, by index in the list of pods. `promised`: borrowers that
  // are not among them.
  Admission(QuotaUse use, std::map<size_t, Charged> charged, const std::vector<Charged>& promised,
            GangedPods& ganged)
      : use_(std::move(use)), charged_(std::move(charged)), ganged_(ganged) {
    for (const Charged& each : promised) borrowers_.Add(each);
    for (const auto& [i, each] : charged_) {
      if (!each.pod->nominated_node.empty() && !use_.IsGuaranteed(each)) borrowers_.Add(each);
    }
    for (planning::Gang& gang : ganged_.gangs) {
      for (const int member : gang.members) gang_of_[static_cast<size_t>(member)] = &gang;
    }
  }

  // Charges the nominated pods that min covers, by priority and age: when the scheduler nominated
  // them is not known. Admits those that are planned for; `promised`: the others.
  void AdmitNominated(std::vector<Charged> promised) {
    std::vector<std::pair<Charged, std::optional<size_t>>> nominated;
    for (Charged& each : promised) nominated.emplace_back(std::move(each), std::nullopt);
    for (const auto& [i, each] : charged_) {
      const bool alone = !gang_of_.contains(i);
      if (alone && !each.pod->nominated_node.empty()) nominated.emplace_back(each, i);
    }
    std::ranges::sort(nominated, {}, [](const auto& entry) { return RankOf(*entry.first.pod); });
    for (auto& [each, planned] : nominated) {
      if (planned) {
        (void)Admit(*planned, Round::kGuaranteedFirst);
      } else if (use_.IsGuaranteed(each)) {
        use_.Add(each);
        promised_.insert(each.pod->Key());
      } else {
        borrowing_.push_back(std::move(each));
      }
    }
  }
  // Charges the nominated pods that borrow and are not planned for.
  void CountBorrowing() {
    for (const Charged& each : borrowing_) use_.Add(each);
  }
  void AdmitAll(const std::vector<size_t>& order, Round round) {
    std::set<const planning::Gang*> seen;
    for (const size_t i : order) {
      const auto gang = gang_of_.find(i);
      if (gang == gang_of_.end()) {
        if (!admitted_.contains(i)) (void)Admit(i, round);
      } else if (gang->second->problem.empty() && seen.insert(gang->second).second) {
        AdmitGang(*gang->second, order, round);
      }
    }
  }
  const Refusals& refused() const { return refused_; }
  // Keys of the pods that min covers, planned for or not.
  std::set<std::string, std::less<>> Covered() const {
    std::set<std::string, std::less<>> covered = promised_;
    for (const size_t i : admitted_) {
      if (covered_.contains(i)) covered.insert(charged_.at(i).pod->Key());
    }
    return covered;
  }
  // Keys of the pods that min covers, if a pod that borrows would go before one of them.
  std::set<std::string, std::less<>> BeforeBorrowers() const {
    std::set<std::string, std::less<>> covered;
    int32_t lowest = std::numeric_limits<int32_t>::max();
    int32_t highest = std::numeric_limits<int32_t>::min();
    for (const size_t i : admitted_) {
      const auto found = charged_.find(i);
      if (found == charged_.end()) continue;
      const cluster::Pod& pod = *found->second.pod;
      if (!covered_.contains(i)) {
        highest = std::max(highest, pod.priority);
        continue;
      }
      lowest = std::min(lowest, pod.priority);
      covered.insert(pod.Key());
    }
    if (highest < lowest) covered.clear();
    return covered;
  }

 private:
  bool Admit(size_t i, Round round) {
    if (const auto found = charged_.find(i); found != charged_.end()) {
      if (round == Round::kGuaranteedFirst && borrowers_.Precede(found->second)) return false;
      if (round != Round::kAll && !use_.IsGuaranteed(found->second)) return false;
      if (auto refusal = use_.WhyNot(found->second)) {
        refused_.insert_or_assign(i, *std::move(refusal));
        return false;
      }
      use_.Add(found->second);
      if (round != Round::kAll) covered_.insert(i);
    }
    refused_.erase(i);
    admitted_.insert(i);
    return true;
  }

  // Admits as many members as the gang lacks, or none. Further members are optional.
  void AdmitGang(planning::Gang& gang, const std::vector<size_t>& order, Round round) {
    const auto waits = [&](size_t i) {
      const auto own = gang_of_.find(i);
      return own != gang_of_.end() && own->second == &gang && !admitted_.contains(i);
    };
    const QuotaUse before = use_;
    const std::set<size_t> admitted = admitted_;
    for (const size_t i : order) {
      if (waits(i)) (void)Admit(i, round);
    }
    const auto count = static_cast<int>(std::ranges::count_if(
        gang.members, [&](int i) { return admitted_.contains(static_cast<size_t>(i)); }));
    if (count >= std::min(gang.Lacking(), static_cast<int>(gang.members.size()))) return;
    use_ = before;
    admitted_ = admitted;
    if (round == Round::kAll) RefuseGang(gang);
  }

  // Refuses also members that the quota would admit alone.
  void RefuseGang(planning::Gang& gang) {
    std::optional<quota::Refusal> why;
    for (const int member : gang.members) {
      const auto refusal = refused_.find(static_cast<size_t>(member));
      if (refusal != refused_.end() && !why) why = refusal->second;
    }
    if (!why) return;
    gang.problem = why->Text();
    for (const int member : gang.members) {
      const auto i = static_cast<size_t>(member);
      if (!admitted_.contains(i)) refused_.try_emplace(i, *why);
    }
  }

  QuotaUse use_;
  const std::map<size_t, Charged> charged_;
  Borrowers borrowers_;
  GangedPods& ganged_;
  std::vector<Charged> borrowing_;
  std::map<size_t, planning::Gang*> gang_of_;
  std::set<size_t> admitted_, covered_;          // covered_: in a round for pods that min covers
  std::set<std::string, std::less<>> promised_;  // keys of nominated pods that min covers
  Refusals refused_;
};

// Nominated pods that are not planned for, because their nodes are not free yet.
std::vector<Charged> PromisedBeside(const GangedPods& ganged, const quota::Ledger& ledger,
                                    const std::vector<Pod>& pods,
                                    const cluster::ClusterSnapshot& snapshot,
                                    const scheduling::FrameworkChoice& frameworks,
                                    const quota::ChargeRules& rules) {
  std::vector<Charged> promised;
  std::set<std::string> planned;
  for (const Pod& pod : ganged.pods) planned.insert(pod->Key());
  for (const Pod& pod : pods) {
    const bool waits = pod->node_name.empty() && !pod->Finished() && !pod->meta.deleted;
    if (!waits || pod->nominated_node.empty() || planned.contains(pod->Key())) continue;
    const auto account = ledger.balance().AccountOf(pod->meta.ns);
    if (RulesOf(*pod, frameworks) == nullptr || !account || ledger.ChargeOf(pod->Key()) != nullptr)
      continue;
    const cluster::NodeInfo* info = snapshot.Find(pod->nominated_node);
    const cluster::Node* node = info == nullptr ? nullptr : info->node.get();
    const auto charge = quota::ChargePartsOf(*pod, node, rules);
    promised.push_back({pod, *account, ledger.WithoutOthers(charge, pod->Key())});
  }
  return promised;
}

}  // namespace

std::vector<std::string> FindReservationsBeyondQuota(
    const SliceReservations& reservations, const std::vector<Pod>& pods,
    const cluster::ClusterSnapshot& snapshot, const cluster::ClusterContext& context,
    const scheduling::FrameworkChoice& frameworks) {
  std::vector<quota::SharedQuota> quotas = quota::QuotasOf(context);
  if (quotas.empty()) return {};
  std::vector<Pod> chosen, kept;
  const quota::ChargeRules* known = nullptr;  // all profiles have the same rules
  for (const Pod& pod : pods) {
    const bool waits = pod->node_name.empty() && !pod->Finished();
    const quota::ChargeRules* own = waits ? RulesOf(*pod, frameworks) : nullptr;
    if (own == nullptr) continue;
    known = own;
    if (!pod->nominated_node.empty()) {
      chosen.push_back(pod);
    } else if (reservations.Holds(pod->Key())) {
      kept.push_back(pod);
    }
  }
  if (known == nullptr || chosen.empty()) return {};
  const quota::ChargeRules rules = scheduling::WithClaims(*known, context);
  const quota::Ledger ledger = quota::LedgerOf(std::move(quotas), snapshot, pods, rules);
  QuotaUse use(ledger, pods);
  ChargesWithoutNode charges(rules, snapshot);
  const auto charged = [&](const std::vector<Pod>& of) {
    std::vector<Charged> out;
    for (const Pod& pod : of) {
      const auto account = ledger.balance().AccountOf(pod->meta.ns);
      const auto charge = ledger.WithoutOthers(charges.Of(*pod), pod->Key());
      if (account) out.push_back({pod, *account, charge});
    }
    return out;
  };
  const std::vector<Charged> nominated = charged(chosen);
  const std::vector<Charged> shares = use.AddGuaranteed(nominated);
  Borrowers borrowers;
  for (const Charged& share : shares) borrowers.Add(share);
  // Nodes on which capacity is reclaimed for pods that min covers: no pod borrows it.
  std::set<std::string, std::less<>> reclaimed;
  for (const Charged& each : nominated) {
    if (std::ranges::find(shares, each.pod, &Charged::pod) != shares.end()) continue;
    reclaimed.insert(each.pod->nominated_node);
  }
  const auto is_reclaimed = [&](const Charged& borrower) {
    const auto held = reservations.all().find(borrower.pod->Key());
    return held != reservations.all().end() && reclaimed.contains(held->second.node);
  };
  std::vector<Charged> others = charged(kept);
  const auto keep = [&](const Charged& each, bool behind_borrowers) {
    if (!behind_borrowers && borrowers.Precede(each)) return false;
    const bool stays = use.IsGuaranteed(each) && !use.WhyNot(each);
    if (stays) use.Add(each);
    return stays;
  };
  std::erase_if(others, [&](const Charged& each) { return keep(each, false); });
  for (const Charged& share : shares) use.Add(share);
  std::erase_if(others, [&](const Charged& each) { return keep(each, true); });
  std::vector<std::string> beyond;
  for (const Charged& each : others) {
    is_reclaimed(each) || use.WhyNot(each) ? beyond.push_back(each.pod->Key()) : use.Add(each);
  }
  for (const Charged& each : shares) {
    if (is_reclaimed(each)) beyond.push_back(each.pod->Key());
  }
  return beyond;
}

PlannedAdmission AdmitByQuota(GangedPods& ganged, const std::vector<Pod>& pods,
                              const cluster::ClusterSnapshot& snapshot,
                              const cluster::ClusterContext& context,
                              const scheduling::FrameworkChoice& frameworks,
                              const std::set<std::string>& last) {
  std::vector<quota::SharedQuota> quotas = quota::QuotasOf(context);
  const quota::ChargeRules* known = nullptr;  // all profiles have the same rules
  std::vector<size_t> order;
  for (size_t i = 0; i < ganged.pods.size() && !quotas.empty(); ++i) {
    const quota::ChargeRules* own = RulesOf(*ganged.pods[i], frameworks);
    if (own == nullptr) continue;
    known = own;
    order.push_back(i);
  }
  if (known == nullptr) return {};
  const quota::ChargeRules rules = scheduling::WithClaims(*known, context);
  const auto rank = [&](size_t i) {
    const cluster::Pod& pod = *ganged.pods[i];
    return std::tuple(pod.nominated_node.empty(), last.contains(pod.Key()), RankOf(pod));
  };
  std::ranges::sort(order, {}, rank);
  const quota::Ledger ledger = quota::LedgerOf(std::move(quotas), snapshot, pods, rules);
  ChargesWithoutNode charges(rules, snapshot);
  std::map<size_t, Charged> charged;
  for (const size_t i : order) {
    const Pod& pod = ganged.pods[i];
    const auto account = ledger.balance().AccountOf(pod->meta.ns);
    if (!account) continue;
    charged[i] = {pod, *account, ledger.WithoutOthers(charges.Of(*pod), pod->Key())};
  }
  // The order decides who may borrow:
  // 1. nominated pods that their quotas cover, then such pending pods that no nominated borrower of
  //    their quota precedes,
  // 2. nominated pods that borrow,
  // 3. the other pods that their quotas cover,
  // 4. pending pods that borrow.
  std::vector<Charged> promised = PromisedBeside(ganged, ledger, pods, snapshot, frameworks, rules);
  QuotaUse use(ledger, pods);
  const std::vector<Charged> shares = QuotaUse(use).AddGuaranteed(promised);
  Admission admission(std::move(use), std::move(charged), shares, ganged);
  std::vector<size_t> first = order;
  std::erase_if(first, [&](size_t i) { return last.contains(ganged.pods[i]->Key()); });
  std::vector<size_t> nominated = order;
  std::erase_if(nominated, [&](size_t i) { return ganged.pods[i]->nominated_node.empty(); });
  admission.AdmitNominated(std::move(promised));
  admission.AdmitAll(first, Admission::Round::kGuaranteedFirst);
  admission.CountBorrowing();
  admission.AdmitAll(nominated, Admission::Round::kAll);
  admission.AdmitAll(first, Admission::Round::kGuaranteed);
  admission.AdmitAll(order, Admission::Round::kAll);
  PlannedAdmission out;
  for (const auto& [i, refusal] : admission.refused()) {
    out.refused.emplace_back(ganged.pods[i], refusal);
  }
  out.first = admission.BeforeBorrowers();
  out.covered = admission.Covered();
  LeaveOut(admission.refused(), ganged);
  return out;
}

}  // namespace nos::controllers
