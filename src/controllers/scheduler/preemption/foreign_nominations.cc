#include "controllers/scheduler/preemption/foreign_nominations.h"

#include <algorithm>

namespace nos::controllers {
namespace {

constexpr Duration kUnconfirmedLimit = std::chrono::minutes(10);

}  // namespace

void ForeignNominations::OnPod(const Pod& pod, Time now) {
  const auto before = foreign_.find(pod->Key());
  if (pod->nominated_node.empty()) {
    if (before == foreign_.end()) return;
    foreign_.erase(before);
    return nominations_.Set(pod, "", now);
  }
  const bool known = before != foreign_.end() && before->second.pod->meta.uid == pod->meta.uid &&
                     before->second.pod->nominated_node == pod->nominated_node;
  Nomination& nomination = foreign_[pod->Key()];
  if (!known) nomination = {pod, now + kUnconfirmedLimit};
  nomination.pod = pod;
  Update(nomination, now);
}

void ForeignNominations::OnClusterChange(Time now) {
  for (auto& [key, nomination] : foreign_) Update(nomination, now);
}

void ForeignNominations::ExpireUnconfirmed(Time now) {
  for (auto& [key, nomination] : foreign_) {
    if (now >= nomination.until && !engine_.NomineeNode(key).empty()) Update(nomination, now);
  }
}

std::optional<Time> ForeignNominations::NextDue() const {
  std::optional<Time> next;
  for (const auto& [key, nomination] : foreign_) {
    if (engine_.NomineeNode(key).empty()) continue;
    next = std::min(next.value_or(Time::max()), nomination.until);
  }
  return next;
}

bool ForeignNominations::HasEvictionsAhead(const std::string& pod_key) const {
  const auto foreign = foreign_.find(pod_key);
  return foreign == foreign_.end() ? !nominations_.IsEvicting(pod_key)
                                   : !terminating_.GoneFor(*foreign->second.pod);
}

scheduling::Promises ForeignNominations::ToRespect(const cluster::Pod& pod,
                                                   const std::set<std::string>& gang) const {
  std::set<std::string> left_out = gang;
  for (const auto& [key, nomination] : foreign_) {
    if (!terminating_.GoneFor(*nomination.pod)) left_out.insert(key);
  }
  return engine_.PromisesFor(pod, left_out);
}

void ForeignNominations::Update(Nomination& nomination, Time now) {
  const Pod& pod = nomination.pod;
  const bool counts = engine_.ledger().balance().AccountOf(pod->meta.ns).has_value() &&
                      engine_.snapshot().Find(pod->nominated_node) != nullptr;
  if (now >= nomination.until && !nomination.over) {
    if (const auto gone = terminating_.GoneFor(*pod)) nomination.until = *gone + kUnconfirmedLimit;
    nomination.over = now >= nomination.until;
  }
  nominations_.Set(pod, counts && !nomination.over ? pod->nominated_node : "", now, true);
}

}  // namespace nos::controllers
