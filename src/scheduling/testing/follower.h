// Updates a filter's verdicts on all nodes incrementally, calling the filter only where something
// may have changed, and compares them with a recomputation.
//
//   Follower<VolumeRestrictions> follower(plugin, pod, snapshot);
//   snapshot.Bind(other, "n-3");
//   EXPECT_EQ(follower.Follow(*other, true, "n-3", snapshot), "");
#pragma once

#include <set>
#include <string>
#include <vector>

#include "scheduling/plugin.h"

namespace nos::scheduling::testing {

template <typename FilterType>
class Follower {
 public:
  Follower(const FilterType& plugin, cluster::Pod pod, const cluster::ClusterSnapshot& snapshot)
      : plugin_(plugin), pod_(std::move(pod)) {
    Restart(snapshot);
  }

  // `other` was added to the node or removed from it (`came`). Returns the difference to a
  // recomputation, or "".
  std::string Follow(const cluster::Pod& other, bool came, const std::string& node,
                     const cluster::ClusterSnapshot& snapshot) {
    std::set<std::string> touched = {node};
    const auto touch = [&](std::string_view key, std::string_view value) {
      for (size_t i = 0; i < snapshot.size(); ++i) {
        const cluster::Node& candidate = *snapshot.node(i).node;
        const auto label = candidate.meta.labels.find(key);
        if (label != candidate.meta.labels.end() && label->second == value) {
          touched.insert(candidate.meta.name);
        }
      }
    };
    const cluster::NodeInfo& info = *snapshot.Find(node);
    if (!plugin_.Update(pod_, other, came, info, state_, touch)) {
      Restart(snapshot);
      ++restarts_;
      return "";
    }
    for (size_t i = 0; i < snapshot.size(); ++i) {
      if (touched.contains(snapshot.node(i).node->meta.name)) verdicts_[i] = Ask(i, snapshot);
    }
    const Follower fresh(plugin_, pod_, snapshot);
    for (size_t i = 0; i < snapshot.size(); ++i) {
      const std::string& name = snapshot.node(i).node->meta.name;
      if (verdicts_[i] != fresh.verdicts_[i]) {
        return name + " is said to be '" + verdicts_[i] + "', but is '" + fresh.verdicts_[i] + "'";
      }
      if (Ask(i, snapshot) != verdicts_[i]) return name + " changed, but was not touched";
    }
    return "";
  }
  // Message of each node's verdict; "": the pod fits.
  const std::vector<std::string>& verdicts() const { return verdicts_; }
  // Number of times Update returned false.
  int restarts() const { return restarts_; }

 private:
  void Restart(const cluster::ClusterSnapshot& snapshot) {
    state_ = {};
    const auto outcome = plugin_.PreFilter(pod_, snapshot, state_);
    refused_ = outcome.verdict.message;
    skip_ = outcome.skip;
    verdicts_.clear();
    for (size_t i = 0; i < snapshot.size(); ++i) verdicts_.push_back(Ask(i, snapshot));
  }
  std::string Ask(size_t i, const cluster::ClusterSnapshot& snapshot) const {
    if (!refused_.empty()) return refused_;
    if (skip_ || !plugin_.Concerns(pod_)) return "";
    return plugin_.Filter(state_, pod_, snapshot.node(i)).message;
  }

  const FilterType& plugin_;
  cluster::Pod pod_;
  CycleState state_;
  std::string refused_;
  bool skip_ = false;
  std::vector<std::string> verdicts_;
  int restarts_ = 0;
};

}  // namespace nos::scheduling::testing
