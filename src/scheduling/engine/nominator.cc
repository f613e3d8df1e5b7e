#include "scheduling/engine/nominator.h"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "scheduling/claim_charges.h"
#include "scheduling/engine/pod_order.h"

namespace nos::scheduling {

Nominator::Effect Nominator::Set(const Pod& pod, const std::string& node, bool by_others) {
  const std::string key = pod->Key();
  bool frees = false;
  if (const auto before = nodes_.find(key); before != nodes_.end()) {
    std::vector<Nomination>& nominations = by_node_[before->second];
    const auto nomination = std::ranges::find(nominations, key, &Nomination::key);
    if (before->second == node && nomination->pod->meta.uid == pod->meta.uid) {
      nomination->pod = pod;
      nomination->charge.reset();
      Outdate(*pod);
      return Effect::kTakes;
    }
    Outdate(*nomination->pod);
    nominations.erase(nomination);
    if (nominations.empty()) by_node_.erase(before->second);
    nodes_.erase(before);
    frees = true;
  }
  if (node.empty()) return frees ? Effect::kFrees : Effect::kNone;
  nodes_[key] = node;
  // Restored from the API server: older than decisions of this process.
  const bool restored = pod->nominated_node == node;
  const uint64_t number = restored ? 0 : ++made_;
  by_node_[node].push_back({pod, key, number, {}, QuotaStanding::kNone, by_others});
  Outdate(*pod);
  return frees ? Effect::kFrees : Effect::kTakes;
}

// Marks standings for recomputation. A pod without a quota affects no standing.
void Nominator::Outdate(const cluster::Pod& pod) {
  if (charges_.HasQuota(pod)) outdated_ = true;
}

void Nominator::OnChargesChange(std::string_view node) {
  const auto found = by_node_.find(node);
  if (found == by_node_.end()) return;
  for (Nomination& nomination : found->second) nomination.charge.reset();
  outdated_ = true;
}

// Recomputes the charges and standings of nominations. A nomination is guaranteed if min of its
// quota covers it in addition to running pods (without evicted ones) and to nominations of the same
// quota with higher priority, or equal priority and earlier nomination.
const Nominator::ByNode& Nominator::Standings() const {
  const bool current = !outdated_ && standings_version_ == charges_.version();
  if (current) return by_node_;
  outdated_ = false;
  standings_version_ = charges_.version();
  struct QuotaNomination {
    Nomination* nomination;
    std::string_view node;
    size_t account;
  };
  std::vector<QuotaNomination> all;
  for (auto& [node, nominations] : by_node_) {
    for (Nomination& nomination : nominations) {
      nomination.standing = QuotaStanding::kNone;
      const auto account = charges_.ledger().balance().AccountOf(nomination.pod->meta.ns);
      if (account) all.push_back({&nomination, node, *account});
    }
  }
  std::ranges::sort(all, {}, [](const QuotaNomination& one) {
    const cluster::Pod& pod = *one.nomination->pod;
    return std::tuple(-int64_t{pod.priority}, one.nomination->number, pod.meta.created,
                      std::string_view(one.nomination->key));
  });
  std::map<size_t, quota::Amounts> before = evicted_.Charges(false);  // by account
  std::set<std::string> counted;                                      // claims in `before`
  for (const auto& [nomination, node, account] : all) {
    // Another pod may be charged for a claim from now on, or no longer.
    const bool may_share = !nomination->pod->claims.empty();
    if (!nomination->charge || may_share) nomination->charge = ChargeOn(*nomination->pod, node);
    const bool waits = cache_.FindPlaced(nomination->key) == nullptr;
    std::set<std::string> others = counted;
    const quota::Amounts more = nomination->charge->TakeNew(waits ? counted : others);
    // Claims of nominations before this one are part of its own charge, and count once.
    const quota::Amounts charge = nomination->charge->Total();
    quota::Amounts besides = before[account];
    besides.Add(charge, -1);
    besides.Add(more);
    nomination->standing = StandingOf(*nomination->pod, account, charge, besides);
    if (waits) before[account].Add(more);
  }
  return by_node_;
}

std::string Nominator::NodeOf(const std::string& pod_key) const {
  const std::string* node = FindNodeOf(pod_key);
  return node == nullptr ? "" : *node;
}

const std::string* Nominator::FindNodeOf(const std::string& pod_key) const {
  const auto found = nodes_.find(pod_key);
  return found == nodes_.end() ? nullptr : &found->second;
}

std::vector<Nominator::Pod> Nominator::On(std::string_view node) const {
  std::vector<Pod> pods;
  if (const auto found = Standings().find(node); found != Standings().end()) {
    for (const Nomination& nomination : found->second) pods.push_back(nomination.pod);
  }
  return pods;
}

std::vector<Nominator::Pod> Nominator::Behind(std::string_view node,
                                              const cluster::Pod& pod) const {
  std::vector<Pod> behind;
  const auto found = Standings().find(node);
  if (found == Standings().end()) return behind;
  std::optional<quota::Amounts> before;
  const auto own = StandingOf(pod, node, before);
  for (const Nomination& nomination : found->second) {
    if (!IsSame(*nomination.pod, pod) && !GoesFirst(nomination, pod, own, false))
      behind.push_back(nomination.pod);
  }
  return behind;
}

// Standing of a nominated pod as recorded; of any other pod as it would be on this node.
Nominator::QuotaStanding Nominator::StandingOf(const cluster::Pod& pod, std::string_view node,
                                               std::optional<quota::Amounts>& before) const {
  const auto found = nodes_.find(pod.Key());
  const bool as_nominated = found != nodes_.end() &&
                            (node.empty() || node == found->second || !quota::DependsOnNode(pod));
  if (!as_nominated) {
    if (!before) before = NominatedBefore(pod);
    const auto account = charges_.ledger().balance().AccountOf(pod.meta.ns);
    return account
               ? StandingOf(pod, *account, charges_.Of(pod, cache_.snapshot().Find(node)), *before)
               : QuotaStanding::kNone;
  }
  const std::vector<Nomination>& nominations = Standings().find(found->second)->second;
  const auto is_its = [&](const Nomination& nomination) { return IsSame(*nomination.pod, pod); };
  return std::ranges::find_if(nominations, is_its)->standing;
}

quota::ChargeParts Nominator::ChargeOn(const cluster::Pod& pod, std::string_view node) const {
  return charges_.PartsOf(pod, cache_.snapshot().Find(node));
}

// Amount that min must cover before this pod, which has no nomination: nominations of the same
// quota with equal or higher priority, minus evicted pods. Claims of the pod itself do not count.
quota::Amounts Nominator::NominatedBefore(const cluster::Pod& pod) const {
  const auto account = charges_.ledger().balance().AccountOf(pod.meta.ns);
  if (!account) return {};
  quota::Amounts before = evicted_.Charges(false)[*account];
  std::set<std::string> counted = ChargedClaimsOf(pod);
  for (const auto& [node, nominations] : Standings()) {
    for (const Nomination& other : nominations) {
      if (other.pod->priority < pod.priority) continue;
      if (IsSame(*other.pod, pod) || cache_.FindPlaced(other.key) != nullptr) continue;
      if (charges_.ledger().balance().AccountOf(other.pod->meta.ns) != account) continue;
      const auto& charge = other.charge;
      if (charge) before.Add(charge->TakeNew(counted));
    }
  }
  return before;
}

Nominator::QuotaStanding Nominator::StandingOf(const cluster::Pod& pod, size_t account,
                                               const quota::Amounts& charge,
                                               const quota::Amounts& before) const {
  quota::Amounts besides = before;
  besides.Add(charges_.ledger().FreedBy(pod.Key(), [](const std::string&) { return false; }), -1);
  return charges_.ledger().balance().IsGuaranteed(account, charge, besides)
             ? QuotaStanding::kGuaranteed
             : QuotaStanding::kCovered;
}

// Guaranteed nominations go first. A pod without a quota does not take capacity that was freed for
// a pod with one, as it may not evict such a pod either (quota/entitlement.h). Two pods nominated
// for the same node must not wait for each other, so age decides between equals.
bool Nominator::GoesFirst(const Nomination& other, const cluster::Pod& pod, QuotaStanding own,
                          bool is_nominated) const {
  const bool guaranteed = other.standing == QuotaStanding::kGuaranteed;
  if (guaranteed != (own == QuotaStanding::kGuaranteed)) return guaranteed;
  if (own == QuotaStanding::kNone && other.standing != QuotaStanding::kNone) return true;
  // Priority does not count between quotas that borrow, as it does not count when shares are
  // reclaimed.
  const bool shares = own == QuotaStanding::kCovered && other.standing == own &&
                      charges_.ledger().balance().AccountOf(other.pod->meta.ns) !=
                          charges_.ledger().balance().AccountOf(pod.meta.ns);
  if (!shares && other.pod->priority != pod.priority) return other.pod->priority > pod.priority;
  return !is_nominated || IsOlder(*other.pod, pod);
}

std::vector<Nominator::Pod> Nominator::FirstOn(std::string_view node, const cluster::Pod& pod,
                                               std::optional<quota::Amounts>& before) const {
  std::vector<Pod> first;
  const auto found = Standings().find(node);
  if (found == Standings().end()) return first;
  const auto own = StandingOf(pod, node, before);
  const std::string* own_node = FindNodeOf(pod.Key());
  const bool is_nominated = own_node != nullptr && *own_node == node;
  std::vector<const Nomination*> nominations;
  for (const Nomination& nomination : found->second) {
    const cluster::Pod& other = *nomination.pod;
    if (IsSame(other, pod) || cache_.FindPlaced(nomination.key) != nullptr) continue;
    if (GoesFirst(nomination, pod, own, is_nominated)) nominations.push_back(&nomination);
  }
  // Otherwise a borrower would count with instances that a guaranteed pod is to get, and nothing
  // would be held for the latter.
  std::ranges::stable_sort(nominations, {}, [](const Nomination* nomination) {
    return std::pair(-static_cast<int>(nomination->standing), -int64_t{nomination->pod->priority});
  });
  first.reserve(nominations.size());
  for (const Nomination* nomination : nominations) first.push_back(nomination->pod);
  return first;
}

Promises Nominator::AllFirst(const cluster::Pod& pod, const std::set<std::string>& left_out) const {
  Promises nominations;
  std::optional<quota::Amounts> before;
  for (const auto& [node, all] : Standings()) {
    std::vector<Pod> first = FirstOn(node, pod, before);
    std::erase_if(first, [&](const Pod& other) { return left_out.contains(other->Key()); });
    if (!first.empty()) nominations.emplace(node, std::move(first));
  }
  return nominations;
}

bool Nominator::IsGuaranteed(const cluster::Pod& pod, std::string_view node) const {
  std::optional<quota::Amounts> before;
  return StandingOf(pod, node, before) == QuotaStanding::kGuaranteed;
}

}  // namespace nos::scheduling
