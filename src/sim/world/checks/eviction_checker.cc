#include "sim/world/checks/eviction_checker.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "reconcile/condition.h"
#include "sim/world/node/invariants.h"

namespace nos::sim {
namespace {

bool IsMarked(const EvictionChecker::Pod& pod) {
  const auto* target = pod == nullptr ? nullptr : pod->FindCondition("DisruptionTarget");
  return target != nullptr && target->status == "True" && target->reason == "PreemptionByScheduler";
}

// True if the eviction is for a quota and not for a priority, by the scheduler's message.
bool IsForQuota(const cluster::Pod& pod) {
  return pod.FindCondition("DisruptionTarget")->message.find("elastic quota") != std::string::npos;
}

bool Waits(const EvictionChecker::Pod& pod) {
  return pod != nullptr && pod->node_name.empty() && !pod->Finished();
}

}  // namespace

void EvictionChecker::See(const Pod& before, const Pod& after, Time now) {
  if (Waits(after)) {
    waiting_[after->meta.uid] = {after};
  } else if (Waits(before)) {
    waiting_[before->meta.uid].until = now + kFaultsLinger;
  }
  std::erase_if(waiting_, [&](const auto& one) { return one.second.until < now; });
  const bool same = before != nullptr && after != nullptr && before->meta.uid == after->meta.uid;
  if (!IsMarked(after) || (same && IsMarked(before))) return;
  ++evicted_;
  const bool for_quota = IsForQuota(*after);
  const auto preemptor = waiting_.find(reconcile::PreemptorOf(*after));
  last_.push_back({now, after->Key(),
                   preemptor == waiting_.end() ? "" : preemptor->second.pod->Key(), for_quota});
  if (last_.size() > kKept) last_.pop_front();
  const bool for_somebody = std::ranges::any_of(waiting_, [&](const auto& one) {
    const cluster::Pod& pod = *one.second.pod;
    const bool may =
        pod.priority > after->priority || (for_quota && quotas_.MayTake(*after, pod, now));
    return may && pod.Key() != after->Key();
  });
  if (for_somebody) return;
  problems_.push_back(fmt::format("{} of priority {} is evicted, and none that waits has a {}",
                                  after->Key(), after->priority,
                                  for_quota ? "right to that" : "higher"));
}

std::vector<std::string> EvictionChecker::TakeProblems() { return std::exchange(problems_, {}); }

}  // namespace nos::sim
