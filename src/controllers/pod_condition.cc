#include "controllers/pod_condition.h"

namespace nos::controllers {

bool HasCondition(const cluster::Pod& pod, const WantedCondition& wanted) {
  const cluster::Condition* condition = pod.FindCondition(wanted.type);
  return condition != nullptr && condition->status == wanted.status &&
         condition->reason == wanted.reason && condition->message == wanted.message;
}

Status WriteCondition(kube::Client& client, const cluster::Pod& pod, const WantedCondition& wanted,
                      Time now) {
  JsonObject condition = {{"type", wanted.type},
                          {"status", wanted.status},
                          {"reason", wanted.reason},
                          {"message", wanted.message}};
  // The API's meaning of lastTransitionTime: when `status` last changed, not the message.
  const cluster::Condition* known = pod.FindCondition(wanted.type);
  const bool same_status = known != nullptr && known->status == wanted.status;
  condition["lastTransitionTime"] = FormatTime(same_status ? known->last_transition : now);
  JsonObject patch = {{"status", {{"conditions", JsonArray{std::move(condition)}}}}};
  if (!pod.meta.uid.empty()) patch["metadata"] = {{"uid", pod.meta.uid}};
  return client
      .Patch(kube::kPods, pod.meta.ns, pod.meta.name, kube::PatchType::kStrategic, patch, "status")
      .status();
}

}  // namespace nos::controllers
