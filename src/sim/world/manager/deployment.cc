// pkg/controller/deployment: a ReplicaSet for each template, and rolling updates between them.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "sim/world/manager/parts.h"

namespace nos::sim {
namespace {

constexpr std::string_view kLastApplied = "kubectl.kubernetes.io/last-applied-configuration";

int64_t SpecReplicas(const WorkloadObject& object) {
  return NumberAt(object.object, 1, "spec", "replicas");
}

int64_t RevisionOf(const WorkloadObject& set) {
  const auto found = set.meta.annotations.find(kRevision);
  return found == set.meta.annotations.end() ? 0 : ParseInt(found->second).value_or(0);
}

// The template without the hash that the controller adds.
Json TemplateOf(const WorkloadObject& object) {
  const Json* found = Find(object.object, "spec", "template");
  Json content = found == nullptr ? Json(JsonObject()) : *found;
  MakeObject(content, "metadata", "labels").erase(kTemplateHashLabel);
  return content;
}

// The state of one rollout, and the changes to it.
class Rollout {
 public:
  explicit Rollout(const WorkloadView& view)
      : view_(view),
        wanted_(SpecReplicas(view.self)),
        recreate_(FindString(view.self.object, "spec", "strategy", "type") == "Recreate") {
    const Json content = TemplateOf(view.self);
    std::vector<WorkloadPtr> sets = view.sets;
    std::ranges::stable_sort(sets, {}, [](const WorkloadPtr& set) { return set->meta.created; });
    for (const WorkloadPtr& set : sets) {
      if (set->meta.deleted) continue;
      size_of_[set->meta.uid] = SpecReplicas(*set);
      if (fresh_ == nullptr && TemplateOf(*set) == content) {
        fresh_ = set;
      } else {
        old_.push_back(set);
      }
    }
    ReadStrategy();
  }

  WorkloadPlan Decide() {
    const bool paused = FlagAt(view_.self.object, "spec", "paused");
    if (fresh_ == nullptr && !paused) {
      MakeSet();
    } else if (paused) {
      Scale();
    } else {
      NumberRevision();
      if (recreate_) {
        Recreate();
      } else {
        Roll();
      }
    }
    if (Complete()) RemoveHistory();
    WriteStatus(paused);
    return std::move(plan_);
  }

 private:
  void ReadStrategy() {
    const Json& object = view_.self.object;
    surge_ =
        CountOf(Find(object, "spec", "strategy", "rollingUpdate", "maxSurge"), wanted_, true, 0);
    unavailable_ = CountOf(Find(object, "spec", "strategy", "rollingUpdate", "maxUnavailable"),
                           wanted_, false, 0);
    if (surge_ <= 0 && unavailable_ <= 0) unavailable_ = 1;
    unavailable_ = std::min(unavailable_, wanted_);
    if (recreate_) unavailable_ = 0;
  }

  int64_t Sum(std::string_view count, bool with_fresh = true) const {
    int64_t sum = 0;
    for (const WorkloadPtr& set : old_) sum += NumberAt(set->object, 0, "status", count);
    if (with_fresh && fresh_ != nullptr) sum += NumberAt(fresh_->object, 0, "status", count);
    return sum;
  }
  int64_t OfFresh(std::string_view count) const {
    return fresh_ == nullptr ? 0 : NumberAt(fresh_->object, 0, "status", count);
  }
  int64_t OldSize() const {
    int64_t sum = 0;
    for (const WorkloadPtr& set : old_) sum += size_of_.at(set->meta.uid);
    return sum;
  }
  int64_t Size() const {
    return OldSize() + (fresh_ == nullptr ? 0 : size_of_.at(fresh_->meta.uid));
  }

  void Resize(const WorkloadObject& set, int64_t size) {
    int64_t& now = size_of_[set.meta.uid];
    if (now == size) return;
    now = size;
    plan_.Change(kReplicaSets, set.meta, JsonObject{{"spec", JsonObject{{"replicas", size}}}});
  }

  int64_t NewestRevision() const {
    int64_t newest = 0;
    for (const WorkloadPtr& set : old_) newest = std::max(newest, RevisionOf(*set));
    return newest;
  }

  void MakeSet() {
    const WorkloadObject& self = view_.self;
    Json content = TemplateOf(self);
    const std::string hash = HashOf(content);
    MakeObject(content, "metadata", "labels")[kTemplateHashLabel] = hash;
    JsonObject annotations;
    for (const auto& [key, value] : self.meta.annotations) {
      if (key != kLastApplied && key != kRevision) annotations[key] = value;
    }
    const int64_t revision = NewestRevision() + 1;
    annotations[kRevision] = fmt::to_string(revision);
    const Json* selector = Find(self.object, "spec", "selector");
    Json selects = selector == nullptr ? Json(JsonObject()) : *selector;
    MakeObject(selects, "matchLabels")[kTemplateHashLabel] = hash;
    const int64_t room = recreate_ ? (OldRuns() ? 0 : wanted_)
                                   : std::clamp<int64_t>(wanted_ + surge_ - Size(), 0, wanted_);
    JsonObject spec{{"replicas", room}, {"selector", std::move(selects)}, {"template", content}};
    if (const Json* seconds = Find(self.object, "spec", "minReadySeconds")) {
      spec["minReadySeconds"] = *seconds;
    }
    made_ = self.meta.name + "-" + hash;
    plan_.create.push_back(
        {&kReplicaSets,
         JsonObject{{"metadata", JsonObject{{"name", made_},
                                            {"namespace", self.meta.ns},
                                            {"labels", *Find(content, "metadata", "labels")},
                                            {"annotations", std::move(annotations)},
                                            {"ownerReferences",
                                             JsonArray{OwnerReferenceTo(self, kDeployments)}}}},
                    {"spec", std::move(spec)}}});
    Number(revision);
    if (recreate_) Recreate();
  }

  // A set whose template is wanted again becomes the newest revision.
  void NumberRevision() {
    const int64_t revision = std::max(NewestRevision() + 1, RevisionOf(*fresh_));
    if (revision != RevisionOf(*fresh_)) {
      plan_.Change(kReplicaSets, fresh_->meta,
                   JsonObject{{"metadata",
                               JsonObject{{"annotations",
                                           JsonObject{{kRevision, fmt::to_string(revision)}}}}}});
    }
    Number(revision);
  }

  // Records the revision in the Deployment.
  void Number(int64_t revision) {
    if (RevisionOf(view_.self) == revision) return;
    plan_.Change(
        kDeployments, view_.self.meta,
        JsonObject{{"metadata", JsonObject{{"annotations",
                                            JsonObject{{kRevision, fmt::to_string(revision)}}}}}});
  }

  bool OldRuns() const {
    return std::ranges::any_of(old_, [](const WorkloadPtr& set) {
      return NumberAt(set->object, 0, "status", "replicas") > 0 ||
             NumberAt(set->object, 0, "status", "terminatingReplicas") > 0;
    });
  }

  void Recreate() {
    for (const WorkloadPtr& set : old_) Resize(*set, 0);
    if (fresh_ != nullptr && !OldRuns()) Resize(*fresh_, wanted_);
  }

  // Without a rollout: the set that has pods follows spec.replicas.
  void Scale() {
    WorkloadPtr active = fresh_;
    for (const WorkloadPtr& set : old_) {
      if (active == nullptr || SpecReplicas(*set) > SpecReplicas(*active)) active = set;
    }
    if (active != nullptr)
      Resize(*active, std::max<int64_t>(0, wanted_ - (Size() - size_of_.at(active->meta.uid))));
  }

  void Roll() {
    const int64_t size = size_of_.at(fresh_->meta.uid);
    if (size > wanted_) Resize(*fresh_, wanted_);
    if (size < wanted_) {
      const int64_t room = std::max<int64_t>(0, wanted_ + surge_ - Size());
      Resize(*fresh_, size + std::min(room, wanted_ - size));
    }
    if (OldSize() > 0) ShrinkOld();
  }

  // First pods that do not serve, then others while enough are available.
  void ShrinkOld() {
    const int64_t least = wanted_ - unavailable_;
    const int64_t fresh_missing = size_of_.at(fresh_->meta.uid) - OfFresh("availableReplicas");
    int64_t removable = Size() - least - fresh_missing;
    if (removable <= 0) return;
    for (const WorkloadPtr& set : old_) {
      const int64_t size = size_of_.at(set->meta.uid);
      const int64_t idle =
          std::max<int64_t>(0, size - NumberAt(set->object, 0, "status", "availableReplicas"));
      const int64_t go = std::clamp<int64_t>(idle, 0, std::max<int64_t>(0, removable));
      Resize(*set, size - go);
      removable -= go;
    }
    int64_t spare = Sum("availableReplicas") - least;
    for (const WorkloadPtr& set : old_) {
      const int64_t size = size_of_.at(set->meta.uid);
      const int64_t go = std::clamp<int64_t>(std::min(spare, size), 0, size);
      Resize(*set, size - go);
      spare -= go;
    }
  }

  bool Complete() const {
    return fresh_ != nullptr && OfFresh("replicas") == wanted_ && Sum("replicas") == wanted_ &&
           OfFresh("availableReplicas") == wanted_ && Size() == wanted_ &&
           size_of_.at(fresh_->meta.uid) == wanted_;
  }

  void RemoveHistory() {
    const int64_t limit = NumberAt(view_.self.object, 10, "spec", "revisionHistoryLimit");
    std::vector<WorkloadPtr> idle = old_;
    std::ranges::stable_sort(idle, {}, [](const WorkloadPtr& set) { return RevisionOf(*set); });
    for (size_t i = 0; std::ssize(idle) - static_cast<int64_t>(i) > limit; ++i) {
      plan_.Remove(kReplicaSets, idle[i]->meta);
    }
  }

  void WriteStatus(bool paused) {
    const Json& object = view_.self.object;
    const int64_t available = Sum("availableReplicas");
    JsonObject status;
    PutCount(status, "observedGeneration", NumberAt(object, 0, "metadata", "generation"));
    PutCount(status, "replicas", Sum("replicas"));
    PutCount(status, "updatedReplicas", OfFresh("replicas"));
    PutCount(status, "readyReplicas", Sum("readyReplicas"));
    PutCount(status, "availableReplicas", available);
    PutCount(status, "unavailableReplicas", std::max<int64_t>(0, wanted_ - available));
    PutCount(status, "terminatingReplicas", Sum("terminatingReplicas"));
    Conditions conditions(object, view_.now);
    const bool enough = available >= wanted_ - unavailable_;
    conditions.Put("Available", enough,
                   enough ? "MinimumReplicasAvailable" : "MinimumReplicasUnavailable",
                   enough ? "Deployment has minimum availability."
                          : "Deployment does not have minimum availability.",
                   /*updated=*/true);
    if (!paused) CheckProgress(status, conditions);
    status["conditions"] = conditions.Take();
    plan_.status = std::move(status);
  }

  bool Advanced(const JsonObject& status) const {
    const auto grew = [&](std::string_view count) {
      const Json* now = status.if_contains(count);
      const int64_t after = now == nullptr ? 0 : now->get_int64();
      return after > NumberAt(view_.self.object, 0, "status", count);
    };
    const int64_t old_before = NumberAt(view_.self.object, 0, "status", "replicas") -
                               NumberAt(view_.self.object, 0, "status", "updatedReplicas");
    return grew("updatedReplicas") || grew("readyReplicas") || grew("availableReplicas") ||
           Sum("replicas", false) < old_before;
  }

  void CheckProgress(const JsonObject& status, Conditions& conditions) {
    const std::string name = fresh_ == nullptr ? made_ : fresh_->meta.name;
    if (fresh_ == nullptr) {
      return conditions.Put("Progressing", true, "NewReplicaSetCreated",
                            fmt::format("Created new replica set \"{}\"", name), true, true);
    }
    if (Complete()) {
      return conditions.Put("Progressing", true, "NewReplicaSetAvailable",
                            fmt::format("ReplicaSet \"{}\" has successfully progressed.", name),
                            true);
    }
    // A rollout that has ended stays so if a pod is lost, or more are asked for, later.
    const std::string_view reason = conditions.ReasonOf("Progressing");
    const bool rolled = Sum("replicas", false) == 0 && OldSize() == 0;
    if (reason == "NewReplicaSetAvailable" && rolled) return;
    if (reason.empty() || reason == "NewReplicaSetAvailable" || Advanced(status)) {
      conditions.Put("Progressing", true, "ReplicaSetUpdated",
                     fmt::format("ReplicaSet \"{}\" is progressing.", name), true, true);
    }
    const int64_t seconds = NumberAt(view_.self.object, 600, "spec", "progressDeadlineSeconds");
    const auto since = ParseTime(FindString(*conditions.Get("Progressing"), "lastUpdateTime"));
    if (!since.ok() || conditions.ReasonOf("Progressing") == "ProgressDeadlineExceeded") return;
    const Time due = *since + std::chrono::seconds(seconds + 1);
    if (due > view_.now) return plan_.Again(due);
    conditions.Put("Progressing", false, "ProgressDeadlineExceeded",
                   fmt::format("ReplicaSet \"{}\" has timed out progressing.", name), true);
  }

  const WorkloadView& view_;
  const int64_t wanted_;
  const bool recreate_;
  int64_t surge_ = 0, unavailable_ = 0;
  WorkloadPtr fresh_;  // the set of the current template; null if there is none yet
  std::vector<WorkloadPtr> old_;
  std::map<std::string, int64_t> size_of_;  // spec.replicas by uid, after the plan
  std::string made_;                        // name of the set that the plan creates
  WorkloadPlan plan_;
};

}  // namespace

WorkloadPlan DecideDeployment(const WorkloadView& view) { return Rollout(view).Decide(); }

}  // namespace nos::sim
