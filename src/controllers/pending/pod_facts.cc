#include "controllers/pod_facts.h"

#include <algorithm>
#include <array>
#include <optional>

#include "controllers/verdicts.h"
#include "quota/standing.h"
#include "reconcile/condition.h"
#include "scheduling/pod_names.h"
#include "scheduling/pod_state.h"
#include "scheduling/remedies.h"

namespace nos::controllers {
namespace {

// In the order of their use.
constexpr std::array<std::string_view, 2> kRefusals = {kPartitionedCondition, "PodScheduled"};

const cluster::Condition* Refusal(const cluster::Pod& pod, std::string_view type) {
  const cluster::Condition* condition = pod.FindCondition(type);
  if (condition == nullptr || condition->status != "False") return nullptr;
  // The API server leaves it when the gates are gone.
  return condition->reason == scheduling::codes::kSchedulingGated ? nullptr : condition;
}

std::string Joined(const std::string& reason, const std::string& message) {
  if (reason.empty() || message.empty()) return reason + message;
  return reason + ": " + message;
}

std::optional<scheduling::PodEviction> EvictionOf(
    const cluster::Pod& pod, const std::vector<std::shared_ptr<const cluster::Pod>>& others) {
  const cluster::Condition* target = pod.FindCondition("DisruptionTarget");
  const bool evicted =
      target != nullptr && target->status == "True" && target->reason == "PreemptionByScheduler";
  if (!evicted) return std::nullopt;
  scheduling::PodEviction eviction{reconcile::EvictedBy(pod), "", target->message,
                                   reconcile::WhyReclaimed(pod) != nullptr};
  const std::string uid = reconcile::PreemptorOf(pod);
  const auto found =
      std::ranges::find_if(others, [&](const auto& other) { return other->meta.uid == uid; });
  if (!uid.empty() && found != others.end()) {
    eviction.preemptor = scheduling::PodText((*found)->Key());
  }
  return eviction;
}

void AddPending(const cluster::Pod& pod, scheduling::PodFacts& facts) {
  facts.cause = scheduling::SplitRemedy(WhyOf(pod).message).first;
  facts.remedy = RemedyIn(pod);
  const cluster::Condition* scheduled = pod.FindCondition("PodScheduled");
  const cluster::Condition* planned = pod.FindCondition(kPartitionedCondition);
  facts.partitioning =
      (scheduled != nullptr && scheduled->reason == scheduling::codes::kPartitioningGpus) ||
      (planned != nullptr && planned->status == "True");
}

void AddEnd(const cluster::Pod& pod, scheduling::PodFacts& facts) {
  facts.cause = Joined(pod.reason, pod.message);
  const cluster::Condition* target = pod.FindCondition("DisruptionTarget");
  if (facts.cause.empty() && target != nullptr && target->status == "True") {
    facts.cause = Joined(target->reason, target->message);
  }
}

}  // namespace

std::string_view StateOf(const cluster::Pod& pod) {
  if (pod.phase == "Succeeded") return "succeeded";
  if (pod.phase == "Failed") return "failed";
  if (pod.meta.deleted) return "terminating";
  if (pod.node_name.empty()) return "pending";
  return pod.phase == "Running" ? "running" : "starting";
}

Why WhyOf(const cluster::Pod& pod) {
  if (!pod.node_name.empty()) return {"", pod.message};
  if (scheduling::IsPending(pod) && scheduling::IsGated(pod)) {
    return {scheduling::codes::kSchedulingGated, scheduling::GatedText(pod)};
  }
  for (const std::string_view type : kRefusals) {
    const cluster::Condition* refusal = Refusal(pod, type);
    if (refusal != nullptr) return {refusal->reason, refusal->message};
  }
  return {"", pod.message};
}

std::string RemedyIn(const cluster::Pod& pod) {
  std::string remedy = scheduling::SplitRemedy(WhyOf(pod).message).second;
  if (!remedy.empty() || !scheduling::IsSchedulable(pod)) return remedy;
  for (const std::string_view type : kRefusals) {
    const cluster::Condition* refusal = Refusal(pod, type);
    if (refusal == nullptr) continue;
    remedy = scheduling::SplitRemedy(refusal->message).second;
    if (!remedy.empty()) return remedy;
  }
  return remedy;
}

scheduling::PodFacts FactsOf(const cluster::Pod& pod,
                             const std::vector<std::shared_ptr<const cluster::Pod>>& others) {
  scheduling::PodFacts facts{pod.Key(), std::string(StateOf(pod)), scheduling::DemandText(pod), "",
                             ""};
  facts.node = pod.node_name;
  facts.priority = pod.priority;
  facts.since = pod.Finished() ? pod.ended : pod.started;
  facts.ends = pod.meta.deleted;
  const auto capacity = pod.meta.labels.find(quota::kCapacityLabel);
  if (capacity != pod.meta.labels.end()) facts.capacity = capacity->second;
  facts.eviction = EvictionOf(pod, others);
  facts.state == "pending" ? AddPending(pod, facts) : AddEnd(pod, facts);
  return facts;
}

}  // namespace nos::controllers
