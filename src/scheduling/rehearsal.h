// What would become of a cluster if pods were placed and others were evicted, one after the other:
// on a copy, by the rules by which an Engine places them.
//
//   Rehearsal rehearsal = engine.Rehearse();
//   if (const auto* node = rehearsal.FindNode(framework, pod, promises, ""))
//     rehearsal.Place(framework, pod, node->node->meta.name);
//
// The engine that it is of must outlive it. One owner thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "cluster/snapshot.h"
#include "scheduling/framework.h"
#include "scheduling/engine/kind_tables.h"
#include "scheduling/engine/promises.h"

namespace nos::scheduling {

class Rehearsal {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Learnt = std::map<const Framework*, CycleState>;

  Rehearsal(cluster::ClusterSnapshot snapshot, const Learnt& learnt)
      : snapshot_(std::move(snapshot)), learnt_(learnt) {}

  // With budgets that allow fewer disruptions than there were, by those that were evicted.
  const cluster::ClusterSnapshot& snapshot() const { return snapshot_; }
  // `preferred`, if it fits there, else the best node where it does. Null: there is none.
  const cluster::NodeInfo* FindNode(const Framework& framework, const Pod& pod,
                                    const Promises& promises, std::string_view preferred);
  // It takes its place there, and what plugins reserve for it. False: one of them refuses; it has
  // taken nothing then.
  bool Place(const Framework& framework, const Pod& pod, const std::string& node);
  // It has ended, and the node's agent has told so.
  void Vacate(const Pod& pod, const std::string& node);
  void Evict(const Pod& victim, const std::string& node);
  void RemoveNode(const std::string& name);

 private:
  cluster::ClusterSnapshot snapshot_;
  const Learnt& learnt_;
  KindTables tables_;
  uint64_t around_ = 0;  // counts what was reserved
};

// What the framework learnt last; nothing if it has not.
const CycleState& LearntOf(const Rehearsal::Learnt& learnt, const Framework& framework);

// The pod with the exact instances that it will have on the node, if they are to be cut there;
// else as it is. `learnt`: what the framework learnt last.
std::shared_ptr<const cluster::Pod> WithInstances(const Framework& framework,
                                                  const CycleState& learnt,
                                                  const cluster::NodeInfo& node,
                                                  std::shared_ptr<const cluster::Pod> pod);

}  // namespace nos::scheduling
