// Simulates removing and returning pods on one node and runs the filters on the result. Internal to
// scheduling.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "scheduling/engine/promises.h"
#include "scheduling/framework.h"
#include "scheduling/preemption.h"

namespace nos::scheduling {

// The node in one snapshot.
class OneTrial {
 public:
  OneTrial(const Framework& framework, SnapshotWithCycle with, const cluster::Pod& pod,
           std::string node)
      : framework_(framework),
        snapshot_(std::move(with.snapshot)),
        cycle_(std::move(with.cycle)),
        pod_(pod),
        node_(std::move(node)) {}

  void Remove(const std::shared_ptr<const cluster::Pod>& other) {
    held_[other->Key()] = *snapshot_.Vacate(*other, node_);  // the pod is on the node
    Follow(*other, false);
  }
  void Add(const std::shared_ptr<const cluster::Pod>& other) {
    (void)snapshot_.Return(other, node_, held_[other->Key()]);  // the node exists
    Follow(*other, true);
  }
  bool Fits() const { return framework_.Filter(cycle_, pod_, Node()).fits(); }

 private:
  const cluster::NodeInfo& Node() const { return *snapshot_.Find(node_); }
  void Follow(const cluster::Pod& other, bool came) {
    const auto touch = [](std::string_view, std::string_view) {};
    for (const PreFilterPlugin* plugin : framework_.pre_filters()) {
      if (plugin->Update(pod_, other, came, Node(), cycle_.state, touch)) continue;
      cycle_ = framework_.PreFilter(pod_, snapshot_);
      return;
    }
  }

  const Framework& framework_;
  cluster::ClusterSnapshot snapshot_;
  Cycle cycle_;
  const cluster::Pod& pod_;
  const std::string node_;
  // Instances of removed pods, by pod key.
  std::map<std::string, std::vector<cluster::PromisedInstance>> held_;
};

// The pod must fit alone and, if there are nominations for the node, also beside the nominated
// pods.
class Trial {
 public:
  Trial(const Framework& framework, const cluster::ClusterSnapshot& snapshot, const Cycle& cycle,
        const cluster::Pod& pod, const cluster::NodeInfo& node, const Promises& promises = {})
      : alone_(framework, {snapshot, cycle}, pod, node.node->meta.name) {
    const auto others = promises.find(node.node->meta.name);
    if (others == promises.end()) return;
    beside_.emplace(framework, WithOthers(framework, snapshot, cycle, pod, others->second, node),
                    pod, others->first);
  }

  void Remove(const std::shared_ptr<const cluster::Pod>& other) {
    alone_.Remove(other);
    if (beside_) beside_->Remove(other);
  }
  void Add(const std::shared_ptr<const cluster::Pod>& other) {
    alone_.Add(other);
    if (beside_) beside_->Add(other);
  }
  bool Fits() const { return alone_.Fits() && (!beside_ || beside_->Fits()); }

 private:
  OneTrial alone_;
  std::optional<OneTrial> beside_;
};

}  // namespace nos::scheduling
