// A pod would rather run where its images are already: the more of their bytes a node has, the
// better, but images that few nodes have count less, lest all pods of one image crowd there.
//
// Semantics: kube-scheduler's ImageLocality, but that an image is as big as the node itself says
// (there it is as big as the first node said that told of it).
#pragma once

#include "scheduling/plugin.h"

namespace nos::scheduling {

// The score depends on node objects alone, but on all of them: how many have an image.
class ImageLocality final : public ScorePlugin {
 public:
  std::string Name() const override { return "ImageLocality"; }
  DependsOn ScoreDependence() const override { return DependsOn::kCluster; }
  bool PreScore(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot, Nodes feasible,
                CycleState& state) const override;
  // Pods bring no images before their node's object tells.
  bool UpdateScore(const cluster::Pod&, const cluster::Pod&, bool, const cluster::NodeInfo&,
                   CycleState&, TouchDomain) const override {
    return true;
  }
  Anew UpdateFeasible(const cluster::NodeInfo&, bool, CycleState&) const override {
    return Anew::kNothing;
  }
  bool HeedsImages() const override { return true; }
  // 0 without PreScore.
  int64_t Score(const CycleState& state, const cluster::Pod& pod,
                const cluster::NodeInfo& node) const override;
  bool IsAbsolute() const override { return true; }
};

// As nodes name it: "nginx" is "nginx:latest".
std::string FullImageName(std::string_view image);

}  // namespace nos::scheduling
