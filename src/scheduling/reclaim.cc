#include "scheduling/reclaim.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace nos::scheduling {
namespace {

using cluster::ClusterSnapshot;
using quota::Amount;

constexpr size_t kMostScored = 100;  // of nodes that fit
// Far from all: those that are likely to be gentle come first.
constexpr PreemptionOptions kLooksAt{.min_candidate_percentage = 0, .min_candidates = 100};
constexpr int32_t kSystemPriority = 2'000'000'000;  // of system-cluster-critical

// How far the account is beyond what its min covers, for its size.
double ExcessOf(const quota::Balance& balance, std::optional<size_t> account,
                cluster::ResourceId resource) {
  if (!account) return 0;
  const Amount min = balance.terms(*account).min.Get(resource);
  const Amount excess = balance.used(*account).Get(resource) - min;
  const auto weight = static_cast<double>(balance.terms(*account).quota->weight);
  return static_cast<double>(excess) / ((static_cast<double>(min) + 1) * weight);
}

// Of what the refusal is about.
Amount LackOf(const quota::Refusal& refusal) { return std::max<Amount>(refusal.Lack(), 1); }

bool IsAsBad(const quota::Refusal& after, const quota::Refusal& before) {
  return after.kind == before.kind && after.quota == before.quota &&
         after.resource == before.resource && LackOf(after) >= LackOf(before);
}

// What a node lacks for a pod, of what can be told without its filters: cores, memory, places.
class Lacks {
 public:
  Lacks(const cluster::ResourceVector& asked, const cluster::NodeInfo& node) {
    for (const auto& [id, amount] : asked.entries()) {
      if (id > cluster::kPods || amount <= 0) continue;
      const Amount free = Amount{node.allocatable.Get(id)} - node.requested.Get(id);
      if (amount > free) lacks_.emplace_back(id, amount - free);
    }
  }
  void Lessen(const quota::Amounts& freed) {
    for (auto& [id, lack] : lacks_) lack -= freed.Get(id);
  }
  bool any() const {
    return std::ranges::any_of(lacks_, [](const auto& lack) { return lack.second > 0; });
  }

 private:
  std::vector<std::pair<cluster::ResourceId, Amount>> lacks_;
};

bool LessImportant(const cluster::Pod& a, const cluster::Pod& b) {
  return std::tuple(a.priority, b.meta.created, b.Key()) <
         std::tuple(b.priority, a.meta.created, a.Key());
}

}  // namespace

bool IsSystemPod(const cluster::Pod& pod) {
  const auto comes_back = [](const cluster::OwnerReference& owner) {
    return owner.kind == "DaemonSet" || owner.kind == "Node";
  };
  return pod.meta.ns == "kube-system" || pod.priority >= kSystemPriority ||
         std::ranges::any_of(pod.meta.owners, comes_back);
}

Reclaim::Reclaim(quota::Ledger& ledger, quota::Balance balance, const QuotaOptions& options,
                 UnitOfPod unit_of)
    : ledger_(ledger),
      balance_(std::move(balance)),
      options_(options),
      unit_of_(std::move(unit_of)) {}

void Reclaim::CountGone(const std::vector<Pod>& pods) {
  for (const Pod& pod : pods) {
    const quota::Amounts* charge = ledger_.ChargeOf(pod->Key());
    const auto account = balance_.AccountOf(pod->meta.ns);
    if (charge == nullptr || !gone_.emplace(pod->Key(), pod).second || !account) continue;
    balance_.Add(*account, *charge, -1);
  }
}

void Reclaim::Carry(const Preemption& found, const ClusterSnapshot& snapshot, const Pod& pod) {
  CountGone(found.victims);
  const cluster::NodeInfo* node = snapshot.Find(found.node);
  if (const auto account = balance_.AccountOf(pod->meta.ns)) {
    balance_.Add(*account, quota::ChargeOf(*pod, node == nullptr ? nullptr : node->node.get(),
                                           options_.charges));
  }
}

// Of the first that fit the best.
const cluster::NodeInfo* Reclaim::NodeThatFits(const Framework& framework,
                                               const ClusterSnapshot& snapshot,
                                               std::string_view preferred) const {
  const Cycle cycle = framework.PreFilter(*pod_, snapshot);
  if (!cycle.verdict.fits()) return nullptr;
  const auto fits = [&](const cluster::NodeInfo& node) {
    return FilterBeside(framework, snapshot, cycle, *pod_, node, promises_).fits();
  };
  const cluster::NodeInfo* node = snapshot.Find(preferred);
  if (node != nullptr && fits(*node)) return node;
  std::vector<const cluster::NodeInfo*> nodes;
  for (size_t i = 0; i < snapshot.size() && nodes.size() < kMostScored; ++i) {
    if (fits(snapshot.node(i))) nodes.push_back(&snapshot.node(i));
  }
  if (nodes.empty()) return nullptr;
  const std::vector<int64_t> scores = framework.Score(cycle, *pod_, snapshot, nodes);
  return nodes[static_cast<size_t>(std::ranges::max_element(scores) - scores.begin())];
}

std::optional<Preemption> Reclaim::Find(const Framework& framework, const ClusterSnapshot& snapshot,
                                        const Pod& pod, std::string_view preferred) {
  pod_ = pod;
  groups_.clear();
  quota::Holding claimant{balance_.AccountOf(pod->meta.ns),
                          quota::ChargeOf(*pod, nullptr, options_.charges), pod->priority};
  claim_ = std::make_unique<quota::Claim>(balance_, std::move(claimant), options_.reclaim);
  const cluster::NodeInfo* fits = NodeThatFits(framework, snapshot, preferred);
  if (fits != nullptr) LookAt(*fits);
  if (fits != nullptr && LetsIn()) return Preemption{fits->node->meta.name, {}, 0};
  Budgets budgets(snapshot.around());
  Collect(budgets);
  if (fits == nullptr) return WithoutRoom(framework, snapshot);
  const auto units = More(budgets);
  if (!units) return std::nullopt;
  Preemption found{fits->node->meta.name, {}, 0};
  for (const EvictionUnit& unit : *units) {
    for (const Pod& victim : unit) {
      found.violations += budgets.Take(*victim) ? 1 : 0;
      found.victims.push_back(victim);
    }
  }
  return found;
}

std::optional<Preemption> Reclaim::WithoutRoom(const Framework& framework,
                                               const ClusterSnapshot& snapshot) {
  if (!LetsIn()) {  // if not even all of them were enough, no node need be asked
    const auto taken = TakeUntilLetIn();
    if (!taken && !quota::DependsOnNode(*pod_)) return std::nullopt;
    if (taken) {
      for (const EvictionUnit& unit : *taken) Count(unit, false);
    }
  }
  return FindPreemption(framework, snapshot, *pod_, kLooksAt, this, promises_);
}

void Reclaim::LookAt(const cluster::NodeInfo& node) {
  if (!quota::DependsOnNode(*pod_)) return;
  claim_->SetCharge(quota::ChargeOf(*pod_, node.node.get(), options_.charges));
}

quota::Holding Reclaim::HoldingOf(const EvictionUnit& unit) const {
  quota::Holding holding;
  holding.account = balance_.AccountOf(unit.front()->meta.ns);
  holding.priority = unit.front()->priority;
  for (const Pod& pod : unit) {
    const std::string key = pod->Key();
    if (const quota::Amounts* charge = ledger_.ChargeOf(key)) holding.charge.Add(*charge);
    holding.priority = std::max(holding.priority, pod->priority);
    holding.over_quota = holding.over_quota || ledger_.IsOverQuota(key);
    holding.is_system = holding.is_system || IsSystemPod(*pod);
  }
  return holding;
}

bool Reclaim::IsGone(const EvictionUnit& unit) const {
  return std::ranges::any_of(unit, [&](const Pod& pod) {
    return pod->meta.deleted || gone_.contains(pod->Key()) || spared_.contains(pod->Key()) ||
           pod->Key() == pod_->Key();
  });
}

bool Reclaim::MayGo(const EvictionUnit& unit) const {
  return !IsGone(unit) && claim_->MayTake(HoldingOf(unit));
}

void Reclaim::Count(const EvictionUnit& unit, bool gone) {
  gone ? claim_->Take(HoldingOf(unit)) : claim_->GiveBack(HoldingOf(unit));
  for (const Pod& pod : unit)
    gone ? void(gone_.emplace(pod->Key(), pod)) : void(gone_.erase(pod->Key()));
}

bool Reclaim::HasExcess(size_t account) const {
  const quota::Amounts& min = balance_.terms(account).min;
  return std::ranges::any_of(balance_.used(account).entries(), [&](const auto& used) {
    const auto own = min.Named(used.first);
    return own && used.second > *own;
  });
}

void Reclaim::Collect(const Budgets& budgets) {
  const auto own = balance_.AccountOf(pod_->meta.ns);
  for (size_t account = 0; account < balance_.size(); ++account) {
    if (account == own || HasExcess(account)) CollectOf(account, budgets);
  }
}

void Reclaim::CollectOf(size_t account, const Budgets& budgets) {
  const quota::Ledger::Standing& standing = ledger_.StandingOf(account);
  const bool own = account == balance_.AccountOf(pod_->meta.ns);
  const size_t first = groups_.size();
  for (size_t i = own ? 0 : standing.in_quota; i < standing.pods.size(); ++i) {
    const Pod& pod = standing.pods[i];
    if (own && pod->priority >= pod_->priority) continue;
    const Group key{account, budgets.Guards(*pod), pod->priority, standing.charges[i]};
    auto group = std::find_if(
        groups_.begin() + static_cast<std::ptrdiff_t>(first), groups_.end(), [&](const Group& g) {
          return g.guarded == key.guarded && g.priority == key.priority && *g.charge == *key.charge;
        });
    if (group == groups_.end()) group = groups_.insert(groups_.end(), key);
    group->pods.push_back(pod);
  }
}

// The next of the group that is still there. False: there is none.
bool Reclaim::Advance(Head& head) const {
  for (; head.left > 0; --head.left) {
    head.unit = unit_of_(head.group->pods[head.left - 1]);
    if (IsGone(head.unit)) continue;
    head.holding = HoldingOf(head.unit);
    return true;
  }
  return false;
}

std::vector<Reclaim::Head> Reclaim::Heads() const {
  std::vector<Head> heads;
  for (const Group& group : groups_) {
    Head head{&group, group.pods.size()};
    if (Advance(head)) heads.push_back(std::move(head));
  }
  return heads;
}

std::optional<std::vector<EvictionUnit>> Reclaim::More(Budgets&) {
  auto taken = TakeUntilLetIn();
  if (!taken) return std::nullopt;
  std::ranges::sort(*taken, [](const EvictionUnit& a, const EvictionUnit& b) {
    return LessImportant(*b.front(), *a.front());
  });
  std::vector<EvictionUnit> needed;
  for (EvictionUnit& unit : *taken) {  // the most important first
    Count(unit, false);
    if (LetsIn()) continue;
    Count(unit, true);
    needed.push_back(std::move(unit));
  }
  for (const EvictionUnit& unit : needed) Count(unit, false);
  return needed;
}

// Those that are taken stay counted; none if all of them are not enough. Those come first that no
// budget guards, then those that are worth the most of what lacks, then those of who borrows the
// most for its size.
std::optional<std::vector<EvictionUnit>> Reclaim::TakeUntilLetIn() {
  std::vector<EvictionUnit> taken;
  std::vector<Head> heads = Heads();
  std::set<const Group*> useless;  // to what lacks now
  while (const auto refusal = claim_->WhyNot()) {
    const auto worth = [&](const Head& head) {
      return std::tuple(!head.group->guarded,
                        std::min(head.holding.charge.Get(refusal->resource), LackOf(*refusal)),
                        ExcessOf(claim_->balance(), head.holding.account, refusal->resource));
    };
    const auto may_help = [&](const Head& head) {
      return !useless.contains(head.group) && head.holding.charge.Get(refusal->resource) > 0 &&
             claim_->MayTake(head.holding);
    };
    const auto is_better = [&](const Head& a, const Head& b) {
      const auto left = worth(a), right = worth(b);
      return left != right ? right < left : LessImportant(*a.unit.front(), *b.unit.front());
    };
    Head* best = nullptr;
    for (Head& head : heads) {
      if (may_help(head) && (best == nullptr || is_better(head, *best))) best = &head;
    }
    if (best == nullptr) {
      for (const EvictionUnit& unit : taken) Count(unit, false);
      return std::nullopt;
    }
    Count(best->unit, true);
    if (const auto still = claim_->WhyNot(); still && IsAsBad(*still, *refusal)) {
      Count(best->unit, false);
      useless.insert(best->group);
      continue;
    }
    taken.push_back(best->unit);
    std::erase_if(heads, [&](Head& head) { return IsGone(head.unit) && !Advance(head); });
    useless.clear();
  }
  return taken;
}

// Nodes that have room if all go that may, as far as that is soon told; those with the least
// important of them first.
std::optional<std::vector<size_t>> Reclaim::Order(const ClusterSnapshot& snapshot) const {
  const Charges may_go = ChargesOfThoseThatMayGo();
  const bool any = options_.reclaim.from_pods_without_quota;
  const cluster::ResourceVector asked = cluster::RequestsOf(*pod_);
  std::vector<std::pair<const cluster::Pod*, size_t>> nodes;
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const cluster::NodeInfo& node = snapshot.node(i);
    Lacks lacks(asked, node);
    const cluster::Pod* least = nullptr;
    for (const Pod& pod : node.pods) {
      const auto found = may_go.find(pod.get());
      const quota::Amounts* charge = found != may_go.end() ? found->second : nullptr;
      if (charge == nullptr && any && !balance_.AccountOf(pod->meta.ns)) {
        charge = ledger_.ChargeOf(pod->Key());
      }
      if (charge == nullptr) continue;
      lacks.Lessen(*charge);
      if (least == nullptr || LessImportant(*pod, *least)) least = pod.get();
    }
    if (least != nullptr && !lacks.any()) nodes.emplace_back(least, i);
  }
  std::ranges::sort(nodes,
                    [](const auto& a, const auto& b) { return LessImportant(*a.first, *b.first); });
  std::vector<size_t> order;
  order.reserve(nodes.size());
  for (const auto& [pod, node] : nodes) order.push_back(node);
  return order;
}

// With those of their gangs.
Reclaim::Charges Reclaim::ChargesOfThoseThatMayGo() const {
  Charges may_go;
  for (const Group& group : groups_) {
    for (const Pod& pod : group.pods) {
      may_go[pod.get()] = group.charge;
      const EvictionUnit unit = unit_of_(pod);
      if (unit.size() == 1) continue;
      for (const Pod& member : unit) may_go[member.get()] = ledger_.ChargeOf(member->Key());
    }
  }
  return may_go;
}

}  // namespace nos::scheduling
