// Parts that the controllers of workloads share: fields, conditions, pods from templates.
#pragma once

#include "sim/world/manager/decisions.h"

namespace nos::sim {

// The number at the path; `otherwise` if there is none.
template <typename... Keys>
int64_t NumberAt(const Json& object, int64_t otherwise, const Keys&... keys) {
  const Json* value = Find(object, std::string_view(keys)...);
  return value != nullptr && value->is_int64() ? value->get_int64() : otherwise;
}
template <typename... Keys>
bool FlagAt(const Json& object, const Keys&... keys) {
  const Json* value = Find(object, std::string_view(keys)...);
  return value != nullptr && value->is_bool() && value->get_bool();
}
const JsonArray& ArrayAt(const Json* list);

// A count or a percentage of `whole`; a fraction is rounded up or down.
int64_t CountOf(const Json* value, int64_t whole, bool up, int64_t otherwise);

// Not ended and not being deleted.
bool IsActive(const cluster::Pod& pod);
bool IsReady(const cluster::Pod& pod);
// Ready for `seconds`. If that is not long enough yet, `plan` decides again when it is.
bool IsAvailable(const cluster::Pod& pod, int64_t seconds, Time now, WorkloadPlan& plan);

// How long a controller waits after pods that failed, so that a pod that every node refuses does
// not keep the cluster busy. Absent: it need not wait.
std::optional<Time> WaitAfterFailures(const std::vector<PodPtr>& pods);

// Writes `count` unless it is zero, as the API omits it.
void PutCount(JsonObject& status, std::string_view field, int64_t count);

// The conditions of an object's status, to be changed.
class Conditions {
 public:
  explicit Conditions(const Json& object, Time now)
      : list_(ArrayAt(Find(object, "status", "conditions"))), now_(now) {}

  const Json* Get(std::string_view type) const;
  std::string_view ReasonOf(std::string_view type) const;
  // Keeps the times of a condition that says the same already. `updated`: also has the field
  // lastUpdateTime; `touch`: that is now in any case.
  void Put(std::string_view type, bool holds, std::string_view reason, std::string_view message,
           bool updated = false, bool touch = false);
  JsonArray Take() { return std::move(list_); }

 private:
  JsonArray list_;
  Time now_;
};

// {"controller": true} and all that.
Json OwnerReferenceTo(const WorkloadObject& owner, const kube::Resource& resource);
// A pod of the template in spec.template. It has no name yet.
Json PodOf(const WorkloadObject& owner, const kube::Resource& resource);

// Ten characters from the content, as names of ReplicaSets and revisions have.
std::string HashOf(const Json& content);

// The ControllerRevision of the current template, and older ones.
struct Revisions {
  std::string current;       // name of the newest revision, which has the template
  std::string current_hash;  // the label of pods made from it
};
inline constexpr std::string_view kRevisionHashLabel = "controller-revision-hash";
// Finds or creates the revision of the current template, and removes the oldest ones beyond
// spec.revisionHistoryLimit that no pod has.
Revisions KeepRevisions(const WorkloadView& view, const kube::Resource& resource,
                        WorkloadPlan& plan);

}  // namespace nos::sim
