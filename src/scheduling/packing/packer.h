// Chooses a node and devices for pods that request whole GPUs, a slice of one, or none. Algorithm
// ("pattern-priced node value"): choose the node where the pod destroys the least worth
// (node_value.h), by first fit over losses rounded to steps, so that small differences do not
// scatter pods.
//
//   Packer packer(nodes);                 // fixed order, preferably shuffled: first node wins ties
//   packer.Precompute(kind);                   // every arriving pod, whether placed or not
//   if (auto choice = packer.Choose(kind)) packer.Place(kind, *choice);
//   ...
//   packer.Release(kind, choice);         // when the pod ends
//
// Worth depends only on pods passed to Precompute. It is recomputed after 1, 2, 4, ..., 1024 pods
// and then every 1000. A pod that fits on a node is never rejected. A choice among a thousand nodes
// takes microseconds. Deterministic; not thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "scheduling/packing/demand.h"
#include "scheduling/packing/node.h"
#include "scheduling/packing/node_value.h"
#include "scheduling/packing/score_memo.h"

namespace nos::scheduling::packing {

struct Choice {
  size_t node = 0;           // index into the packer's nodes
  std::vector<int> devices;  // as many as the kind requests, ascending
};

// Loss in steps. Nodes whose losses differ by less than a step count as equal. A step is 0.01 GPU
// for pods with GPUs. It is 1/30 GPU for pods without GPUs, because keeping these together matters
// more than their loss. Nodes with GPUs then count one step more, since nodes without GPUs lose
// nothing now or later.
int32_t LossSteps(const PodKind& kind, const Node& node, double loss);

class Packer {
 public:
  explicit Packer(std::vector<Node> nodes, Demand demand = {});

  void Precompute(const PodKind& kind);

  // Absent: the pod fits on no node. `allowed` restricts the nodes: use it for filters that packing
  // does not model (taints, affinity).
  std::optional<Choice> Choose(const PodKind& kind);
  std::optional<Choice> Choose(const PodKind& kind, const std::function<bool(size_t)>& allowed);

  // Worth lost, in GPUs, by placing the pod on the node's best device. Absent: it does not fit. For
  // callers that combine packing with other criteria.
  std::optional<double> Loss(const PodKind& kind, size_t node);

  // REQUIRES: a choice for the current state of the nodes; for Release, one that was placed.
  void Place(const PodKind& kind, const Choice& choice);
  void Release(const PodKind& kind, const Choice& choice);
  // Replaces the state of one node.
  void Update(size_t node, Node state);

  const std::vector<Node>& nodes() const { return nodes_; }
  const Demand& demand() const { return demand_; }

 private:
  struct Placement {
    double loss = 0;
    int device = -1;
  };

  void EstimateIfDue();
  std::optional<Placement> Evaluate(const PodKind& kind, size_t node);
  std::optional<Score> Steps(const PodKind& kind, size_t node);
  void Changed(size_t node);

  std::vector<Node> nodes_;
  Demand demand_;
  int64_t due_;  // value of demand_.learned() at which worth is recomputed
  NodeValue value_;
  std::vector<std::optional<double>> worth_;  // per node; absent: not computed yet
  ScoreMemo memo_;
};

}  // namespace nos::scheduling::packing
