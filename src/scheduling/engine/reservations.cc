// Nominations of the engine: which nominated pods go first, and what they leave of quotas.
#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

#include "scheduling/engine.h"
#include "scheduling/preemption.h"

namespace nos::scheduling {

using cluster::NodeInfo;

namespace {

bool IsSame(const cluster::Pod& a, const cluster::Pod& b) {
  return a.meta.name == b.meta.name && a.meta.ns == b.meta.ns;
}

bool IsOlder(const cluster::Pod& a, const cluster::Pod& b) {
  return std::tuple(a.meta.created, a.Key()) < std::tuple(b.meta.created, b.Key());
}

}  // namespace

void Engine::Nominate(const Pod& pod, const std::string& node, bool by_others) {
  const std::string key = pod->Key();
  if (const auto before = nominations_.find(key); before != nominations_.end()) {
    std::vector<Promise>& promises = nominated_[before->second];
    const auto promise = std::ranges::find(promises, key, &Promise::key);
    if (before->second == node && promise->pod->meta.uid == pod->meta.uid) {
      promise->pod = pod;
      promise->charge.reset();
      JudgeAnew(*pod);
      ++changes_;
      return;
    }
    JudgeAnew(*promise->pod);
    promises.erase(promise);
    if (promises.empty()) nominated_.erase(before->second);
    nominations_.erase(before);
    ++openings_;
    ++changes_;
  }
  if (node.empty()) return;
  ++changes_;
  nominations_[key] = node;
  // Restored from the API server: older than decisions of this process.
  const bool was_told = pod->nominated_node == node;
  const uint64_t number = was_told ? 0 : ++promises_made_;
  nominated_[node].push_back({pod, key, number, {}, QuotaStanding::kNone, by_others});
  JudgeAnew(*pod);
}

// Marks standings for recomputation. A pod without a quota affects no standing.
void Engine::JudgeAnew(const cluster::Pod& pod) {
  if (ledger_.balance().AccountOf(pod.meta.ns)) judged_ = false;
}

void Engine::ChargeAnew(std::string_view node) {
  const auto found = nominated_.find(node);
  if (found == nominated_.end()) return;
  for (Promise& promise : found->second) promise.charge.reset();
  judged_ = false;
}

std::map<size_t, quota::Amounts> Engine::Leaving(bool stuck) const {
  std::map<size_t, quota::Amounts> leaving;
  for (const std::string& key : leaving_) {
    const quota::Amounts* charge = ledger_.ChargeOf(key);
    const Placed* placed = FindPlaced(key);
    if (charge == nullptr || placed == nullptr) continue;
    const NodeInfo* node = snapshot_.Find(placed->node);
    if (!stuck && (node == nullptr || IsLost(*node->node))) continue;
    const auto account = ledger_.balance().AccountOf(placed->pod->meta.ns);
    if (account) leaving[*account].Add(*charge, -1);
  }
  return leaving;
}

// Recomputes the charges and standings of nominations. A nomination is guaranteed if min of its
// quota covers it in addition to running pods (without evicted ones) and to nominations of the same
// quota with higher priority, or equal priority and earlier nomination.
const Engine::PromisesByNode& Engine::Judged() const {
  if (std::exchange(judged_, true)) return nominated_;
  struct Judgement {
    Promise* promise;
    std::string_view node;
    size_t account;
  };
  std::vector<Judgement> all;
  for (auto& [node, promises] : nominated_) {
    for (Promise& promise : promises) {
      promise.standing = QuotaStanding::kNone;
      const auto account = ledger_.balance().AccountOf(promise.pod->meta.ns);
      if (account) all.push_back({&promise, node, *account});
    }
  }
  std::ranges::sort(all, {}, [](const Judgement& one) {
    const cluster::Pod& pod = *one.promise->pod;
    return std::tuple(-int64_t{pod.priority}, one.promise->number, pod.meta.created,
                      std::string_view(one.promise->key));
  });
  std::map<size_t, quota::Amounts> before = Leaving(false);  // by account
  for (const auto& [promise, node, account] : all) {
    if (!promise->charge) promise->charge = ChargeOn(*promise->pod, node);
    promise->standing = Judge(*promise->pod, account, *promise->charge, before[account]);
    if (!placed_.contains(promise->key)) before[account].Add(*promise->charge);
  }
  return nominated_;
}

std::string Engine::NomineeNode(const std::string& pod_key) const {
  const auto found = nominations_.find(pod_key);
  return found == nominations_.end() ? "" : found->second;
}

std::vector<Engine::Pod> Engine::Nominated(std::string_view node) const {
  std::vector<Pod> pods;
  if (const auto found = Judged().find(node); found != Judged().end()) {
    for (const Promise& promise : found->second) pods.push_back(promise.pod);
  }
  return pods;
}

std::vector<Engine::Pod> Engine::NominatedBehind(std::string_view node,
                                                 const cluster::Pod& pod) const {
  std::vector<Pod> behind;
  const auto found = Judged().find(node);
  if (found == Judged().end()) return behind;
  std::optional<quota::Amounts> before;
  const auto own = StandingOf(pod, node, before);
  for (const Promise& promise : found->second) {
    if (!IsSame(*promise.pod, pod) && !GoesFirst(promise, pod, own, false))
      behind.push_back(promise.pod);
  }
  return behind;
}

// Standing of a nominated pod as recorded; of any other pod as it would be on this node.
Engine::QuotaStanding Engine::StandingOf(const cluster::Pod& pod, std::string_view node,
                                         std::optional<quota::Amounts>& before) const {
  const auto found = nominations_.find(pod.Key());
  const bool as_promised = found != nominations_.end() &&
                           (node.empty() || node == found->second || !quota::DependsOnNode(pod));
  if (!as_promised) {
    if (!before) before = PromisedBefore(pod);
    const auto account = ledger_.balance().AccountOf(pod.meta.ns);
    return account ? Judge(pod, *account, ChargeOn(pod, node), *before) : QuotaStanding::kNone;
  }
  const std::vector<Promise>& promises = Judged().find(found->second)->second;
  const auto is_its = [&](const Promise& promise) { return IsSame(*promise.pod, pod); };
  return std::ranges::find_if(promises, is_its)->standing;
}

quota::Amounts Engine::ChargeOn(const cluster::Pod& pod, std::string_view node) const {
  const NodeInfo* info = snapshot_.Find(node);
  return quota::ChargeOf(pod, info == nullptr ? nullptr : info->node.get(), charge_rules_);
}

// Amount that min must cover before this pod, which has no nomination: nominations of the same
// quota with equal or higher priority, minus evicted pods.
quota::Amounts Engine::PromisedBefore(const cluster::Pod& pod) const {
  const auto account = ledger_.balance().AccountOf(pod.meta.ns);
  if (!account) return {};
  quota::Amounts before = Leaving(false)[*account];
  for (const auto& [node, promises] : Judged()) {
    for (const Promise& other : promises) {
      if (other.pod->priority < pod.priority) continue;
      if (IsSame(*other.pod, pod) || placed_.contains(other.key)) continue;
      if (ledger_.balance().AccountOf(other.pod->meta.ns) != account) continue;
      before.Add(*other.charge);
    }
  }
  return before;
}

Engine::QuotaStanding Engine::Judge(const cluster::Pod& pod, size_t account,
                                    const quota::Amounts& charge,
                                    const quota::Amounts& before) const {
  quota::Amounts besides = before;
  if (const quota::Amounts* counted = ledger_.ChargeOf(pod.Key())) besides.Add(*counted, -1);
  return ledger_.balance().IsGuaranteed(account, charge, besides) ? QuotaStanding::kGuaranteed
                                                                  : QuotaStanding::kCovered;
}

// Guaranteed nominations go first. A pod without a quota does not take capacity that was freed for
// a pod with one, as it may not evict such a pod either (quota/entitlement.h). Two pods nominated
// for the same node must not wait for each other, so age decides between equals.
bool Engine::GoesFirst(const Promise& other, const cluster::Pod& pod, QuotaStanding own,
                       bool is_promised) const {
  const bool guaranteed = other.standing == QuotaStanding::kGuaranteed;
  if (guaranteed != (own == QuotaStanding::kGuaranteed)) return guaranteed;
  if (own == QuotaStanding::kNone && other.standing != QuotaStanding::kNone) return true;
  // Priority does not count between quotas that borrow, as it does not count when shares are
  // reclaimed.
  const bool shares =
      own == QuotaStanding::kCovered && other.standing == own &&
      ledger_.balance().AccountOf(other.pod->meta.ns) != ledger_.balance().AccountOf(pod.meta.ns);
  if (!shares && other.pod->priority != pod.priority) return other.pod->priority > pod.priority;
  return !is_promised || IsOlder(*other.pod, pod);
}

std::vector<Engine::Pod> Engine::FirstOn(std::string_view node, const cluster::Pod& pod,
                                         std::optional<quota::Amounts>& before) const {
  std::vector<Pod> first;
  const auto found = Judged().find(node);
  if (found == Judged().end()) return first;
  const auto own = StandingOf(pod, node, before);
  const bool is_promised = NomineeNode(pod.Key()) == node;
  for (const Promise& promise : found->second) {
    const cluster::Pod& other = *promise.pod;
    if (IsSame(other, pod) || placed_.contains(promise.key)) continue;
    if (GoesFirst(promise, pod, own, is_promised)) first.push_back(promise.pod);
  }
  return first;
}

Promises Engine::PromisesFor(const cluster::Pod& pod, const std::set<std::string>& left_out) const {
  Promises promises;
  std::optional<quota::Amounts> before;
  for (const auto& [node, all] : Judged()) {
    std::vector<Pod> first = FirstOn(node, pod, before);
    std::erase_if(first, [&](const Pod& other) { return left_out.contains(other->Key()); });
    if (!first.empty()) promises.emplace(node, std::move(first));
  }
  return promises;
}

cluster::ClusterSnapshot Engine::WithPromises(const cluster::Pod& pod) const {
  cluster::ClusterSnapshot with = snapshot_;
  for (const auto& [node, others] : PromisesFor(pod)) {
    // Fails if the node does not exist.
    for (const Pod& other : others) (void)with.Bind(other, node);
  }
  return with;
}

// A nominated pod with equal priority also goes first, as in kube-scheduler's
// RunFilterPluginsWithNominatedPods.
std::optional<Barred> Engine::WhyKept(const Pod& pod, size_t node, KindTable& table,
                                      std::optional<quota::Amounts>& before) const {
  std::vector<Pod> first = FirstOn(snapshot_.node(node).node->meta.name, *pod, before);
  if (first.empty()) return std::nullopt;
  const KindTable::Beside& beside = table.AskBeside(node, std::move(first), snapshot_);
  if (beside.verdict.fits()) return std::nullopt;
  return Barred{beside.verdict, beside.by};
}

bool Engine::IsGuaranteed(const cluster::Pod& pod, std::string_view node) const {
  std::optional<quota::Amounts> before;
  return StandingOf(pod, node, before) == QuotaStanding::kGuaranteed;
}

quota::Balance Engine::BalanceToReclaim(const cluster::Pod& pod, std::set<std::string> left_out,
                                        FunctionRef<bool(const std::string&)> sees_to_it,
                                        std::string_view on) const {
  quota::Balance balance = BalanceFor(pod, left_out, on);
  const auto own = balance.AccountOf(pod.meta.ns);
  if (!own || !IsGuaranteed(pod, on)) return balance;
  const bool together = balance.IsGuaranteed(*own, ChargeOn(pod, on));
  for (const auto& [node, promises] : Judged()) {
    for (const Promise& other : promises) {
      const bool may_be = together || balance.AccountOf(other.pod->meta.ns) != own;
      if (may_be && other.standing == QuotaStanding::kGuaranteed && sees_to_it(other.key)) {
        left_out.insert(other.key);
      }
    }
  }
  return BalanceFor(pod, left_out, on);
}

// If two pods served by different schedulers count each other, the older one goes ahead, or neither
// would be scheduled.
quota::Balance Engine::BalanceFor(const cluster::Pod& pod, const std::set<std::string>& left_out,
                                  std::string_view on) const {
  quota::Balance balance = ledger_.balance();
  if (balance.size() == 0 || nominations_.empty()) return balance;
  const auto own = balance.AccountOf(pod.meta.ns);
  const bool own_is_guaranteed = IsGuaranteed(pod, on);
  for (const auto& [node, promises] : Judged()) {
    for (const Promise& other : promises) {
      const auto account = balance.AccountOf(other.pod->meta.ns);
      if (!account || IsSame(*other.pod, pod)) continue;
      if (left_out.contains(other.key) || placed_.contains(other.key)) continue;
      const bool guaranteed = other.standing == QuotaStanding::kGuaranteed;
      const bool alike = guaranteed == own_is_guaranteed &&
                         (account != own || other.pod->priority == pod.priority);
      if (alike && other.by_others && IsOlder(pod, *other.pod)) continue;
      const bool first =
          account == own ? other.pod->priority >= pod.priority : !own_is_guaranteed || guaranteed;
      if (first) balance.Add(*account, *other.charge);
    }
  }
  return balance;
}

void Engine::SetLeaving(const std::string& pod_key, bool leaves) {
  ++changes_;
  const bool changed = leaves ? leaving_.insert(pod_key).second : leaving_.erase(pod_key) > 0;
  if (changed) judged_ = false;
}

// Capacity freed in other quotas is held by the nominations it was freed for. Use in the pod's own
// quota is counted in full.
quota::Balance Engine::WithoutLeaving(quota::Balance balance, const cluster::Pod& pod) const {
  const auto own = balance.AccountOf(pod.meta.ns);
  for (const auto& [account, charges] : Leaving(true)) {
    if (account != own) balance.Add(account, charges);
  }
  return balance;
}

std::optional<quota::Refusal> Engine::WhyNotByQuota(const Framework& framework,
                                                    const cluster::Pod& pod,
                                                    const NodeInfo* node) const {
  const auto account = ledger_.balance().AccountOf(pod.meta.ns);
  if (framework.quotas() == nullptr || !account) return std::nullopt;
  const quota::Amounts charge =
      quota::ChargeOf(pod, node == nullptr ? nullptr : node->node.get(), charge_rules_);
  if (nominations_.empty() && leaving_.empty()) return ledger_.balance().WhyNot(*account, charge);
  const std::string_view on = node == nullptr ? "" : std::string_view(node->node->meta.name);
  const quota::Balance promised = BalanceFor(pod, {}, on);
  const quota::Balance settled = WithoutLeaving(ledger_.balance(), pod);
  return WithoutLeaving(promised, pod).WhyNot(*account, charge, &settled, &promised);
}

}  // namespace nos::scheduling
