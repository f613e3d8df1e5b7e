// pkg/controller/statefulset: numbered pods, started in order and replaced from the last one on.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "sim/world/manager/parts.h"

namespace nos::sim {
namespace {

constexpr std::string_view kNameLabel = "statefulset.kubernetes.io/pod-name";
constexpr std::string_view kIndexLabel = "apps.kubernetes.io/pod-index";

const kube::Resource kClaimsOfVolumes{"", "v1", "persistentvolumeclaims", "PersistentVolumeClaim",
                                      true};

class Ordered {
 public:
  explicit Ordered(const WorkloadView& view)
      : view_(view),
        revisions_(KeepRevisions(view, kStatefulSets, plan_)),
        first_(NumberAt(view.self.object, 0, "spec", "ordinals", "start")),
        wanted_(NumberAt(view.self.object, 1, "spec", "replicas")),
        settle_(NumberAt(view.self.object, 0, "spec", "minReadySeconds")),
        parallel_(FindString(view.self.object, "spec", "podManagementPolicy") == "Parallel") {
    const std::string prefix = view.self.meta.name + "-";
    for (const PodPtr& pod : view.pods) {
      if (!pod->meta.name.starts_with(prefix)) continue;
      const auto ordinal = ParseInt(std::string_view(pod->meta.name).substr(prefix.size()));
      if (ordinal) pods_[*ordinal] = pod;
    }
  }

  WorkloadPlan Decide() {
    if (RemoveEnded() && Fill() && Shrink()) Update();
    WriteStatus();
    return std::move(plan_);
  }

 private:
  bool IsWanted(int64_t ordinal) const { return ordinal >= first_ && ordinal < first_ + wanted_; }
  bool IsCurrent(const cluster::Pod& pod) const {
    const auto label = pod.meta.labels.find(kRevisionHashLabel);
    return label != pod.meta.labels.end() && label->second == revisions_.current_hash;
  }
  bool Serves(const cluster::Pod& pod) { return IsAvailable(pod, settle_, view_.now, plan_); }

  // Each of these returns whether the next may go on.

  // A pod that has ended makes room for its successor of the same name.
  bool RemoveEnded() {
    const auto wait = WaitAfterFailures(view_.pods);
    if (wait && *wait > view_.now) plan_.Again(*wait);
    for (const auto& [ordinal, pod] : pods_) {
      if (!pod->Finished() || pod->meta.deleted) continue;
      if (pod->phase == "Failed" && wait && *wait > view_.now) continue;
      plan_.Remove(kube::kPods, pod->meta);
    }
    return true;
  }

  bool Fill() {
    for (int64_t ordinal = first_; ordinal < first_ + wanted_; ++ordinal) {
      const auto found = pods_.find(ordinal);
      if (found == pods_.end()) Create(ordinal);
      const bool goes_on = found != pods_.end() && Serves(*found->second);
      if (!goes_on && !parallel_) return false;
    }
    return true;
  }

  bool Shrink() {
    bool removed = false;
    for (auto i = pods_.rbegin(); i != pods_.rend(); ++i) {
      if (IsWanted(i->first)) continue;
      if (!i->second->meta.deleted) plan_.Remove(kube::kPods, i->second->meta);
      removed = true;
      if (!parallel_) return false;
    }
    return !removed;
  }

  // One pod at a time, from the last one on.
  void Update() {
    const Json& object = view_.self.object;
    if (FindString(object, "spec", "updateStrategy", "type") == "OnDelete") return;
    const int64_t partition =
        NumberAt(object, 0, "spec", "updateStrategy", "rollingUpdate", "partition");
    for (auto i = pods_.rbegin(); i != pods_.rend() && i->first >= first_ + partition; ++i) {
      const cluster::Pod& pod = *i->second;
      if (!IsCurrent(pod)) {
        if (!pod.meta.deleted) plan_.Remove(kube::kPods, pod.meta);
        return;
      }
      if (!Serves(pod)) return;
    }
  }

  void Create(int64_t ordinal) {
    const std::string name = fmt::format("{}-{}", view_.self.meta.name, ordinal);
    Json pod = PodOf(view_.self, kStatefulSets);
    MakeObject(pod, "metadata")["name"] = name;
    JsonObject& labels = MakeObject(pod, "metadata", "labels");
    labels[kNameLabel] = name;
    labels[kIndexLabel] = fmt::to_string(ordinal);
    labels[kRevisionHashLabel] = revisions_.current_hash;
    JsonObject& spec = MakeObject(pod, "spec");
    spec["hostname"] = name;
    const std::string_view service = FindString(view_.self.object, "spec", "serviceName");
    if (!service.empty()) spec["subdomain"] = service;
    AddVolumes(name, spec);
    plan_.create.push_back({&kube::kPods, std::move(pod)});
  }

  void AddVolumes(const std::string& pod, JsonObject& spec) {
    const JsonArray& templates = ArrayAt(Find(view_.self.object, "spec", "volumeClaimTemplates"));
    if (templates.empty()) return;
    JsonArray volumes = ArrayAt(spec.if_contains("volumes"));
    for (const Json& from : templates) {
      const std::string volume(FindString(from, "metadata", "name"));
      const std::string claim = volume + "-" + pod;
      volumes.push_back(JsonObject{{"name", volume},
                                   {"persistentVolumeClaim", JsonObject{{"claimName", claim}}}});
      Json object = from;
      object.get_object().erase("status");
      JsonObject& metadata = MakeObject(object, "metadata");
      metadata["name"] = claim;
      metadata["namespace"] = view_.self.meta.ns;
      plan_.create.push_back({&kClaimsOfVolumes, std::move(object)});
    }
    spec["volumes"] = std::move(volumes);
  }

  void WriteStatus() {
    const Json& object = view_.self.object;
    int64_t existing = 0, ready = 0, available = 0, updated = 0;
    for (const auto& [ordinal, pod] : pods_) {
      if (pod->Finished()) continue;
      ++existing;
      updated += IsCurrent(*pod) && !pod->meta.deleted ? 1 : 0;
      ready += IsReady(*pod) ? 1 : 0;
      available += Serves(*pod) ? 1 : 0;
    }
    // All pods are of the new revision and ready: the rollout is over.
    const std::string_view before = FindString(object, "status", "currentRevision");
    const bool done = updated == existing && updated == wanted_ && ready == wanted_;
    const std::string current(before.empty() || done ? revisions_.current : before);
    JsonObject status{{"replicas", existing}, {"availableReplicas", available}};
    PutCount(status, "observedGeneration", NumberAt(object, 0, "metadata", "generation"));
    PutCount(status, "readyReplicas", ready);
    PutCount(status, "currentReplicas",
             current == revisions_.current ? updated : existing - updated);
    PutCount(status, "updatedReplicas", updated);
    status["currentRevision"] = current;
    status["updateRevision"] = revisions_.current;
    status["collisionCount"] = 0;
    plan_.status = std::move(status);
  }

  const WorkloadView& view_;
  WorkloadPlan plan_;
  const Revisions revisions_;
  const int64_t first_, wanted_, settle_;
  const bool parallel_;
  std::map<int64_t, PodPtr> pods_;  // by ordinal
};

}  // namespace

WorkloadPlan DecideStatefulSet(const WorkloadView& view) { return Ordered(view).Decide(); }

}  // namespace nos::sim
