#include "controllers/autoscaler/pod_conditions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "controllers/events.h"
#include "scheduling/pod_names.h"

namespace nos::controllers {
namespace {

constexpr size_t kMaxText = 1000;       // bytes, of the message of a condition
constexpr size_t kWritesPerCall = 100;  // conditions written in one call
// Minimum interval between writes of a condition of which only the message changed.
constexpr Duration kRefresh = std::chrono::seconds(30);
constexpr BackOff kWriteAgain{std::chrono::seconds(1), std::chrono::minutes(5)};

}  // namespace

PodConditions::PodConditions(ScalingEvents& events) : events_(events), queue_(kWriteAgain) {}

void PodConditions::Set(const cluster::Pod& pod, const char* status, std::string reason,
                        std::string message, Time now) {
  reconcile::WantedCondition condition{kScalingCondition, status, std::move(reason),
                                       std::move(message)};
  condition.message = Shortened(scheduling::NamesOnlyFor(pod.meta.ns, condition.message), kMaxText);
  const std::string key = pod.Key();
  const cluster::Condition* written = pod.FindCondition(kScalingCondition);
  const auto known = wanted_.find(key);
  const std::string before = known != wanted_.end() ? known->second.condition.reason
                             : written != nullptr   ? written->reason
                                                    : "";
  if (condition.reason == kNodesComing && before != condition.reason) {
    events_.Add(events::NodesComing(pod, condition.message));
  }
  Wanted& wanted = wanted_[key];
  const bool fresh = before != condition.reason;
  const bool differs = fresh || wanted.condition.message != condition.message;
  wanted.condition = std::move(condition);
  if (!differs && reconcile::HasCondition(pod, wanted.condition)) return;
  // A failed write keeps its back-off.
  if (fresh || !queue_.Failing(key)) {
    queue_.Add(key, fresh ? now : std::max(now, wanted.written + kRefresh));
  }
}

void PodConditions::Forget(const reconcile::Listers& view) {
  std::erase_if(wanted_, [&](const auto& item) {
    const auto pod = view.pods.Get(item.first);
    return pod == nullptr || !pod->node_name.empty();
  });
}

void PodConditions::Write(const ScalingCycle& cycle) {
  const Time begin = cycle.clock.Now();
  if (begin < pace_.next()) return;
  std::vector<std::string> keys;
  std::vector<kube::NamedPatch> patches;
  while (patches.size() < kWritesPerCall) {
    const std::optional<std::string> key = queue_.Take(begin);
    if (!key) break;
    queue_.Done(*key);
    const auto wanted = wanted_.find(*key);
    const auto pod = cycle.view.pods.Get(*key);
    const bool open = wanted != wanted_.end() && pod != nullptr && pod->node_name.empty();
    if (!open || reconcile::HasCondition(*pod, wanted->second.condition)) {
      queue_.Forget(*key);
      continue;
    }
    keys.push_back(*key);
    patches.push_back(reconcile::ConditionPatch(*pod, wanted->second.condition, begin));
  }
  if (patches.empty()) return;
  const auto answers = cycle.client.Within(pace_.patience())
                           .PatchAll(kube::kPods, kube::PatchType::kStrategic, patches, "status");
  const Time end = cycle.clock.Now();
  pace_.Took(end - begin, end);
  Status error;
  for (size_t i = 0; i < keys.size(); ++i) {
    const Status written = answers[i].status();
    const bool gone = written.code() == Code::kNotFound || written.code() == Code::kConflict;
    if (written.ok()) wanted_[keys[i]].written = begin;
    if (!written.ok() && !gone) error = written;
    written.ok() || gone ? queue_.Forget(keys[i]) : queue_.Retry(keys[i], end);
  }
  if (error.ok()) return;
  Log(LogLevel::kWarn, "failed to update Pod conditions, retrying", {{"error", error.ToString()}});
}

std::optional<Time> PodConditions::NextDue() const {
  const std::optional<Time> due = queue_.NextDue();
  if (!due) return std::nullopt;
  return std::max(*due, pace_.next());
}

}  // namespace nos::controllers
