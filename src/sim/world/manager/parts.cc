#include "sim/world/manager/parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/back_off.h"
#include "base/text.h"
#include "cluster/read_parts.h"

namespace nos::sim {

const kube::Resource kDeployments{"apps", "v1", "deployments", "Deployment", true};
const kube::Resource kReplicaSets{"apps", "v1", "replicasets", "ReplicaSet", true};
const kube::Resource kStatefulSets{"apps", "v1", "statefulsets", "StatefulSet", true};
const kube::Resource kDaemonSets{"apps", "v1", "daemonsets", "DaemonSet", true};
const kube::Resource kJobs{"batch", "v1", "jobs", "Job", true};
const kube::Resource kControllerRevisions{"apps", "v1", "controllerrevisions", "ControllerRevision",
                                          true};

namespace {

constexpr BackOff kAfterFailure{std::chrono::seconds(1), std::chrono::seconds(30)};

// Without the parts that the controllers themselves add.
Json PlainTemplate(const WorkloadObject& owner) {
  const Json* found = Find(owner.object, "spec", "template");
  return found == nullptr ? Json(JsonObject()) : *found;
}

// Data of a ControllerRevision: the patch that brings the template back.
Json RevisionData(const WorkloadObject& owner) {
  Json content = PlainTemplate(owner);
  MakeObject(content, "metadata");
  content.get_object()["$patch"] = "replace";
  return JsonObject{{"spec", JsonObject{{"template", std::move(content)}}}};
}

}  // namespace

Status ReadWorkloadObject(JsonSource json, WorkloadObject& to) {
  NOS_ASSIGN(to.object, TreeOf(json));
  return cluster::ReadFields(to.object, [&](cluster::Field& root) {
    root.Members(cluster::At("metadata", to.meta, cluster::ReadMeta),
                 cluster::At("spec", [&](cluster::Field& spec) {
                   spec.Members(cluster::At("selector", to.selector, cluster::ReadSelector));
                 }));
  });
}

const JsonArray& ArrayAt(const Json* list) {
  static const JsonArray kNone;
  return list != nullptr && list->is_array() ? list->get_array() : kNone;
}

int64_t CountOf(const Json* value, int64_t whole, bool up, int64_t otherwise) {
  if (value == nullptr) return otherwise;
  if (value->is_int64()) return value->get_int64();
  if (!value->is_string() || !View(value->get_string()).ends_with('%')) return otherwise;
  std::string_view text = View(value->get_string());
  text.remove_suffix(1);
  const int64_t percent = ParseInt(text).value_or(0);
  return (percent * whole + (up ? 99 : 0)) / 100;
}

bool IsActive(const cluster::Pod& pod) { return !pod.Finished() && !pod.meta.deleted; }

bool IsReady(const cluster::Pod& pod) {
  const cluster::Condition* ready = pod.FindCondition("Ready");
  return IsActive(pod) && ready != nullptr && ready->status == "True";
}

bool IsAvailable(const cluster::Pod& pod, int64_t seconds, Time now, WorkloadPlan& plan) {
  if (!IsReady(pod)) return false;
  if (seconds <= 0) return true;
  const Time due = pod.FindCondition("Ready")->last_transition + std::chrono::seconds(seconds);
  if (due > now) plan.Again(due);
  return due <= now;
}

std::optional<Time> WaitAfterFailures(const std::vector<PodPtr>& pods) {
  int64_t failures = 0;
  Time last{};
  for (const PodPtr& pod : pods) {
    if (pod->phase != "Failed" || pod->meta.deleted) continue;
    ++failures;
    last = std::max(last, pod->ended.value_or(pod->meta.created));
  }
  if (failures == 0) return std::nullopt;
  return last + kAfterFailure.After(failures);
}

void PutCount(JsonObject& status, std::string_view field, int64_t count) {
  if (count != 0) status[field] = count;
}

const Json* Conditions::Get(std::string_view type) const {
  const auto found = std::ranges::find_if(
      list_, [&](const Json& condition) { return FindString(condition, "type") == type; });
  return found == list_.end() ? nullptr : &*found;
}

std::string_view Conditions::ReasonOf(std::string_view type) const {
  const Json* condition = Get(type);
  return condition == nullptr ? std::string_view() : FindString(*condition, "reason");
}

void Conditions::Put(std::string_view type, bool holds, std::string_view reason,
                     std::string_view message, bool updated, bool touch) {
  const std::string now = FormatTime(now_);
  const std::string_view status = holds ? "True" : "False";
  const Json* before = Get(type);
  const bool stays = before != nullptr && FindString(*before, "status") == status;
  const bool same = stays && FindString(*before, "reason") == reason;
  if (same && !touch && FindString(*before, "message") == message) return;
  JsonObject condition{{"type", type}, {"status", status}};
  if (updated) {
    condition["lastUpdateTime"] =
        same && !touch ? std::string(FindString(*before, "lastUpdateTime")) : now;
  }
  condition["lastTransitionTime"] =
      stays ? std::string(FindString(*before, "lastTransitionTime")) : now;
  condition["reason"] = reason;
  condition["message"] = message;
  if (before != nullptr) {
    list_[static_cast<size_t>(before - list_.data())] = std::move(condition);
  } else {
    list_.push_back(std::move(condition));
  }
}

Json OwnerReferenceTo(const WorkloadObject& owner, const kube::Resource& resource) {
  return JsonObject{{"apiVersion", resource.group + "/" + resource.version},
                    {"kind", resource.kind},
                    {"name", owner.meta.name},
                    {"uid", owner.meta.uid},
                    {"controller", true},
                    {"blockOwnerDeletion", true}};
}

Json PodOf(const WorkloadObject& owner, const kube::Resource& resource) {
  const Json content = PlainTemplate(owner);
  JsonObject metadata{{"namespace", owner.meta.ns},
                      {"ownerReferences", JsonArray{OwnerReferenceTo(owner, resource)}}};
  for (const std::string_view field : {"labels", "annotations", "finalizers"}) {
    if (const Json* value = Find(content, "metadata", field)) metadata[field] = *value;
  }
  const Json* spec = Find(content, "spec");
  return JsonObject{{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", std::move(metadata)},
                    {"spec", spec == nullptr ? Json(JsonObject()) : *spec}};
}

std::string HashOf(const Json& content) {
  // FNV-1a, 64 bit, in the alphabet of k8s.io/apimachinery/pkg/util/rand.
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : WriteJson(content)) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  std::string text;
  for (int i = 0; i < 10; ++i) {
    text += kAlphabet[hash % kAlphabet.size()];
    hash /= kAlphabet.size();
  }
  return text;
}

namespace {

Json NewRevision(const WorkloadObject& owner, const kube::Resource& resource,
                 const std::string& hash, Json data, int64_t number) {
  JsonObject labels;
  if (const Json* own = Find(owner.object, "spec", "template", "metadata", "labels")) {
    if (own->is_object()) labels = own->get_object();
  }
  labels[kRevisionHashLabel] = hash;
  return JsonObject{
      {"metadata", JsonObject{{"name", owner.meta.name + "-" + hash},
                              {"namespace", owner.meta.ns},
                              {"labels", std::move(labels)},
                              {"ownerReferences", JsonArray{OwnerReferenceTo(owner, resource)}}}},
      {"data", std::move(data)},
      {"revision", number}};
}

std::string HashLabelOf(const WorkloadObject& revision) {
  const auto label = revision.meta.labels.find(kRevisionHashLabel);
  return label == revision.meta.labels.end() ? "" : label->second;
}

void RemoveOldRevisions(const WorkloadView& view, const Revisions& kept, WorkloadPlan& plan) {
  std::set<std::string> live{kept.current_hash};
  for (const PodPtr& pod : view.pods) {
    const auto label = pod->meta.labels.find(kRevisionHashLabel);
    if (label != pod->meta.labels.end()) live.insert(label->second);
  }
  std::vector<WorkloadPtr> old;
  for (const WorkloadPtr& revision : view.revisions) {
    if (!live.contains(HashLabelOf(*revision))) old.push_back(revision);
  }
  std::ranges::stable_sort(old, {}, [](const WorkloadPtr& revision) {
    return NumberAt(revision->object, 0, "revision");
  });
  const int64_t limit = NumberAt(view.self.object, 10, "spec", "revisionHistoryLimit");
  for (size_t i = 0; std::ssize(old) - static_cast<int64_t>(i) > std::max<int64_t>(0, limit); ++i) {
    plan.Remove(kControllerRevisions, old[i]->meta);
  }
}

}  // namespace

Revisions KeepRevisions(const WorkloadView& view, const kube::Resource& resource,
                        WorkloadPlan& plan) {
  const Json data = RevisionData(view.self);
  int64_t newest = 0;
  const WorkloadObject* same = nullptr;
  for (const WorkloadPtr& revision : view.revisions) {
    newest = std::max(newest, NumberAt(revision->object, 0, "revision"));
    const Json* held = Find(revision->object, "data");
    if (held != nullptr && *held == data) same = revision.get();
  }
  Revisions revisions;
  if (same == nullptr) {
    revisions.current_hash = HashOf(data);
    revisions.current = view.self.meta.name + "-" + revisions.current_hash;
    plan.create.push_back(
        {&kControllerRevisions,
         NewRevision(view.self, resource, revisions.current_hash, data, newest + 1)});
  } else {
    revisions.current_hash = HashLabelOf(*same);
    revisions.current = same->meta.name;
    if (NumberAt(same->object, 0, "revision") < newest) {  // the template was brought back
      plan.Change(kControllerRevisions, same->meta, JsonObject{{"revision", newest + 1}});
    }
  }
  RemoveOldRevisions(view, revisions, plan);
  return revisions;
}

}  // namespace nos::sim
