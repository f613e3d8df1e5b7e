#include "sim/world/manager/workload_keeper.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/back_off.h"
#include "base/text.h"
#include "cluster/selectors.h"
#include "sim/world/manager/parts.h"

namespace nos::sim {
namespace {

constexpr BackOff kRetry{std::chrono::seconds(1), std::chrono::seconds(30)};

// An object that is gone, or another one by now, needs no more work.
Status Forgive(const Status& status) {
  const bool late = status.code() == Code::kNotFound || status.code() == Code::kConflict;
  return late ? Status::Ok() : status;
}

Json Precondition(const std::string& uid) {
  return JsonObject{{"preconditions", JsonObject{{"uid", uid}}},
                    {"propagationPolicy", "Background"}};
}

bool Selects(const WorkloadObject& self, const cluster::StringMap& labels) {
  const bool any = !self.selector.match_labels.empty() || !self.selector.match_expressions.empty();
  return any && cluster::Matches(self.selector, labels);
}

JsonArray OwnersAsJson(const cluster::ObjectMeta& meta) {
  JsonArray owners;
  for (const cluster::OwnerReference& owner : meta.owners) {
    JsonObject json{{"apiVersion", owner.api_version},
                    {"kind", owner.kind},
                    {"name", owner.name},
                    {"uid", owner.uid}};
    if (owner.controller) json["controller"] = true;
    owners.push_back(std::move(json));
  }
  return owners;
}

bool SameForDaemons(const cluster::Node& a, const cluster::Node& b) {
  return a.meta.labels == b.meta.labels && a.taints == b.taints;
}

}  // namespace

const cluster::OwnerReference* ControllerOf(const cluster::ObjectMeta& meta) {
  const auto owner = std::ranges::find_if(meta.owners, &cluster::OwnerReference::controller);
  return owner == meta.owners.end() ? nullptr : &*owner;
}

WorkloadKeeper::WorkloadKeeper(kube::Transport& api, const Clock& clock, EventLog& log)
    : client_(api),
      clock_(clock),
      log_(log),
      controllers_{{{&kDeployments, DecideDeployment, {kDeployments, ReadWorkloadObject}},
                    {&kReplicaSets, DecideReplicaSet, {kReplicaSets, ReadWorkloadObject}},
                    {&kStatefulSets, DecideStatefulSet, {kStatefulSets, ReadWorkloadObject}},
                    {&kDaemonSets, DecideDaemonSet, {kDaemonSets, ReadWorkloadObject}},
                    {&kJobs, DecideJob, {kJobs, ReadWorkloadObject}}}},
      revision_cache_(kControllerRevisions, ReadWorkloadObject),
      pods_(kube::kPods, cluster::ReadPod),
      nodes_(kube::kNodes, cluster::ReadNode) {
  for (int kind = 0; kind < kKinds; ++kind) {
    controllers_[static_cast<size_t>(kind)].cache.AddHandler(
        [this, kind](const std::string& key, const WorkloadPtr& before, const WorkloadPtr& after) {
          OnWorkload(static_cast<Kind>(kind), key, before, after);
        });
  }
  revision_cache_.AddHandler(
      [this](const std::string&, const WorkloadPtr& before, const WorkloadPtr& after) {
        revision_family_.See(before, after);
        if (after != nullptr) VisitOwner(after->meta);
      });
  pods_.AddHandler([this](const std::string&, const PodPtr& before, const PodPtr& after) {
    OnPod(before, after);
  });
  nodes_.AddHandler([this](const std::string&, const NodePtr& before, const NodePtr& after) {
    OnNode(before, after);
  });
}

std::optional<WorkloadKeeper::Kind> WorkloadKeeper::KindOf(const cluster::OwnerReference& owner) {
  if (owner.kind == "Deployment") return kDeployment;
  if (owner.kind == "ReplicaSet") return kReplicaSet;
  if (owner.kind == "StatefulSet") return kStatefulSet;
  if (owner.kind == "DaemonSet") return kDaemonSet;
  if (owner.kind == "Job") return kJob;
  return std::nullopt;
}

void WorkloadKeeper::Watch() {
  for (Controller& controller : controllers_) controller.cache.Pump(client_, clock_.Now());
  if (!any_) return;
  revision_cache_.Pump(client_, clock_.Now());
  nodes_.Pump(client_, clock_.Now());
  pods_.Pump(client_, clock_.Now());
}

void WorkloadKeeper::OnWorkload(Kind kind, const std::string& key, const WorkloadPtr& before,
                                const WorkloadPtr& after) {
  any_ = true;
  const Id id{kind, key};
  if (kind == kReplicaSet) set_family_.See(before, after);
  const WorkloadPtr& known = after != nullptr ? after : before;
  VisitOwner(known->meta);
  if (after != nullptr) {
    in_namespace_[after->meta.ns].insert(id);
    due_.Put(id, clock_.Now());
    if (before == nullptr || before->meta.uid != after->meta.uid) adopting_.insert(id);
    if (kind == kReplicaSet) OfferForAdoption(after->meta, /*pod=*/false);
  }
  if (before != nullptr && (after == nullptr || before->meta.uid != after->meta.uid)) {
    daemons_.erase(before->meta.uid);
    tallies_.erase(before->meta.uid);
  }
  if (after == nullptr) {
    in_namespace_[before->meta.ns].erase(id);
    failures_.erase(id);
    adopting_.erase(id);
  }
}

void WorkloadKeeper::OnPod(const PodPtr& before, const PodPtr& after) {
  pod_family_.See(before, after);
  for (const PodPtr& pod : {before, after}) {
    if (pod != nullptr) VisitOwner(pod->meta);
  }
  if (after == nullptr) return;
  OfferForAdoption(after->meta, /*pod=*/true);
  const cluster::OwnerReference* owner = ControllerOf(after->meta);
  if (owner == nullptr || owner->kind != "Job" || !after->Finished()) return;
  const WorkloadPtr job = controllers_[kJob].cache.Get(kube::KeyOf(after->meta.ns, owner->name));
  if (job == nullptr || job->meta.uid != owner->uid) return;
  // Pods that a controller or a user has removed while they ran do not count as failures.
  if (after->meta.deleted && after->phase == "Failed") return;
  JobTally::End end{after->phase == "Succeeded", std::nullopt, after->ended.value_or(clock_.Now())};
  const auto index = after->meta.annotations.find(kCompletionIndex);
  if (index != after->meta.annotations.end()) end.index = ParseInt(index->second);
  tallies_[owner->uid].ended.emplace(after->meta.uid, end);
}

void WorkloadKeeper::OnNode(const NodePtr& before, const NodePtr& after) {
  if (before != nullptr && after != nullptr && SameForDaemons(*before, *after)) return;
  const auto sets = controllers_[kDaemonSet].cache.Snapshot();
  for (const WorkloadPtr& set : *sets) {
    const auto daemons = daemons_.find(set->meta.uid);
    if (daemons == daemons_.end() || !daemons->second.pod) continue;  // all nodes are considered
    auto& nodes = daemons->second.nodes;
    const std::string& name = after != nullptr ? after->meta.name : before->meta.name;
    const bool wants = after != nullptr && WantsDaemon(*daemons->second.pod, *after);
    if (!wants && nodes.erase(name) == 0) continue;
    if (wants) nodes[name] = after;
    due_.Put({kDaemonSet, kube::KeyOf(set->meta.ns, set->meta.name)}, clock_.Now());
  }
}

void WorkloadKeeper::VisitOwner(const cluster::ObjectMeta& meta) {
  const cluster::OwnerReference* owner = ControllerOf(meta);
  const auto kind = owner == nullptr ? std::nullopt : KindOf(*owner);
  if (!kind) return;
  Id id{*kind, kube::KeyOf(meta.ns, owner->name)};
  if (controllers_[*kind].cache.Get(id.key) != nullptr) due_.Put(id, clock_.Now());
}

// Objects whose selector matches an object without a controller look for orphans.
void WorkloadKeeper::OfferForAdoption(const cluster::ObjectMeta& meta, bool pod) {
  if (ControllerOf(meta) != nullptr || meta.labels.empty() || meta.deleted) return;
  const auto here = in_namespace_.find(meta.ns);
  if (here == in_namespace_.end()) return;
  for (const Id& id : here->second) {
    if (pod != (id.kind != kDeployment)) continue;
    const WorkloadPtr self = controllers_[id.kind].cache.Get(id.key);
    if (self == nullptr || !Selects(*self, meta.labels)) continue;
    adopting_.insert(id);
    due_.Put(id, clock_.Now());
  }
}

bool WorkloadKeeper::Step() {
  Watch();
  const std::optional<Id> id = due_.Take(clock_.Now());
  if (!id) return false;
  const Status synced = Sync(*id);
  if (synced.ok()) {
    failures_.erase(*id);
    return true;
  }
  log_.Note(name_, fmt::format("cannot settle {} {}: {}", controllers_[id->kind].resource->kind,
                               id->key, synced.ToString()));
  due_.Put(*id, clock_.Now() + kRetry.After(++failures_[*id]));
  return true;
}

Status WorkloadKeeper::Sync(const Id& id) {
  Controller& controller = controllers_[id.kind];
  const WorkloadPtr self = controller.cache.Get(id.key);
  if (self == nullptr || self->meta.deleted) return Status::Ok();
  if (adopting_.contains(id)) {
    NOS_RETURN_IF_ERROR(Adopt(id.kind, *self));
    adopting_.erase(id);
    Watch();
  }
  const WorkloadView view = ViewOf(id.kind, *self);
  for (const PodPtr& pod : view.pods) {
    if (!Selects(*self, pod->meta.labels)) return Release(*self, *pod);
  }
  const WorkloadPlan plan = controller.decide(view);
  NOS_RETURN_IF_ERROR(CarryOut(id.kind, *self, plan));
  if (plan.again) due_.Put(id, *plan.again);
  return Status::Ok();
}

WorkloadView WorkloadKeeper::ViewOf(Kind kind, const WorkloadObject& self) {
  WorkloadView view{self, clock_.Now(), {}, {}, {}, {}, {}};
  if (kind == kDeployment) {
    view.sets = set_family_.Of(self.meta.uid);
    return view;
  }
  view.pods = pod_family_.Of(self.meta.uid);
  if (kind == kStatefulSet || kind == kDaemonSet) {
    view.revisions = revision_family_.Of(self.meta.uid);
  }
  if (kind == kJob) {
    const auto tally = tallies_.find(self.meta.uid);
    if (tally != tallies_.end()) view.tally = tally->second;
  }
  if (kind == kDaemonSet) {
    Daemons& daemons = daemons_[self.meta.uid];
    const int64_t generation = NumberAt(self.object, 0, "metadata", "generation");
    if (daemons.generation != generation) {
      daemons.generation = generation;
      ChooseNodes(self, daemons);
    }
    for (const auto& [name, node] : daemons.nodes) view.nodes.push_back(node);
  }
  return view;
}

void WorkloadKeeper::ChooseNodes(const WorkloadObject& set, Daemons& daemons) {
  daemons.nodes.clear();
  auto pod = DaemonPod(set);
  daemons.pod = pod.ok() ? std::optional(std::move(*pod)) : std::nullopt;
  if (!daemons.pod) return;
  const auto nodes = nodes_.Snapshot();
  for (const NodePtr& node : *nodes) {
    if (WantsDaemon(*daemons.pod, *node)) daemons.nodes[node->meta.name] = node;
  }
}

Status WorkloadKeeper::Adopt(Kind kind, const WorkloadObject& self) {
  if (kind == kDeployment) {
    for (const WorkloadPtr& set : set_family_.FreeIn(self.meta.ns)) {
      if (set->meta.deleted || !Selects(self, set->meta.labels)) continue;
      NOS_RETURN_IF_ERROR(AdoptOne(kind, self, kReplicaSets, set->meta));
    }
    return Status::Ok();
  }
  for (const PodPtr& pod : pod_family_.FreeIn(self.meta.ns)) {
    if (!IsActive(*pod) || !Selects(self, pod->meta.labels)) continue;
    NOS_RETURN_IF_ERROR(AdoptOne(kind, self, kube::kPods, pod->meta));
  }
  return Status::Ok();
}

Status WorkloadKeeper::AdoptOne(Kind kind, const WorkloadObject& self,
                                const kube::Resource& resource, const cluster::ObjectMeta& orphan) {
  JsonArray owners = OwnersAsJson(orphan);
  owners.push_back(OwnerReferenceTo(self, *controllers_[kind].resource));
  const Json patch = JsonObject{
      {"metadata", JsonObject{{"uid", orphan.uid}, {"ownerReferences", std::move(owners)}}}};
  return Forgive(
      client_.Patch(resource, orphan.ns, orphan.name, kube::PatchType::kMerge, patch).status());
}

// A pod whose labels were changed is no longer ours.
Status WorkloadKeeper::Release(const WorkloadObject& self, const cluster::Pod& pod) {
  cluster::ObjectMeta meta = pod.meta;
  std::erase_if(meta.owners, [&](const auto& owner) { return owner.uid == self.meta.uid; });
  const Json patch = JsonObject{
      {"metadata", JsonObject{{"uid", meta.uid}, {"ownerReferences", OwnersAsJson(meta)}}}};
  return Forgive(
      client_.Patch(kube::kPods, meta.ns, meta.name, kube::PatchType::kMerge, patch).status());
}

Status WorkloadKeeper::CarryOut(Kind kind, const WorkloadObject& self, const WorkloadPlan& plan) {
  const kube::Resource& resource = *controllers_[kind].resource;
  for (const auto& [target, patch] : plan.change) {
    Json checked = patch;
    MakeObject(checked, "metadata")["uid"] = target.uid;
    NOS_RETURN_IF_ERROR(Forgive(
        client_.Patch(*target.resource, self.meta.ns, target.name, kube::PatchType::kMerge, checked)
            .status()));
  }
  for (const WorkloadPlan::Target& target : plan.remove) {
    NOS_RETURN_IF_ERROR(Forgive(
        client_.Delete(*target.resource, self.meta.ns, target.name, Precondition(target.uid))));
  }
  // The status shows the counts even if pods are refused.
  Status created;
  for (const WorkloadPlan::Creation& creation : plan.create) {
    if (created.ok()) created = Create(self, resource, creation);
  }
  if (plan.status) NOS_RETURN_IF_ERROR(WriteStatus(kind, self, *plan.status));
  return created;
}

Status WorkloadKeeper::Create(const WorkloadObject& self, const kube::Resource& owner,
                              const WorkloadPlan::Creation& creation) {
  const auto created = client_.Create(*creation.resource, self.meta.ns, creation.object);
  if (created.ok()) {
    log_.Note(name_,
              fmt::format("creates {} {} for {} {}", creation.resource->kind,
                          FindString(*created, "metadata", "name"), owner.kind, self.meta.name));
    return DeleteIfOrphaned(self, owner, *creation.resource, *created);
  }
  const Status& why = created.status();
  // Claims of volumes stay when their pods go, and a revision may come from an earlier attempt.
  const bool stays = creation.resource->kind == "PersistentVolumeClaim" ||
                     creation.resource == &kControllerRevisions;
  if (why.code() == Code::kAlreadyExists && stays) return Status::Ok();
  Complain(self, owner, why);
  return why;
}

// A client may have deleted the owner since the caches were read. A deletion from now on finds the
// new object among the owner's dependents.
Status WorkloadKeeper::DeleteIfOrphaned(const WorkloadObject& self, const kube::Resource& owner,
                                        const kube::Resource& resource, const Json& created) {
  const auto live = client_.Get(owner, self.meta.ns, self.meta.name);
  if (!live.ok() && live.status().code() != Code::kNotFound) return live.status();
  if (live.ok() && FindString(*live, "metadata", "uid") == self.meta.uid) return Status::Ok();
  const std::string uid(FindString(created, "metadata", "uid"));
  return Forgive(client_.Delete(resource, self.meta.ns,
                                std::string(FindString(created, "metadata", "name")),
                                Precondition(uid)));
}

Status WorkloadKeeper::WriteStatus(Kind kind, const WorkloadObject& self,
                                   const JsonObject& status) {
  const Json* before = Find(self.object, "status");
  if (before != nullptr && *before == Json(status)) return Status::Ok();
  const kube::Resource& resource = *controllers_[kind].resource;
  // The whole status, because counts that are absent are zero. Another spec does not matter: the
  // generation says which one was seen.
  Json object = self.object;
  MakeObject(object, "metadata").erase("resourceVersion");
  object.get_object()["status"] = status;
  return Forgive(client_.Update(resource, self.meta.ns, object, "status").status());
}

// An Event, as kubectl describe shows it.
void WorkloadKeeper::Complain(const WorkloadObject& self, const kube::Resource& resource,
                              const Status& why) {
  const std::string now = FormatTime(clock_.Now());
  const Json event = JsonObject{
      {"metadata", JsonObject{{"generateName", self.meta.name + "."}}},
      {"involvedObject", JsonObject{{"apiVersion", resource.group + "/" + resource.version},
                                    {"kind", resource.kind},
                                    {"namespace", self.meta.ns},
                                    {"name", self.meta.name},
                                    {"uid", self.meta.uid}}},
      {"type", "Warning"},
      {"reason", "FailedCreate"},
      {"message", "Error creating: " + why.message()},
      {"source", JsonObject{{"component", ToLower(resource.kind) + "-controller"}}},
      {"firstTimestamp", now},
      {"lastTimestamp", now},
      {"count", 1}};
  // Without the Event, the log and the next attempt say the same.
  (void)client_.Create(kube::kEvents, self.meta.ns, event);
}

}  // namespace nos::sim
