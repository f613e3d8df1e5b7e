// Converts Kubernetes objects into a Problem: equal pods become classes, resources become
// dimensions, and the filters that depend on the node object alone become a table of yes and no.
//
//   const Translation translation = Translate(snapshot, pending, frameworks, options);
//   Search(translation.problem, ...);
//
// The pods, the snapshot and the options must outlive the translation.
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
#include "planning/model/problem.h"
#include "planning/plan.h"
#include "scheduling/cycle.h"
#include "scheduling/framework_choice.h"

namespace nos::planning {

using Pods = std::span<const std::shared_ptr<const cluster::Pod>>;

struct Translation {
  Problem problem;
  Pods pending;
  const gpu::Catalogue* catalogue = nullptr;  // of the snapshot: all known models
  // By pending pod; -1: it does not wait for a node, or its gang is hopeless.
  std::vector<int> class_of;
  std::vector<const Gang*> gang_of;       // by pending pod; null: a single pod
  std::vector<const Gang*> gangs;         // parallel to Problem::gangs
  std::vector<std::vector<int>> members;  // by class: pending pods, longest waiting first
  std::vector<const cluster::NodeInfo*> nodes;
  std::vector<cluster::ResourceId> dimensions;
  std::vector<std::string> slice_names;      // resource name of each slice
  std::vector<int> row_pod;                  // by row of Problem::allowed: an example pod
  std::vector<scheduling::Cycle> row_cycle;  // and its result of the pre-filters
  // Rows of pods with live filters (live_filters.h), one pod per row, and the objections of these
  // filters during the replay, by row and node.
  std::set<int> live_rows;
  std::map<std::pair<int, int>, scheduling::Verdict> objections;
};

Translation Translate(const cluster::ClusterSnapshot& snapshot, Pods pending,
                      const scheduling::FrameworkChoice& frameworks, const PlanOptions& options);

// All objections of the filters on the current cluster, without resources.
std::vector<scheduling::Verdict> ObstaclesNow(const scheduling::Framework& framework,
                                              const scheduling::Cycle& cycle,
                                              const cluster::Pod& pod,
                                              const cluster::NodeInfo& node);
// The first objection, or "fits".
scheduling::Verdict VerdictNow(const scheduling::Cycle& cycle, const cluster::Pod& pod,
                               const cluster::NodeInfo& node);

}  // namespace nos::planning
