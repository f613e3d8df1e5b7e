// The objects that make pods: Deployment, ReplicaSet, StatefulSet, DaemonSet and Job; what one of
// them controls; and the changes that bring its pods to the state that it describes.
//
// The functions below decide as kube-controller-manager does (kubernetes 1.34.2, pkg/controller).
// They are pure: WorkloadKeeper (workload_keeper.h) calls them and carries out the plans.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cluster/objects.h"
#include "codec/json.h"
#include "kube/client.h"

namespace nos::sim {

extern const kube::Resource kDeployments, kReplicaSets, kStatefulSets, kDaemonSets, kJobs,
    kControllerRevisions;

// An object of one of these kinds, or a ControllerRevision.
struct WorkloadObject {
  cluster::ObjectMeta meta;
  cluster::LabelSelector selector;
  Json object;
};
Status ReadWorkloadObject(JsonSource json, WorkloadObject& to);

using WorkloadPtr = std::shared_ptr<const WorkloadObject>;
using PodPtr = std::shared_ptr<const cluster::Pod>;
using NodePtr = std::shared_ptr<const cluster::Node>;

// The pods of a Job that have ended, by uid: they count even after they are deleted.
struct JobTally {
  struct End {
    bool succeeded = false;
    std::optional<int64_t> index;  // of an indexed Job
    Time at{};
  };
  std::map<std::string, End> ended;
};

// Everything that belongs to one object.
struct WorkloadView {
  const WorkloadObject& self;
  Time now;
  std::vector<PodPtr> pods;            // that it controls, by name
  std::vector<WorkloadPtr> sets;       // ReplicaSets of a Deployment, by name
  std::vector<WorkloadPtr> revisions;  // ControllerRevisions, by name
  std::vector<NodePtr> nodes;          // for a DaemonSet
  JobTally tally;                      // for a Job
};

struct WorkloadPlan {
  struct Creation {
    const kube::Resource* resource;
    Json object;
  };
  struct Target {
    const kube::Resource* resource;
    std::string name, uid;
  };
  struct Change {
    Target target;
    Json patch;  // a merge patch
  };
  std::vector<Creation> create;
  std::vector<Target> remove;
  std::vector<Change> change;
  std::optional<JsonObject> status;  // complete; absent: it stays
  std::optional<Time> again;         // decide again then, even without a change

  void Remove(const kube::Resource& resource, const cluster::ObjectMeta& meta) {
    remove.push_back({&resource, meta.name, meta.uid});
  }
  void Change(const kube::Resource& resource, const cluster::ObjectMeta& meta, Json patch) {
    change.push_back({{&resource, meta.name, meta.uid}, std::move(patch)});
  }
  void Again(Time when) { again = std::min(again.value_or(when), when); }
};

// REQUIRES of all: the object is not being deleted.
WorkloadPlan DecideDeployment(const WorkloadView& view);
WorkloadPlan DecideReplicaSet(const WorkloadView& view);
WorkloadPlan DecideStatefulSet(const WorkloadView& view);
WorkloadPlan DecideDaemonSet(const WorkloadView& view);
WorkloadPlan DecideJob(const WorkloadView& view);

// The run time of a Job's pods that name none (kRunSeconds): a virtual pod has no program that
// could end.
inline constexpr int kJobSeconds = 60;
// The label with the hash of a Deployment's template, and the annotation with its number.
inline constexpr std::string_view kTemplateHashLabel = "pod-template-hash";
inline constexpr std::string_view kRevision = "deployment.kubernetes.io/revision";
// The annotation and label with a pod's index in an indexed Job.
inline constexpr std::string_view kCompletionIndex = "batch.kubernetes.io/job-completion-index";

// True if the node shall run a pod of this template, for a DaemonSet.
bool WantsDaemon(const cluster::Pod& pod, const cluster::Node& node);
// The pod of a DaemonSet on any node, with the tolerations that every daemon has.
Result<cluster::Pod> DaemonPod(const WorkloadObject& set);

}  // namespace nos::sim
