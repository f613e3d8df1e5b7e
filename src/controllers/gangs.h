// Which pods are to be placed together or not at all: those with the label
// scheduling.x-k8s.io/pod-group, of which a PodGroup (sigs.k8s.io/scheduler-plugins, coscheduling)
// says the least count; those whose spec.schedulingGroup names a PodGroup of scheduling.k8s.io with
// gang policy; and those whose spec.workloadRef names such a group of a Workload (KEP 4671).
//
//   gangs.Set(before, after);                      // as the watch tells of pods
//   const GangSize size = SizeOfGang(*pod, *snapshot.ShareAround());
//   for (const auto& member : gangs.Of(GangOf(*pod))) ...
//
// One owner thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/objects.h"
#include "cluster/surroundings.h"
#include "scheduling/plugin.h"

namespace nos::controllers {

inline constexpr std::string_view kPodGroupLabel = "scheduling.x-k8s.io/pod-group";

// "pod group ml/train", "scheduling group ml/train", "group workers of workload ml/train"; "": it
// belongs to none.
std::string GangOf(const cluster::Pod& pod);

struct GangSize {
  int least = 1;        // pods that must be placed together; 1: each for itself
  std::string problem;  // why that cannot be told
};
GangSize SizeOfGang(const cluster::Pod& pod, const cluster::Surroundings& around);

// Whether there is any object that could tell the size of the pod's gang.
bool KnowsGroups(const cluster::Pod& pod, const cluster::Surroundings& around);

// It has neither failed nor is it being deleted.
bool CountsInGang(const cluster::Pod& pod);
// It counts, and has a node: one that has succeeded has done what the others needed it for.
bool IsPlacedInGang(const cluster::Pod& pod);

class Gangs {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // Null: it was not there before, or is gone.
  void Set(const Pod& before, const Pod& after);
  // Those that count: more important ones first, then older ones.
  std::vector<Pod> Of(const std::string& gang) const;

 private:
  std::map<std::string, std::map<std::string, Pod>> members_;  // by gang and pod key
};

// Stands for what keeps a gang waiting beside filters: too few of its pods, or nobody who says how
// many. It runs in no framework; a queue asks it which events may help.
class GangScheduling final : public scheduling::Plugin {
 public:
  std::string Name() const override { return "GangScheduling"; }
  bool MayHelp(const scheduling::ClusterEvent& event, const cluster::Pod& pod) const override;
};

}  // namespace nos::controllers
