#include "controllers/verdicts.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "base/text.h"
#include "controllers/condition.h"

namespace nos::controllers {
namespace {

// A message that only counts other nodes now is not written more often than this.
constexpr Duration kRefresh = std::chrono::seconds(30);
// Nor said in another Event: every new text is a new object.
constexpr Duration kSayAgain = std::chrono::minutes(5);

std::string Slices(const planning::PodOutcome& outcome) {
  std::vector<std::string> parts;
  parts.reserve(outcome.devices.size());
  for (const planning::AssignedDevice& device : outcome.devices) {
    parts.push_back(
        fmt::format("{}@{} on GPU {}", device.profile, device.placement.start, device.gpu));
  }
  return fmt::format("{}: {}", outcome.node, Join(parts, ", "));
}

WantedCondition ConditionOf(const planning::PodOutcome& outcome) {
  std::string type(kPartitionedCondition);
  if (outcome.placed) return {std::move(type), "True", "Planned", Slices(outcome)};
  if (outcome.reasons.empty())
    return {std::move(type), "False", "NotPlaced", "no GPU can serve it"};
  std::vector<std::string> parts;
  parts.reserve(outcome.reasons.size());
  for (const planning::Reason& reason : outcome.reasons) parts.push_back(reason.message);
  std::string message = Join(parts, "; ");
  if (!outcome.remedy.empty()) message += "; what would help: " + outcome.remedy;
  return {std::move(type), "False", outcome.reasons.front().code, std::move(message)};
}

kube::ObjectReference Reference(const cluster::Pod& pod) {
  return {"Pod", pod.meta.ns, pod.meta.name, pod.meta.uid};
}

bool CutForIt(const planning::PodOutcome& outcome) {
  for (const planning::AssignedDevice& device : outcome.devices) {
    if (!device.existing) return true;
  }
  return false;
}

}  // namespace

void Verdicts::Add(planning::PodOutcome outcome) {
  std::string key = outcome.pod->Key();
  untold_.push_back(key);
  verdicts_.insert_or_assign(std::move(key), std::move(outcome));
}

void Verdicts::Forget(const View& view) {
  const auto settled = [&](const auto& item) {
    const auto pod = view.pods.Get(item.first);
    return pod == nullptr || !pod->node_name.empty();
  };
  std::erase_if(verdicts_, settled);
  std::erase_if(told_, settled);
}

bool Verdicts::TellSome(const View& view, kube::Client& client, kube::EventRecorder& events,
                        Time now) {
  size_t written = 0;
  while (!untold_.empty() && written < writes_per_call_) {
    const std::string key = std::move(untold_.front());
    untold_.pop_front();
    const auto verdict = verdicts_.find(key);
    const auto pod = view.pods.Get(key);
    if (verdict == verdicts_.end() || pod == nullptr || !pod->node_name.empty()) continue;
    if (pod->meta.uid != verdict->second.pod->meta.uid) continue;
    written += Tell(verdict->second, *pod, client, events, now);
  }
  return !untold_.empty();
}

size_t Verdicts::Tell(const planning::PodOutcome& outcome, const cluster::Pod& pod,
                      kube::Client& client, kube::EventRecorder& events, Time now) {
  const WantedCondition condition = ConditionOf(outcome);
  size_t written = 0;
  if (outcome.placed && CutForIt(outcome)) {
    events.Record(client, Reference(pod), kube::EventType::kNormal, "SlicePlanned", Slices(outcome),
                  now);
    ++written;
  }
  // A pod that never needed telling is served without a word.
  const bool never_told = outcome.placed && pod.FindCondition(kPartitionedCondition) == nullptr;
  if (never_told || HasCondition(pod, condition)) return written;
  Told& told = told_[pod.Key()];
  if (TooSoon(pod, condition.reason, told, now)) return written;
  if (WriteCondition(client, pod, condition, now).ok()) told.condition = now;
  ++written;
  if (outcome.placed || (told.reason == condition.reason && now - told.event < kSayAgain)) {
    return written;
  }
  told.event = now;
  told.reason = condition.reason;
  events.Record(client, Reference(pod), kube::EventType::kWarning, "SliceNotPlanned",
                condition.message, now);
  return written + 1;
}

bool Verdicts::TooSoon(const cluster::Pod& pod, const std::string& reason, const Told& told,
                       Time now) {
  const cluster::Condition* known = pod.FindCondition(kPartitionedCondition);
  return known != nullptr && known->reason == reason && now - told.condition < kRefresh;
}

}  // namespace nos::controllers
