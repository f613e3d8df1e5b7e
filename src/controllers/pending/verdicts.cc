#include "controllers/verdicts.h"

#include <fmt/core.h>

#include <utility>
#include <vector>

#include "base/log.h"
#include "base/text.h"
#include "controllers/events.h"
#include "planning/remedies.h"
#include "reconcile/condition.h"
#include "scheduling/pod_names.h"
#include "scheduling/remedies.h"

namespace nos::controllers {
namespace {

// Minimum time between writes of a message in which only counts of nodes changed.
constexpr Duration kRefresh = std::chrono::seconds(30);
// No warning before: other pods may leave soon, or more nodes come.
constexpr Duration kWarnAfter = std::chrono::seconds(30);
constexpr size_t kMaxReasons = 1000;  // bytes, of the reasons in a pod's condition
// Nodes that the searches for remedies of one portion visit: about 20 ms.
constexpr int64_t kMaxVisited = 4000;
constexpr BackOff kWriteAgain{std::chrono::seconds(1), std::chrono::minutes(5)};

std::string Slices(const planning::PodOutcome& outcome) {
  std::vector<std::string> parts;
  parts.reserve(outcome.devices.size());
  for (const planning::AssignedDevice& device : outcome.devices) {
    parts.push_back(
        fmt::format("{}@{} on GPU {}", device.profile, device.placement.start, device.gpu));
  }
  return Join(parts, ", ");
}

reconcile::WantedCondition ConditionOf(const planning::PodOutcome& outcome) {
  std::string type(kPartitionedCondition);
  if (outcome.placed) {
    return {std::move(type), "True", "Planned",
            events::SlicePlannedText(outcome.node, Slices(outcome))};
  }
  if (outcome.reasons.empty())
    return {std::move(type), "False", scheduling::codes::kNotPlaced, "Found no GPU for this Pod"};
  std::vector<std::string> parts;
  parts.reserve(outcome.reasons.size());
  const auto visible = [&](const std::string& text) {
    return scheduling::NamesOnlyFor(outcome.pod->meta.ns, text);
  };
  for (const planning::Reason& reason : outcome.reasons) parts.push_back(visible(reason.message));
  std::string message = Shortened(Join(parts, "; "), kMaxReasons);
  if (!outcome.remedy.empty()) {
    message += fmt::format(".{}{}.", scheduling::kRemedySeparator, visible(outcome.remedy));
  }
  return {std::move(type), "False", outcome.reasons.front().code, std::move(message)};
}

bool CreatesInstances(const planning::PodOutcome& outcome) {
  for (const planning::AssignedDevice& device : outcome.devices) {
    if (!device.existing) return true;
  }
  return false;
}

}  // namespace

Verdicts::Verdicts(size_t writes_per_call)
    : writes_per_call_(writes_per_call), unpublished_(kWriteAgain) {}

Verdicts::~Verdicts() = default;

void Verdicts::FindRemediesBy(std::unique_ptr<planning::RemedySearch> search) {
  search_ = std::move(search);
}

void Verdicts::Add(planning::PodOutcome outcome, Time now) {
  std::string key = outcome.pod->Key();
  const auto known = verdicts_.find(key);
  const bool another =
      known != verdicts_.end() && known->second.pod->meta.uid != outcome.pod->meta.uid;
  if (another) published_.erase(key);
  // A failed write keeps its back-off if the new plan has the same result.
  const bool pause = unpublished_.Failing(key) && known != verdicts_.end() && !another &&
                     ConditionOf(known->second).reason == ConditionOf(outcome).reason;
  if (!pause) unpublished_.Add(key, now);
  verdicts_.insert_or_assign(std::move(key), std::move(outcome));
}

void Verdicts::Forget(const reconcile::Listers& view) {
  const auto settled = [&](const auto& item) {
    const auto pod = view.pods.Get(item.first);
    return pod == nullptr || !pod->node_name.empty();
  };
  std::erase_if(verdicts_, settled);
  std::erase_if(published_, settled);
}

void Verdicts::PublishPortion(const reconcile::Listers& view, kube::Client& client,
                              kube::EventRecorder& events, Time now) {
  Portion portion;
  const int64_t visited = search_ == nullptr ? 0 : search_->visited();
  const auto may_search = [&] {
    return search_ == nullptr || search_->visited() - visited < kMaxVisited;
  };
  while (portion.conditions.size() + portion.events.size() < writes_per_call_ && may_search()) {
    const std::optional<std::string> key = unpublished_.Take(now);
    if (!key) break;
    unpublished_.Done(*key);
    const auto verdict = verdicts_.find(*key);
    const auto pod = view.pods.Get(*key);
    const bool open = verdict != verdicts_.end() && pod != nullptr && pod->node_name.empty() &&
                      pod->meta.uid == verdict->second.pod->meta.uid;
    if (open) {
      AddRemedy(verdict->second);
      Word(verdict->second, *pod, now, portion);
    }
    portion.keys.push_back(*key);
  }
  bool hung = false;
  std::set<std::string> failed = WriteConditions(portion, client, now, hung);
  failed.merge(WriteEvents(portion, client, events, now, hung));
  for (const std::string& key : portion.keys) {
    failed.contains(key) ? unpublished_.Retry(key, now) : unpublished_.Forget(key);
  }
}

void Verdicts::AddRemedy(planning::PodOutcome& outcome) const {
  if (search_ == nullptr || outcome.placed || !outcome.remedy.empty()) return;
  scheduling::Remedy remedy = search_->Find(*outcome.pod);
  outcome.remedy_code = std::move(remedy.code);
  outcome.remedy = std::move(remedy.text);
}

std::set<std::string> Verdicts::WriteConditions(const Portion& portion, kube::Client& client,
                                                Time now, bool& hung) {
  const auto answers =
      client.PatchAll(kube::kPods, kube::PatchType::kStrategic, portion.conditions, "status");
  std::set<std::string> failed;
  Status error;
  for (size_t i = 0; i < answers.size(); ++i) {
    const std::string key = portion.conditions[i].ns + "/" + portion.conditions[i].name;
    if (answers[i].ok()) {
      published_[key].condition = now;
    } else {
      error = answers[i].status();
      hung |= error.code() == Code::kDeadline;
      failed.insert(key);
    }
  }
  if (!error.ok()) {
    Log(LogLevel::kWarn, "failed to patch conditions of Pods, retrying later",
        {{"error", error.ToString()}});
  }
  return failed;
}

std::set<std::string> Verdicts::WriteEvents(const Portion& portion, kube::Client& client,
                                            kube::EventRecorder& events, Time now, bool hung) {
  std::vector<Status> written(portion.events.size(), Status(Code::kDeadline, "not tried"));
  if (!hung) written = events.RecordAll(client, portion.events, now);
  std::set<std::string> failed;
  for (size_t i = 0; i < written.size(); ++i) {
    const kube::ObjectReference& pod = portion.events[i].object;
    const std::string key = pod.ns + "/" + pod.name;
    Published& published = published_[key];
    published.owed = !written[i].ok();
    if (published.owed) {
      failed.insert(key);
    } else {
      published.event = now;
      published.what = portion.whats[i];
    }
  }
  return failed;
}

void Verdicts::Word(const planning::PodOutcome& outcome, const cluster::Pod& pod, Time now,
                    Portion& portion) {
  const reconcile::WantedCondition condition = ConditionOf(outcome);
  const cluster::Condition* known = pod.FindCondition(kPartitionedCondition);
  // A pod that was never reported as unplaceable gets no condition when it is placed.
  const bool news =
      !reconcile::HasCondition(pod, condition) && !(outcome.placed && known == nullptr);
  const bool partitioned = outcome.placed && CreatesInstances(outcome);
  Published& published = published_[pod.Key()];
  const bool owed = std::exchange(published.owed, false);
  if (!news && !partitioned && !owed) return;
  const bool other_words = known != nullptr && known->reason == condition.reason;
  const Time from = other_words ? published.condition + kRefresh : now;
  if (news && from > now) unpublished_.Add(pod.Key(), from);
  if (news && from <= now)
    portion.conditions.push_back(reconcile::ConditionPatch(pod, condition, now));
  if (!partitioned && (outcome.placed || (from > now && !owed))) return;
  if (const Time warn_from = pod.meta.created + kWarnAfter; !partitioned && warn_from > now) {
    published.owed = true;
    unpublished_.Add(pod.Key(), warn_from);
    return;
  }
  const std::string& what = partitioned ? condition.message : condition.reason;
  if (published.what == what && now - published.event < kMinEventInterval) return;
  portion.whats.push_back(what);
  portion.events.push_back(partitioned ? events::SlicePlanned(pod, outcome.node, Slices(outcome))
                                       : events::SliceNotPlanned(pod, condition.message));
}

}  // namespace nos::controllers
