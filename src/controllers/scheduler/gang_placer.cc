#include "controllers/scheduler/gang_placer.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "dra/device_index.h"
#include "scheduling/diagnosis.h"
#include "scheduling/plugins/dynamic_resources/plugin.h"
#include "scheduling/pod_kind.h"
#include "scheduling/reasons.h"

namespace nos::controllers {

namespace {

// Decisions on members of a gang in other orders.
constexpr size_t kMaxOrderAsks = 256;

size_t AtLeast(const GangSize& size) { return static_cast<size_t>(std::max(size.least, 1)); }

// The members that were refused for want of devices, and that the best attempt has not placed.
std::set<GangPlacer::Pod> RefusedForDevices(const GangPlacer::Placement& tried) {
  std::set<GangPlacer::Pod> refused;
  for (const auto& [member, diagnosis] : tried.refusals) {
    const bool placed = std::ranges::count(tried.chosen, member->Key()) > 0;
    const bool devices = std::ranges::any_of(
        diagnosis.by, [](const scheduling::Plugin* plugin) { return plugin->ChoosesDevices(); });
    if (!placed && devices) refused.insert(member);
  }
  return refused;
}

}  // namespace

struct GangPlacer::DomainTries {
  std::set<std::string> tied;  // keys
  // By key of a member; members of one kind get the same decision. Nominated pods are left out.
  std::map<std::string, std::string> kinds;
  size_t asks_left;  // number of decisions; at 0 no further domain is tried
};

GangPlacer::GangPlacer(scheduling::Engine& engine, scheduling::SchedulingQueue& queue,
                       const Gangs& gangs, BindingCycle& bindings, PodPlacer& pods,
                       const Profiles& profiles, Nominations& nominations, Preemptor& preemptor,
                       StatusReporter& status, SchedulerMetrics& metrics)
    : engine_(engine),
      queue_(queue),
      gangs_(gangs),
      bindings_(bindings),
      pods_(pods),
      profiles_(profiles),
      nominations_(nominations),
      preemptor_(preemptor),
      status_(status),
      metrics_(metrics) {}

std::optional<GangPlacer::Placement> GangPlacer::Place(const Pod& pod, kube::Client& client,
                                                       Time now) {
  const std::string gang = GangOf(*pod);
  const auto context = engine_.snapshot().ShareContext();
  if (gang.empty() || context == nullptr) return std::nullopt;
  const GangSize size = SizeOfGang(*pod, *context);
  if (size.problem.empty() && size.least <= 1) return std::nullopt;
  size_t placed = 0;
  std::vector<Pod> waiting;
  for (const Pod& member : gangs_.Of(gang)) {
    const std::string key = member->Key();
    if (IsPlacedInGang(*member) || bindings_.Find(key) != nullptr) {
      ++placed;
    } else if (const auto taken = queue_.TakeThis(key)) {
      waiting.push_back(*taken);
    }
  }
  const size_t there = placed + waiting.size();
  if (size.problem.empty() && there >= AtLeast(size)) {
    return PlaceGang({gang, AtLeast(size), placed, std::move(waiting)}, client, now);
  }
  const std::string why = size.problem.empty()
                              ? scheduling::GangIncomplete(gang, there, AtLeast(size)).message
                              : fmt::format("{}: {}", gang, size.problem);
  Sleep(waiting, {&gang_scheduling_}, now);
  nominations_.Withdraw(waiting, client, now);
  GiveBackDevices(waiting, client, now);
  ReportRefusal(waiting, why, now);
  return Placement();
}

GangPlacer::Placement GangPlacer::PlaceGang(const PendingGang& gang, kube::Client& client,
                                            Time now) {
  Placement tried;
  const auto place = [&](const Pod& member, scheduling::Diagnosis& diagnosis) {
    metrics_.Begin(*member);
    return pods_.Place(member, diagnosis, now);
  };
  TryEach(gang, gang.waiting, place, tried);
  if (!tried.refusals.empty()) TryFurther(gang, tried, now);
  if (IsEnough(gang, tried)) return tried;
  Abandon(tried);
  RefuseGang(gang, gang.placed + tried.chosen.size(), tried.refusals, client, now);
  return {};
}

void GangPlacer::TryEach(const PendingGang& gang, const std::vector<Pod>& members, PlaceOne place,
                         Placement& tried) {
  for (const Pod& member : members) TryOne(gang, member, place, tried);
}

void GangPlacer::TryOne(const PendingGang& gang, const Pod& member, PlaceOne place,
                        Placement& tried) {
  scheduling::Diagnosis diagnosis;
  if (!place(member, diagnosis)) {
    tried.refusals.emplace_back(member, std::move(diagnosis));
    return;
  }
  if (bindings_.Find(member->Key()) == nullptr) {
    tried.gave_up = true;
    return;
  }
  bindings_.JoinGang(member->Key(), gang.name, gang.least);
  tried.chosen.push_back(member->Key());
}

void GangPlacer::Abandon(const Placement& tried) {
  for (auto key = tried.chosen.rbegin(); key != tried.chosen.rend(); ++key) bindings_.Abandon(*key);
}

void GangPlacer::TryFurther(const PendingGang& gang, Placement& tried, Time now) {
  const auto place = [&](const Pod& member, scheduling::Diagnosis& diagnosis) {
    return pods_.Place(member, diagnosis, now);
  };
  TryRefused(gang, place, tried);
  if (IsEnough(gang, tried) || tried.gave_up) return;
  const scheduling::GangTies ties(gang.waiting);
  if (ties.near()) TryDomains(gang, ties, tried);
  if (!IsEnough(gang, tried) && !tried.gave_up) TryAlternatives(gang, place, tried);
  if (!IsEnough(gang, tried) && !tried.gave_up) TryOrders(gang, place, tried);
}

void GangPlacer::TryAlternatives(const PendingGang& gang, PlaceOne place, Placement& best) {
  const std::shared_ptr<dra::DeviceIndex> devices = engine_.snapshot().context().devices;
  if (devices == nullptr) return;
  size_t alternatives = 1;
  for (const Pod& member : gang.waiting) {
    alternatives =
        std::max(alternatives, scheduling::AlternativesOf(*member, engine_.snapshot().context()));
  }
  scheduling::GangRefusals others;
  for (size_t first = 1; first < alternatives; ++first) {
    devices->SetFirstAlternative(first);
    Placement tried = TryInstead(gang, gang.waiting, place, best);
    devices->SetFirstAlternative(0);
    if (KeepBetter(gang, std::move(tried), best, others)) return;
  }
  std::ranges::move(others, std::back_inserter(best.refusals));  // as in TryDomains
}

// Each round begins with the members that found no devices in the last one.
void GangPlacer::TryOrders(const PendingGang& gang, PlaceOne place, Placement& best) {
  std::vector<Pod> order = gang.waiting;
  std::set<std::vector<Pod>> known{order};
  scheduling::GangRefusals others;
  size_t asks_left = kMaxOrderAsks;
  for (std::set<Pod> refused = RefusedForDevices(best); !refused.empty();) {
    std::ranges::stable_partition(order, [&](const Pod& pod) { return refused.contains(pod); });
    if (!known.insert(order).second || asks_left < order.size()) break;
    asks_left -= order.size();
    Placement tried = TryInstead(gang, order, place, best);
    refused = RefusedForDevices(tried);
    if (KeepBetter(gang, std::move(tried), best, others)) return;
  }
  std::ranges::move(others, std::back_inserter(best.refusals));  // as in TryDomains
}

GangPlacer::Placement GangPlacer::TryInstead(const PendingGang& gang,
                                             const std::vector<Pod>& members, PlaceOne place,
                                             const Placement& best) {
  Abandon(best);
  Placement tried;
  TryEach(gang, members, place, tried);
  if (!tried.refusals.empty()) TryRefused(gang, place, tried);
  return tried;
}

bool GangPlacer::KeepBetter(const PendingGang& gang, Placement tried, Placement& best,
                            scheduling::GangRefusals& others) {
  if (IsEnough(gang, tried) || tried.gave_up) {
    best = std::move(tried);
    return true;
  }
  Abandon(tried);
  if (tried.chosen.size() > best.chosen.size()) std::swap(tried, best);
  std::ranges::move(tried.refusals, std::back_inserter(others));
  return false;
}

// Repeats while other members find a node, because each of them may allow another to follow.
void GangPlacer::TryRefused(const PendingGang& gang, PlaceOne place, Placement& tried) {
  for (size_t before = 0; tried.chosen.size() > before;) {
    before = tried.chosen.size();
    TryEach(gang, scheduling::TakeFollowers(tried.refusals), place, tried);
  }
}

void GangPlacer::TryDomains(const PendingGang& gang, const scheduling::GangTies& ties,
                            Placement& best) {
  // 1. Prepare: tied members, kinds, and the domain that the first attempt has used already.
  const cluster::ClusterSnapshot& snapshot = engine_.snapshot();
  DomainTries tries{{}, {}, 2 * gang.waiting.size() + 256};
  for (size_t m = 0; m < gang.waiting.size(); ++m) {
    const cluster::Pod& member = *gang.waiting[m];
    const std::string key = member.Key();
    if (ties.IsTied(m)) tries.tied.insert(key);
    if (!engine_.NomineeNode(key).empty()) continue;
    tries.kinds.emplace(key, member.scheduler_name + " " + scheduling::KindOf(member));
  }
  std::optional<size_t> began;
  for (const std::string& key : best.chosen) {
    if (!began && tries.tied.contains(key)) began = snapshot.IndexOf(bindings_.Find(key)->node);
  }

  // 2. Try the other domains. Each attempt starts from the same state, so the previous one is
  //    released first.
  Abandon(best);
  const scheduling::GangStarts starts =
      scheduling::StartsOf(gang.waiting, ties, snapshot,
                           [&](const cluster::Pod& member) -> const scheduling::Framework& {
                             return *profiles_.Of(member).framework;
                           });
  scheduling::GangRefusals others;
  int begun = 0;
  for (const std::vector<size_t>& domain : starts.domains) {
    if (began && std::ranges::binary_search(domain, *began)) continue;
    if (begun == scheduling::kMaxGangStarts || tries.asks_left == 0) break;
    Placement tried = TryIn(gang, domain, tries);
    if (IsEnough(gang, tried)) {
      best = std::move(tried);
      return;
    }
    Abandon(tried);
    if (tried.begun) {
      ++begun;
    } else {
      tried.chosen.clear();
    }
    if (tried.chosen.size() > best.chosen.size()) std::swap(tried, best);
    std::ranges::move(tried.refusals, std::back_inserter(others));
  }

  // 3. Without success, keep all refusals: an event that helps in another domain must wake the
  //    members, too.
  std::ranges::move(others, std::back_inserter(best.refusals));
  if (starts.by.empty()) return;
  scheduling::Diagnosis no_start;
  no_start.by.assign(starts.by.begin(), starts.by.end());
  best.refusals.emplace_back(gang.waiting.front(), std::move(no_start));
}

// The first tied member that finds a node in the domain fixes it for the others. The attempt ends
// early if none does, or if too few members can still find a node.
GangPlacer::Placement GangPlacer::TryIn(const PendingGang& gang, std::span<const size_t> domain,
                                        DomainTries& tries) {
  Placement tried;
  // Refused kinds, the number of placed members then, and the diagnosis.
  std::map<std::string, std::pair<size_t, scheduling::Diagnosis>> in_vain;
  const auto place = [&](const Pod& member, scheduling::Diagnosis& diagnosis) {
    const std::string key = member->Key();
    const auto kind = tries.kinds.find(key);
    if (kind != tries.kinds.end()) {
      const auto last = in_vain.find(kind->second);
      if (last != in_vain.end() && last->second.first == tried.chosen.size()) {
        diagnosis = last->second.second;
        return false;
      }
    }
    if (tries.asks_left > 0) --tries.asks_left;
    const bool begins = !tried.begun && tries.tied.contains(key);
    const bool placed =
        pods_.PlaceAmong(member, begins ? domain : std::span<const size_t>(), diagnosis);
    tried.begun = tried.begun || (begins && placed);
    if (!placed && kind != tries.kinds.end()) {
      in_vain.insert_or_assign(kind->second, std::pair(tried.chosen.size(), diagnosis));
    }
    return placed;
  };
  std::vector<Pod> left = gang.waiting;
  while (!left.empty()) {
    const size_t before = tried.chosen.size();
    size_t may_find = left.size();  // in this round or the next
    for (const Pod& member : left) {
      // Once the gang has enough nodes, every remaining member is tried.
      if (tries.asks_left == 0 && !IsEnough(gang, tried)) return tried;
      const size_t refused = tried.refusals.size();
      TryOne(gang, member, place, tried);
      if (tried.refusals.size() == refused || !scheduling::MayFollow(*member)) --may_find;
      if (gang.placed + tried.chosen.size() + may_find < gang.least) return tried;
    }
    if (tried.chosen.size() == before) break;
    left = scheduling::TakeFollowers(tried.refusals);
  }
  return tried;
}

// Only `found` of its pods have a node.
void GangPlacer::RefuseGang(const PendingGang& gang, size_t found,
                            const scheduling::GangRefusals& refusals, kube::Client& client,
                            Time now) {
  // The minimum size may shrink, or the guaranteed quota may grow.
  std::set<const scheduling::Plugin*> by{&gang_scheduling_, &preemptor_.quota_terms()};
  bool by_nobody = false;  // no node was available, so no plugin refused one
  for (const auto& [member, diagnosis] : refusals) {
    by.insert(diagnosis.by.begin(), diagnosis.by.end());
    by_nobody = by_nobody || diagnosis.by.empty();
  }
  if (by_nobody) by.clear();  // anything may help
  Sleep(gang.waiting, {by.begin(), by.end()}, now);
  std::string why = scheduling::GangNotWhole(gang.name, found, gang.least).message;
  if (!refusals.empty()) {
    const auto& [member, diagnosis] = refusals.front();
    why += fmt::format("; {}: {}", member->Key(), diagnosis.ToString());
  }
  const std::string preemption = preemptor_.PreemptForGang(gang, client, now);
  if (!preemption.empty()) why += " preemption: " + preemption;
  GiveBackDevices(gang.waiting, client, now);
  ReportRefusal(gang.waiting, why, now);
}

// Must precede evictions for these pods, because evictions may wake them.
void GangPlacer::Sleep(const std::vector<Pod>& pods,
                       const std::vector<const scheduling::Plugin*>& by, Time now) {
  for (const Pod& pod : pods) queue_.Refused(pod, by, now);
}

// A waiting gang keeps no devices of an earlier attempt, like a waiting pod.
void GangPlacer::GiveBackDevices(const std::vector<Pod>& pods, kube::Client& client, Time now) {
  for (const Pod& pod : pods) pods_.PostFilter(pod, client, now);
}

void GangPlacer::ReportRefusal(const std::vector<Pod>& pods, const std::string& why, Time now) {
  for (const Pod& pod : pods) {
    metrics_.End(*pod, SchedulerMetrics::Result::kUnschedulable);
    status_.Report({pod, "Unschedulable", why}, now);
  }
}

}  // namespace nos::controllers
