// The smallest change that would let a pod run that a plan leaves pending. The search is that of
// nos explain (scheduling/explain.h), beside the pods that the plan places, so that one situation
// has one remedy everywhere.
//
//   AddRemedies(snapshot, options.gangs, frameworks, quotas, out_of_time, plan);  // all at once
//   RemedySearch search(snapshot, plan, options.gangs, frameworks, quotas);
//   const auto remedy = search.Find(*pod);                                   // one after the other
//
// A search visits every node, which takes milliseconds for thousands of nodes. Pods of one kind
// share one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/snapshot.h"
#include "planning/plan.h"
#include "quota/balance.h"
#include "scheduling/explain_gang.h"
#include "scheduling/framework_choice.h"
#include "scheduling/remedies.h"

namespace nos::planning {

class RemedySearch {
 public:
  // `snapshot`: before the plan; its catalogue and the frameworks must outlive this. `gangs`: of
  // the plan's pods. `quotas`: which namespaces have one, where no pod is evicted for priority
  // alone; their use does not matter.
  RemedySearch(cluster::ClusterSnapshot snapshot, const Plan& plan, const std::vector<Gang>& gangs,
               scheduling::FrameworkChoice frameworks, quota::Balance quotas);
  RemedySearch(const RemedySearch&) = delete;
  RemedySearch& operator=(const RemedySearch&) = delete;
  ~RemedySearch();

  // For a pod that the plan leaves pending. Texts name pods by PodText (pod_names.h). Pods that
  // could be evicted for it are waited for: their scheduler decides on evictions.
  scheduling::Remedy Find(const cluster::Pod& pod);
  // The same if a pod of its kind was searched for already; nullopt: Find would search.
  std::optional<scheduling::Remedy> FindKnown(const cluster::Pod& pod) const;
  // Nodes visited by all searches.
  int64_t visited() const { return visited_; }

 private:
  struct Group;

  const Group* GroupOf(const cluster::Pod& pod) const;
  std::string KindOf(const cluster::Pod& pod) const;
  scheduling::Remedy Search(const cluster::Pod& pod);
  scheduling::Remedy HasRoomOn(const std::string& node) const;

  cluster::ClusterSnapshot after_;  // the plan
  const std::vector<KeptSlots> kept_;
  const scheduling::FrameworkChoice frameworks_;
  const quota::Balance quotas_;
  const std::unique_ptr<const scheduling::Framework> partitioning_;
  std::vector<Group> groups_;
  std::map<std::string, size_t> group_of_;  // by pod key
  std::map<std::string, scheduling::Remedy> by_kind_;
  int64_t visited_ = 0;
};

// Adds remedies to all pods of the plan that have none, those of higher priority first. When some
// 200,000 nodes have been visited, or 4,000 after the time limit, other kinds of pods get none.
// `out_of_time` may be empty.
void AddRemedies(const cluster::ClusterSnapshot& snapshot, const std::vector<Gang>& gangs,
                 const scheduling::FrameworkChoice& frameworks, const quota::Balance& quotas,
                 const std::function<bool()>& out_of_time, Plan& plan);

}  // namespace nos::planning
