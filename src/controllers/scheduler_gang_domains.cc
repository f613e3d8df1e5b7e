// Gangs whose members have to be near members: who is placed first decides where the others may go,
// and some can go nowhere before others are there. They are tried for real, by the rules of all
// decisions, quotas and promises included, and taken back before anybody sees that.
#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "controllers/scheduler_internal.h"
#include "scheduling/diagnosis.h"
#include "scheduling/gang_domains.h"

namespace nos::controllers {
namespace {

using Domain = std::vector<size_t>;  // nodes, by index in the snapshot

// To try one costs as much as to decide on the gang.
constexpr int kMostDomains = 16;

// For how many pods that ask for this there seems to be room, up to `most`. Slices that nobody has
// cut yet are taken to be there.
int64_t RoomIn(const Domain& domain, const cluster::ClusterSnapshot& snapshot,
               const cluster::ResourceVector& requests, int64_t most) {
  int64_t room = 0;
  for (const size_t index : domain) {
    const cluster::NodeInfo& node = snapshot.node(index);
    if (node.node->unschedulable) continue;
    int64_t here = most;
    for (const auto& [id, amount] : requests.entries()) {
      if (amount <= 0 || cluster::IsCutOn(node, id)) continue;
      here = std::min(here, (node.allocatable.Get(id) - node.requested.Get(id)) / amount);
    }
    room += std::max<int64_t>(here, 0);
    if (room >= most) return most;
  }
  return room;
}

// Those first that promise most; of those that are alike, the larger.
std::vector<Domain> DomainsFor(const std::vector<std::shared_ptr<const cluster::Pod>>& members,
                               const cluster::Pod& one, const cluster::ClusterSnapshot& snapshot) {
  std::vector<const cluster::NodeInfo*> nodes;
  nodes.reserve(snapshot.size());
  for (size_t i = 0; i < snapshot.size(); ++i) nodes.push_back(&snapshot.node(i));
  const cluster::ResourceVector requests = cluster::RequestsOf(one);
  std::vector<std::pair<int64_t, Domain>> ranked;
  const auto most = static_cast<int64_t>(members.size());
  std::vector<Domain> all = scheduling::GangDomains(members, nodes);
  for (Domain& domain : all) {
    const int64_t room = RoomIn(domain, snapshot, requests, most);
    ranked.emplace_back(room, std::move(domain));
  }
  std::ranges::stable_sort(ranked, std::ranges::greater(), &std::pair<int64_t, Domain>::first);
  std::vector<Domain> domains;
  domains.reserve(ranked.size());
  for (auto& [room, domain] : ranked) domains.push_back(std::move(domain));
  return domains;
}

}  // namespace

void Scheduler::HeedNearness(const Gang& gang, GangTry& tried, Time now) {
  if (!scheduling::HaveToBeNear(gang.waiting)) return;
  const auto place = [&](const Pod& member, scheduling::Diagnosis& diagnosis) {
    return Place(member, diagnosis, now);
  };
  TryRefused(gang, place, tried);
  if (!IsEnough(gang, tried) && !tried.gave_up) TryDomains(gang, tried);
}

// As long as others find a node, near which they may have to be.
void Scheduler::TryRefused(const Gang& gang, Placer place, GangTry& tried) {
  for (size_t before = 0; tried.chosen.size() > before && !tried.refusals.empty();) {
    before = tried.chosen.size();
    std::vector<Pod> again;
    for (const auto& [member, diagnosis] : tried.refusals) again.push_back(member);
    tried.refusals.clear();
    TryEach(gang, again, place, tried);
  }
}

void Scheduler::TryDomains(const Gang& gang, GangTry& best) {
  const cluster::ClusterSnapshot& snapshot = engine_.snapshot();
  std::set<std::string> tied;  // keys
  Pod first;
  for (const Pod& member : gang.waiting) {
    if (!scheduling::IsTied(*member, gang.waiting)) continue;
    tied.insert(member->Key());
    if (first == nullptr) first = member;
  }
  std::optional<size_t> began;
  for (const std::string& key : best.chosen) {
    if (!began && tied.contains(key)) began = snapshot.IndexOf(bindings_.at(key).node);
  }
  TakeBackAll(best);
  Refusals others;
  int tries = 0;
  const std::vector<Domain> domains = DomainsFor(gang.waiting, *first, snapshot);
  for (const Domain& domain : domains) {
    if (began && std::ranges::binary_search(domain, *began)) continue;
    if (tries++ == kMostDomains) break;
    GangTry tried = TryIn(gang, domain, tied);
    if (IsEnough(gang, tried)) {
      best = std::move(tried);
      return;
    }
    TakeBackAll(tried);
    if (tried.chosen.size() > best.chosen.size()) std::swap(tried, best);
    std::ranges::move(tried.refusals, std::back_inserter(others));
  }
  std::ranges::move(others, std::back_inserter(best.refusals));  // what helps there wakes them, too
}

// The first of the tied ones that finds a node there decides for the others. When none does, nobody
// is placed.
Scheduler::GangTry Scheduler::TryIn(const Gang& gang, std::span<const size_t> domain,
                                    const std::set<std::string>& tied) {
  bool begun = false;
  const auto place = [&](const Pod& member, scheduling::Diagnosis& diagnosis) {
    const bool begins = !begun && tied.contains(member->Key());
    const std::span<const size_t> among = begins ? domain : std::span<const size_t>();
    const bool placed = PlaceAmong(member, among, diagnosis);
    begun = begun || (begins && placed);
    return placed;
  };
  GangTry tried;
  TryEach(gang, gang.waiting, place, tried);
  if (begun) {
    TryRefused(gang, place, tried);
  } else {
    TakeBackAll(tried);
    tried.chosen.clear();
  }
  return tried;
}

bool Scheduler::PlaceAmong(const Pod& pod, std::span<const size_t> among,
                           scheduling::Diagnosis& diagnosis) {
  const Framework& framework = *ProfileFor(*pod)->framework;
  scheduling::Decision decision = engine_.Schedule(framework, pod, among);
  if (decision.node == nullptr) {
    diagnosis = std::move(decision.diagnosis);
    return false;
  }
  const scheduling::Verdict reserved = Occupy(pod, framework, *decision.node);
  if (reserved.fits()) return true;
  TakeBack(pod->Key());
  scheduling::DiagnosisBuilder builder;
  builder.Refuse(reserved, static_cast<int>(engine_.snapshot().size()), nullptr);
  diagnosis = std::move(builder).Finish();
  return false;
}

}  // namespace nos::controllers
