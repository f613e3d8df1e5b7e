// Prefers nodes that already have the pod's images: the score grows with their size. Images on few
// nodes count less, so that pods with the same image do not crowd onto these nodes.
//
// Semantics: kube-scheduler's ImageLocality, except that each node's own report of an image's size
// is used. kube-scheduler uses the size reported by the first node.
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// The score depends on the images of all nodes, because it uses the fraction of nodes with an
// image.
class ImageLocality final : public ScorePlugin {
 public:
  std::string Name() const override { return "ImageLocality"; }
  DependsOn ScoreDependence() const override { return DependsOn::kCluster; }
  bool PreScore(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot, Nodes feasible,
                CycleState& state) const override;
  // A pod adds images to a node only when the Node object lists them.
  bool UpdateScore(const cluster::Pod&, const cluster::Pod&, bool, const cluster::NodeInfo&,
                   CycleState&, TouchDomain) const override {
    return true;
  }
  Recompute UpdateFeasible(const cluster::NodeInfo&, bool, CycleState&) const override {
    return Recompute::kNothing;
  }
  bool DependsOnImages() const override { return true; }
  // Returns 0 without PreScore.
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  bool IsAbsolute() const override { return true; }
};

// Image name in the form that Node objects use: "nginx" becomes "nginx:latest".
std::string FullImageName(std::string_view image);

}  // namespace nos::scheduling
