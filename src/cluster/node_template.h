// The node configuration of a NodePool whose spec omits it: learned from existing nodes, and stored
// in status.template for the time without nodes.
//
//   pool.learned = RecordTemplate(pool, nodes, pods);
//   if (!IsDescribed(WithTemplate(pool))) ...   // still unknown: WhyNotDescribed(pool)
//
// Records the template from the NodePool's nodes that are Ready and accept pods. If nodes differ,
// the most common configuration wins, or on a tie that of the first node by name; but the stored
// template stays as long as some node matches it. Capacity for pods is the allocatable amount less
// the requests of the node's DaemonSet and static pods; the minimum over alike nodes. GPUs are read
// from labels. The template has the labels that all nodes share, and permanent taints.
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

// Amounts of alike nodes differ by less than this fraction (1/8): machines of one type do not all
// have the same memory, and a DaemonSet pod may be missing while it is recreated.
inline constexpr int kAlikePart = 8;

// `pool` as read, or with WithTemplate applied. nullopt if there is no node to learn from and no
// stored template.
std::optional<NodeTemplate> RecordTemplate(const NodePool& pool,
                                           std::span<const std::shared_ptr<const Node>> nodes,
                                           std::span<const std::shared_ptr<const Pod>> pods);

// Completes the spec from the template: gpu and taints as a whole, amounts and labels one by one.
// No change if the spec is complete.
NodePool WithTemplate(NodePool pool);
// True if the cpu and memory of its nodes are known.
bool IsDescribed(const NodePool& pool);
// "has no node yet to learn from: ..."
std::string WhyNotDescribed();

// Applies RecordTemplate and WithTemplate to each NodePool, for callers without an autoscaler that
// stores templates. A node that several NodePools select counts for the first.
std::vector<std::shared_ptr<const NodePool>> Described(
    std::vector<std::shared_ptr<const NodePool>> pools,
    std::span<const std::shared_ptr<const Node>> nodes,
    std::span<const std::shared_ptr<const Pod>> pods);

// The JSON of status.template.
Json JsonOf(const NodeTemplate& known);
// The merge patch from `known` to `to`; all of `to` if nothing is known. Null: no template.
Json PatchOf(const std::optional<NodeTemplate>& known, const std::optional<NodeTemplate>& to);

}  // namespace nos::cluster
