// From Kubernetes objects to a Problem: pods that are alike become classes, resources become
// dimensions, and every filter that looks at the node object alone becomes a table of yes and no.
//
//   const Translation translation = Translate(snapshot, pending, frameworks, options);
//   Search(translation.problem, ...);
//
// The pods, the snapshot and the options must outlive it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cluster/resources.h"
#include "cluster/snapshot.h"
#include "planning/planner.h"
#include "planning/model/problem.h"
#include "scheduling/framework_choice.h"

namespace nos::planning {

using Pods = std::span<const std::shared_ptr<const cluster::Pod>>;

struct Translation {
  Problem problem;
  Pods pending;
  const gpu::Catalogue* catalogue = nullptr;  // of the snapshot: all models there could be
  // By pending pod; -1: it does not wait for a node, or waits for its gang.
  std::vector<int> class_of;
  std::vector<const Gang*> gang_of;       // by pending pod; null: it counts by itself
  std::vector<const Gang*> gangs;         // those of Problem::gangs
  std::vector<std::vector<int>> members;  // by class: pending pods, longest waiting first
  std::vector<const cluster::NodeInfo*> nodes;
  std::vector<cluster::ResourceId> dimensions;
  std::vector<std::string> slice_names;      // resource name of each slice
  std::vector<int> row_pod;                  // by row of Problem::allowed: a pod that has it
  std::vector<scheduling::Cycle> row_cycle;  // and its way through the pre-filters
  // Rows of pods that live filters concern (live_filters.h), one pod each, and what those filters
  // said when the plan was played through, by row and node.
  std::set<int> live_rows;
  std::map<std::pair<int, int>, scheduling::Verdict> objections;
};

Translation Translate(const cluster::ClusterSnapshot& snapshot, Pods pending,
                      const scheduling::FrameworkChoice& frameworks, const PlanOptions& options);

// All that the filters object to on the cluster as it is, resources aside.
std::vector<scheduling::Verdict> ObstaclesNow(const scheduling::Framework& framework,
                                              const scheduling::Cycle& cycle,
                                              const cluster::Pod& pod,
                                              const cluster::NodeInfo& node);
// The first of them, or that it fits.
scheduling::Verdict VerdictNow(const scheduling::Cycle& cycle, const cluster::Pod& pod,
                               const cluster::NodeInfo& node);

}  // namespace nos::planning
