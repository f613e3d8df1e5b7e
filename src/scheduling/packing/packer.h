// Chooses a node and devices for pods that ask for whole GPUs, shares of one, or none ("pattern-
// priced node value"): the node where the pod destroys the least worth (node_value.h), found by
// first fit over losses rounded to steps, so that small differences do not scatter pods.
//
//   Packer packer(nodes);                 // in a fixed order, best a shuffled one: ties go first
//   packer.Learn(kind);                   // every arriving pod, whether placed or not
//   if (auto choice = packer.Choose(kind)) packer.Place(kind, *choice);
//   ...
//   packer.Release(kind, choice);         // when the pod ends
//
// It learns only from the pods it was told of; worth is estimated anew after 1, 2, 4... 1024 pods
// and then every 1000. It never rejects a pod that fits somewhere. Choosing costs microseconds on
// a thousand nodes. Deterministic. Not synchronised.
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
  std::vector<int> devices;  // as many as the kind asks for, ascending
};

// The loss in steps: nodes whose losses differ by less than one count as equal. A step is 0.01 GPU;
// for pods without GPU, which matter less than keeping them together, 1/30 GPU, and one step more
// on nodes that have GPUs than on nodes that have none and so can lose nothing, now or later.
int32_t LossSteps(const PodKind& kind, const Node& node, double loss);

class Packer {
 public:
  explicit Packer(std::vector<Node> nodes, Demand demand = {});

  void Learn(const PodKind& kind);

  // Nothing when the pod fits nowhere. With `allowed`, only nodes for which it is true count: the
  // place for filters that packing does not know (taints, affinity).
  std::optional<Choice> Choose(const PodKind& kind);
  std::optional<Choice> Choose(const PodKind& kind, const std::function<bool(size_t)>& allowed);

  // The worth lost, in GPUs, by placing the pod on its best device of that node; nothing when it
  // does not fit. For callers that rank nodes by more than packing.
  std::optional<double> Loss(const PodKind& kind, size_t node);

  // REQUIRES: a choice for the nodes as they are now; for Release, one that was placed.
  void Place(const PodKind& kind, const Choice& choice);
  void Release(const PodKind& kind, const Choice& choice);
  // Replaces what is known of one node.
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
  int64_t due_;  // demand_.learned() at which worth is estimated anew
  NodeValue value_;
  std::vector<std::optional<double>> worth_;  // of each node; nothing = not known yet
  ScoreMemo memo_;
};

}  // namespace nos::scheduling::packing
