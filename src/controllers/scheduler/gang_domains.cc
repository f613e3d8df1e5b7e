// Places gangs in which some members must follow others or must be near them, so that the first
// placed member limits the nodes of the others. The attempts are real decisions with the usual
// rules, including quotas and nominations. They are released before anything is published.
#include <algorithm>
#include <iterator>
#include <utility>

#include "controllers/scheduler/internal.h"
#include "scheduling/diagnosis.h"
#include "scheduling/gang_starts.h"
#include "scheduling/pod_kind.h"

namespace nos::controllers {

struct Scheduler::DomainTries {
  std::set<std::string> tied;  // keys
  // By key of a member; members of one kind get the same decision. Nominated pods are left out.
  std::map<std::string, std::string> kinds;
  size_t asks_left;  // number of decisions; at 0 no further domain is tried
};

void Scheduler::TryFurther(const Gang& gang, GangTry& tried, Time now) {
  const auto place = [&](const Pod& member, scheduling::Diagnosis& diagnosis) {
    return Place(member, diagnosis, now);
  };
  TryRefused(gang, place, tried);
  if (IsEnough(gang, tried) || tried.gave_up) return;
  const scheduling::GangTies ties(gang.waiting);
  if (ties.near()) TryDomains(gang, ties, tried);
}

// Repeats while other members find a node, because each of them may allow another to follow.
void Scheduler::TryRefused(const Gang& gang, Placer place, GangTry& tried) {
  for (size_t before = 0; tried.chosen.size() > before;) {
    before = tried.chosen.size();
    TryEach(gang, scheduling::TakeFollowers(tried.refusals), place, tried);
  }
}

void Scheduler::TryDomains(const Gang& gang, const scheduling::GangTies& ties, GangTry& best) {
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
    if (!began && tries.tied.contains(key)) began = snapshot.IndexOf(bindings_.at(key).node);
  }

  // 2. Try the other domains. Each attempt starts from the same state, so the previous one is
  //    released first.
  TakeBackAll(best);
  const scheduling::GangStarts starts = scheduling::StartsOf(
      gang.waiting, ties, snapshot, [&](const cluster::Pod& member) -> const Framework& {
        return *ProfileFor(member)->framework;
      });
  Refusals others;
  int begun = 0;
  for (const std::vector<size_t>& domain : starts.domains) {
    if (began && std::ranges::binary_search(domain, *began)) continue;
    if (begun == scheduling::kMaxGangStarts || tries.asks_left == 0) break;
    GangTry tried = TryIn(gang, domain, tries);
    if (IsEnough(gang, tried)) {
      best = std::move(tried);
      return;
    }
    TakeBackAll(tried);
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
Scheduler::GangTry Scheduler::TryIn(const Gang& gang, std::span<const size_t> domain,
                                    DomainTries& tries) {
  GangTry tried;
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
    const bool placed = PlaceAmong(member, begins ? domain : std::span<const size_t>(), diagnosis);
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
