#include "sim/apiserver/storage/pods.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "sim/apiserver/schemas/selectors.h"

namespace nos::sim {
namespace {

Check CheckBindable(const WriteRequest& request, const Json& pod, const Json& binding) {
  const std::string& name = request.key.name;
  const std::string_view uid = FindString(binding, "metadata", "uid");
  const auto conflict = [&](std::string_view why) {
    return ObjectConflict(*request.type, name, why);
  };
  if (FindString(binding, "target", "name").empty()) return BadRequest("target.name: required");
  if (!uid.empty() && uid != FindString(pod, "metadata", "uid")) {
    return conflict("Precondition failed: the pod is another one by now");
  }
  if (Find(pod, "metadata", "deletionTimestamp") != nullptr) {
    return conflict(fmt::format("pod {} is being deleted, cannot be assigned to a host", name));
  }
  const std::string_view node = FindString(pod, "spec", "nodeName");
  if (!node.empty()) {
    return conflict(fmt::format("pod {} is already assigned to node \"{}\"", name, node));
  }
  const Json* gates = Find(pod, "spec", "schedulingGates");
  if (gates != nullptr && gates->is_array() && !gates->get_array().empty()) {
    return conflict(fmt::format("pod {} has non-empty .spec.schedulingGates", name));
  }
  return std::nullopt;
}

JsonObject& SetCondition(Json& pod, std::string_view type, std::string_view status, Time now) {
  Json& list = MakeObject(pod, "status")["conditions"];
  if (!list.is_array()) list.emplace_array();
  JsonObject condition{{"type", type},
                       {"status", status},
                       {"lastProbeTime", nullptr},
                       {"lastTransitionTime", FormatTime(now)}};
  for (Json& old : list.get_array()) {
    if (FindString(old, "type") != type) continue;
    old = std::move(condition);
    return old.get_object();
  }
  list.get_array().push_back(std::move(condition));
  return list.get_array().back().get_object();
}

bool IsHealthy(const Json& pod) {
  const Json* conditions = Find(pod, "status", "conditions");
  if (conditions == nullptr || !conditions->is_array()) return false;
  if (Find(pod, "metadata", "deletionTimestamp") != nullptr) return false;
  return std::any_of(conditions->get_array().begin(), conditions->get_array().end(),
                     [](const Json& condition) {
                       return FindString(condition, "type") == "Ready" &&
                              FindString(condition, "status") == "True";
                     });
}

// A number, or a percentage ("30%") of `whole`, rounded up.
int64_t Scaled(const Json& value, int64_t whole) {
  if (value.is_int64()) return value.get_int64();
  if (!value.is_string() || !View(value.get_string()).ends_with('%')) return 0;
  std::string_view text = View(value.get_string());
  text.remove_suffix(1);
  const double share = ParseDouble(text).value_or(0) / 100;
  return static_cast<int64_t>(std::ceil(share * static_cast<double>(whole)));
}

bool AllowsOneLess(const Json& budget, int64_t healthy, int64_t all) {
  if (const Json* least = Find(budget, "spec", "minAvailable")) {
    return healthy - 1 >= Scaled(*least, all);
  }
  const Json* most = Find(budget, "spec", "maxUnavailable");
  return most == nullptr || all - healthy + 1 <= Scaled(*most, all);
}

Check CheckBudgets(const ApiState& state, const WriteRequest& request, const Json& pod) {
  if (!IsHealthy(pod)) return std::nullopt;
  for (const auto& [key, budget] : state.store.All(kBudgetStorage)) {
    if (key.ns != request.key.ns) continue;
    const LabelSelector selector = LabelSelector::FromJson(Find(*budget, "spec", "selector"));
    if (!selector.Matches(pod)) continue;
    int64_t all = 0;
    int64_t healthy = 0;
    for (const auto& [other_key, other] : state.store.All(kPodStorage)) {
      if (other_key.ns != key.ns || !selector.Matches(*other)) continue;
      ++all;
      healthy += IsHealthy(*other) ? 1 : 0;
    }
    if (AllowsOneLess(*budget, healthy, all)) continue;
    Refusal refusal = ObjectConflict(*request.type, request.key.name, "");
    refusal.code = 429;
    refusal.reason = "TooManyRequests";
    refusal.message = "Cannot evict pod as it would violate the pod's disruption budget.";
    refusal.causes.push_back({"DisruptionBudget", "",
                              fmt::format("The disruption budget {} has {} healthy pods of {}",
                                          key.name, healthy, all)});
    return refusal;
  }
  return std::nullopt;
}

// Records the reason in a condition before the pod is deleted. Source: k8s.io/kubernetes
// pkg/registry/core/pod/storage/eviction.go, addConditionAndDeletePod.
void MarkEvicted(ApiState& state, const WriteRequest& request, const Json& pod) {
  if (Find(pod, "metadata", "deletionTimestamp") != nullptr) return;
  Json marked = pod;
  JsonObject& condition = SetCondition(marked, "DisruptionTarget", "True", request.manager.now);
  condition["reason"] = "EvictionByEvictionAPI";
  condition["message"] = "Eviction API: evicting";
  RecordUpdate(pod, marked, request.manager, MergeRules(*request.type));
  (void)state.store.Put({kPodStorage, request.key}, std::move(marked));
}

bool IsOver(const Json& pod) {
  const std::string_view phase = FindString(pod, "status", "phase");
  return phase == "Succeeded" || phase == "Failed" || phase == "Pending";
}

}  // namespace

Outcome<ObjectRef> BindPod(ApiState& state, const WriteRequest& request, const Json& binding) {
  const Place place{kPodStorage, request.key};
  const ObjectRef pod = state.store.Get(place);
  if (pod == nullptr) return ObjectNotFound(*request.type, request.key.name);
  if (auto refusal = CheckBindable(request, *pod, binding)) return *refusal;
  Json bound = *pod;
  MakeObject(bound, "spec")["nodeName"] = FindString(binding, "target", "name");
  const Json* annotations = Find(binding, "metadata", "annotations");
  if (annotations != nullptr && annotations->is_object()) {
    JsonObject& own = MakeObject(bound, "metadata", "annotations");
    for (const auto& [key, value] : annotations->get_object()) {
      if (value.is_string()) own[key] = value;
    }
  }
  SetCondition(bound, "PodScheduled", "True", request.manager.now);
  RecordUpdate(*pod, bound, request.manager, MergeRules(*request.type));
  if (request.dry_run) return std::make_shared<const Json>(std::move(bound));
  return state.store.Put(place, std::move(bound));
}

Outcome<Deletion> EvictPod(ApiState& state, const WriteRequest& request, const Json& eviction) {
  const ObjectRef pod = state.store.Get({kPodStorage, request.key});
  if (pod == nullptr) return ObjectNotFound(*request.type, request.key.name);
  kube::ApiRequest deletion;
  if (const Json* options = Find(eviction, "deleteOptions")) deletion.body = *options;
  NOS_ASSIGN(const DeleteOptions options, ParseDeleteOptions(deletion));
  if (!IsOver(*pod)) {
    if (auto refusal = CheckBudgets(state, request, *pod)) return *refusal;
  }
  const bool fits = options.resource_version.empty() &&
                    (options.uid.empty() || options.uid == FindString(*pod, "metadata", "uid"));
  if (fits && !request.dry_run) MarkEvicted(state, request, *pod);
  return DeleteObject(state, request, options);
}

}  // namespace nos::sim
