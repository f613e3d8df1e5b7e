// What the nodes of a pool are like where its spec does not say it: learnt from nodes that are
// there, and remembered in the pool's status.template for when there are none.
//
//   pool.learnt = Learn(pool, nodes, pods);
//   if (!IsDescribed(WithTemplate(pool))) ...   // nobody knows: WhyNotDescribed(pool)
//
// Learnt from are the pool's nodes that are Ready and take pods. Of unlike ones that are counted
// most often, by name the first, unless some are still as was remembered. Pods can have what is
// allocatable less what the node's DaemonSet and static pods ask for; of alike nodes the least.
// GPUs are as labels tell. Labels are those that all of the nodes share, taints those that stay.
//
// Pure functions of values.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cluster/node_pool.h"
#include "cluster/objects.h"
#include "codec/json.h"

namespace nos::cluster {

// Amounts of alike nodes differ by less than this part: machines of a type have not all the same
// memory, and a pod of a DaemonSet may just be made anew.
inline constexpr int kAlikePart = 8;

// `pool` as it was read, or WithTemplate of that. None: there is nothing to learn from, and
// nothing is remembered.
std::optional<NodeTemplate> Learn(const NodePool& pool,
                                  std::span<const std::shared_ptr<const Node>> nodes,
                                  std::span<const std::shared_ptr<const Pod>> pods);

// The pool with what its spec leaves out as it was learnt: gpu and taints as a whole, amounts and
// labels each. The same where the spec says it all.
NodePool WithTemplate(NodePool pool);
// Whether it is known what cpu and memory its nodes have.
bool IsDescribed(const NodePool& pool);
// "has no node yet to learn from: ..."
std::string WhyNotDescribed();

// WithTemplate of each, after learning: for whoever asks no autoscaler. A node that several pools
// select is the first's.
std::vector<std::shared_ptr<const NodePool>> Described(
    std::vector<std::shared_ptr<const NodePool>> pools,
    std::span<const std::shared_ptr<const Node>> nodes,
    std::span<const std::shared_ptr<const Pod>> pods);

// As status.template.
Json JsonOf(const NodeTemplate& known);
// The merge patch that makes one of the other; `to` in full where nothing is known. Null: none.
Json PatchOf(const std::optional<NodeTemplate>& known, const std::optional<NodeTemplate>& to);

}  // namespace nos::cluster
