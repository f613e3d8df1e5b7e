// Finds pods that must be placed together or not at all. A gang is given by one of:
//   - the label scheduling.x-k8s.io/pod-group, whose PodGroup (sigs.k8s.io/scheduler-plugins,
//     coscheduling) has the minimum number of members;
//   - spec.schedulingGroup, which names a PodGroup of scheduling.k8s.io with gang policy;
//   - spec.workloadRef, which names such a group of a Workload (KEP 4671).
//
//   gangs.Set(before, after);                      // for each pod event of the watch
//   const GangSize size = SizeOfGang(*pod, *snapshot.ShareContext());
//   for (const auto& member : gangs.Of(GangOf(*pod))) ...
//
// Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/context.h"
#include "cluster/gangs.h"
#include "cluster/objects.h"
#include "scheduling/plugin.h"

namespace nos::controllers {

using cluster::GangOf;
using cluster::kPodGroupLabel;

struct GangSize {
  int least = 1;        // members that must be placed together; 1: each pod is placed alone
  std::string problem;  // why the size is unknown
};
GangSize SizeOfGang(const cluster::Pod& pod, const cluster::ClusterContext& context);

// True if any object exists that could define the size of the pod's gang.
bool KnowsGroups(const cluster::Pod& pod, const cluster::ClusterContext& context);

// The pod has not failed and is not being deleted.
bool CountsInGang(const cluster::Pod& pod);
// The pod counts and has a node. A succeeded pod counts, because it has done its part for the
// others.
bool IsPlacedInGang(const cluster::Pod& pod);

class Gangs {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // `before` is null for a new pod, `after` for a deleted one.
  void Set(const Pod& before, const Pod& after);
  // Members that count: by priority, then oldest first.
  std::vector<Pod> Of(const std::string& gang) const;

 private:
  std::map<std::string, std::map<std::string, Pod>> members_;  // by gang and pod key
};

// Stands for reasons other than filters that keep a gang pending: too few members, or an unknown
// size. It is part of no framework. The queue asks it which events may help.
class GangScheduling final : public scheduling::Plugin {
 public:
  std::string Name() const override { return "GangScheduling"; }
  bool MayHelp(const scheduling::ClusterEvent& event, const cluster::Pod& pod) const override;
};

}  // namespace nos::controllers
