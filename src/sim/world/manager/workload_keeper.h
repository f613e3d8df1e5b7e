// The controllers of kube-controller-manager that make pods: it keeps the pods of Deployments,
// ReplicaSets, StatefulSets, DaemonSets and Jobs as these objects describe, and writes their
// status. Deletions cascade in the API server (apiserver/storage/delete.h).
//
// An object is looked at again when it, one of its pods, or for a DaemonSet a node has changed, and
// costs as much as it has pods. Pods and ReplicaSets without a controller are adopted if the
// selector matches, and pods whose labels no longer match are released, like in Kubernetes.
//
// One thread.
#pragma once

#include <array>
#include <compare>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "kube/cache.h"
#include "kube/client.h"
#include "sim/world/events/actor.h"
#include "sim/world/events/log.h"
#include "sim/world/manager/due_queue.h"
#include "sim/world/manager/family.h"

namespace nos::sim {

class WorkloadKeeper final : public Actor {
 public:
  WorkloadKeeper(kube::Transport& api, const Clock& clock, EventLog& log);

  const std::string& name() const override { return name_; }
  bool Step() override;
  std::optional<Time> NextWake() const override { return due_.Next(); }
  // Takes note of new objects that make pods.
  void Watch();
  // True once there was such an object. Before that there is nothing to do, and pods and nodes are
  // not watched.
  bool any() const { return any_; }

 private:
  // In the order of their decisions at the same time: makers of makers come first.
  enum Kind { kDeployment, kReplicaSet, kStatefulSet, kDaemonSet, kJob, kKinds };
  struct Id {
    Kind kind{};
    std::string key;  // "ns/name"
    friend auto operator<=>(const Id&, const Id&) = default;
  };
  struct Controller {
    const kube::Resource* resource;
    WorkloadPlan (*decide)(const WorkloadView& view);
    kube::Cache<WorkloadObject> cache;
  };
  // The nodes that a DaemonSet wants, by the generation of its template.
  struct Daemons {
    int64_t generation = 0;
    std::optional<cluster::Pod> pod;
    std::map<std::string, NodePtr> nodes;
  };

  static std::optional<Kind> KindOf(const cluster::OwnerReference& owner);
  void OnWorkload(Kind kind, const std::string& key, const WorkloadPtr& before,
                  const WorkloadPtr& after);
  void OnPod(const PodPtr& before, const PodPtr& after);
  void OnNode(const NodePtr& before, const NodePtr& after);
  void VisitOwner(const cluster::ObjectMeta& meta);
  void OfferForAdoption(const cluster::ObjectMeta& meta, bool pod);
  Status Sync(const Id& id);
  WorkloadView ViewOf(Kind kind, const WorkloadObject& self);
  void ChooseNodes(const WorkloadObject& set, Daemons& daemons);
  Status Adopt(Kind kind, const WorkloadObject& self);
  Status AdoptOne(Kind kind, const WorkloadObject& self, const kube::Resource& resource,
                  const cluster::ObjectMeta& orphan);
  Status Release(const WorkloadObject& self, const cluster::Pod& pod);
  Status CarryOut(Kind kind, const WorkloadObject& self, const WorkloadPlan& plan);
  Status Create(const WorkloadObject& self, const kube::Resource& owner,
                const WorkloadPlan::Creation& creation);
  Status DeleteIfOrphaned(const WorkloadObject& self, const kube::Resource& owner,
                          const kube::Resource& resource, const Json& created);
  Status WriteStatus(Kind kind, const WorkloadObject& self, const JsonObject& status);
  void Complain(const WorkloadObject& self, const kube::Resource& resource, const Status& why);

  std::string name_ = "workload keeper";
  kube::Client client_;
  const Clock& clock_;
  EventLog& log_;
  std::array<Controller, kKinds> controllers_;
  kube::Cache<WorkloadObject> revision_cache_;
  kube::Cache<cluster::Pod> pods_;
  kube::Cache<cluster::Node> nodes_;
  Family<cluster::Pod> pod_family_;
  Family<WorkloadObject> set_family_, revision_family_;
  std::map<std::string, std::set<Id>> in_namespace_;  // objects that make pods
  std::map<std::string, Daemons> daemons_;            // by uid
  std::map<std::string, JobTally> tallies_;           // by uid
  std::set<Id> adopting_;                             // these look for orphans
  DueQueue<Id> due_;
  std::map<Id, int64_t> failures_;  // in a row
  bool any_ = false;
};

}  // namespace nos::sim
