#include "reconcile/condition.h"

#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace nos::reconcile {
namespace {

// Marks the messages of reclaims, in every version.
constexpr std::string_view kQuotaWords = "elastic quota";
constexpr std::string_view kPreemptor = " (for pod ";

bool IsSame(const cluster::Condition* known, const WantedCondition& wanted) {
  return known != nullptr && known->status == wanted.status && known->reason == wanted.reason &&
         known->message == wanted.message;
}

kube::NamedPatch PatchOf(const cluster::ObjectMeta& meta, const cluster::Condition* known,
                         const WantedCondition& wanted, Time now) {
  JsonObject condition = {{"type", wanted.type},
                          {"status", wanted.status},
                          {"reason", wanted.reason},
                          {"message", wanted.message}};
  // The Kubernetes API defines lastTransitionTime as the last change of `status`, not of the
  // message.
  const bool same_status = known != nullptr && known->status == wanted.status;
  condition["lastTransitionTime"] = FormatTime(same_status ? known->last_transition : now);
  JsonObject patch = {{"status", {{"conditions", JsonArray{std::move(condition)}}}}};
  if (!meta.uid.empty()) patch["metadata"] = {{"uid", meta.uid}};
  return {meta.ns, meta.name, std::move(patch)};
}

Status Write(kube::Client& client, const kube::Resource& resource, const kube::NamedPatch& patch) {
  return client
      .Patch(resource, patch.ns, patch.name, kube::PatchType::kStrategic, patch.patch, "status")
      .status();
}

}  // namespace

bool HasCondition(const cluster::Pod& pod, const WantedCondition& wanted) {
  return IsSame(FindCondition(pod.conditions, wanted.type), wanted);
}

bool HasCondition(const cluster::Node& node, const WantedCondition& wanted) {
  return IsSame(FindCondition(node.conditions, wanted.type), wanted);
}

Status WriteCondition(kube::Client& client, const cluster::Pod& pod, const WantedCondition& wanted,
                      Time now) {
  return Write(client, kube::kPods, ConditionPatch(pod, wanted, now));
}

Status WriteCondition(kube::Client& client, const cluster::Node& node,
                      const WantedCondition& wanted, Time now) {
  const cluster::Condition* known = FindCondition(node.conditions, wanted.type);
  return Write(client, kube::kNodes, PatchOf(node.meta, known, wanted, now));
}

kube::NamedPatch ConditionPatch(const cluster::Pod& pod, const WantedCondition& wanted, Time now) {
  return PatchOf(pod.meta, FindCondition(pod.conditions, wanted.type), wanted, now);
}

std::string ReclaimMessage(std::string_view scheduler) {
  return fmt::format("{}: preempting to accommodate a pod whose {} guarantees these resources",
                     scheduler, kQuotaWords);
}

const std::string* WhyReclaimed(const cluster::Pod& pod) {
  const cluster::Condition* found = pod.FindCondition("DisruptionTarget");
  const bool is = found != nullptr && found->status == "True" &&
                  found->reason == "PreemptionByScheduler" &&
                  found->message.find(kQuotaWords) != std::string::npos;
  return is ? &found->message : nullptr;
}

std::string WithPreemptor(std::string message, std::string_view uid) {
  return fmt::format("{}{}{})", std::move(message), kPreemptor, uid);
}

std::string PreemptorOf(const cluster::Pod& pod) {
  const cluster::Condition* found = pod.FindCondition("DisruptionTarget");
  if (found == nullptr || found->reason != "PreemptionByScheduler") return "";
  const size_t begin = found->message.rfind(kPreemptor);
  if (begin == std::string::npos || !found->message.ends_with(')')) return "";
  const size_t uid = begin + kPreemptor.size();
  return found->message.substr(uid, found->message.size() - 1 - uid);
}

std::string EvictedBy(const cluster::Pod& pod) {
  const cluster::Condition* found = pod.FindCondition("DisruptionTarget");
  if (found == nullptr) return "";
  const size_t end = found->message.find(": preempting");
  return end == std::string::npos ? "" : found->message.substr(0, end);
}

}  // namespace nos::reconcile
