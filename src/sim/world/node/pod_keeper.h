// The part of kube-controller-manager that a virtual cluster needs. Pods that a node refused
// (UnexpectedAdmissionError, OutOfcpu...) get a successor, like those of a Job. Pods of deleted
// nodes are removed and get one too; so does a pod with a controller that was evicted through the
// eviction API or by the scheduler, kFirstPause later. Optionally removes finished pods after a
// while, except those of Jobs.
//
// Only pods with the label kPodLabel get successors: "a" is followed by "a-r1", "a-r2"..., after
// pauses that double from kFirstPause up to kMaxPause.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/objects.h"
#include "kube/cache.h"
#include "kube/client.h"
#include "sim/world/events/actor.h"
#include "sim/world/events/log.h"

namespace nos::sim {

class PodKeeper final : public Actor {
 public:
  // `keep_finished`: how long finished pods are kept; nullopt: for ever.
  PodKeeper(kube::Transport& api, const Clock& clock, EventLog& log,
            std::optional<Duration> keep_finished);

  const std::string& name() const override { return name_; }
  bool Step() override;
  std::optional<Time> NextWake() const override;
  static constexpr Duration kFirstPause = std::chrono::seconds(1);
  static constexpr Duration kMaxPause = std::chrono::seconds(30);

  // Number of successors created so far.
  int recreated() const { return recreated_; }

 private:
  // The complete object, because the successor is created from it.
  struct Kept {
    cluster::ObjectMeta meta;  // required by the cache
    Json object;
  };
  using KeptPtr = std::shared_ptr<const Kept>;
  static Status Keep(JsonSource json, Kept& to);

  bool TakeChange();
  void ReplaceLater(const KeptPtr& pod);
  void Replace(const Json& pod);
  void Remove(const Json& pod);
  void RemovePodsOf(const std::string& node);

  std::string name_ = "pod keeper";
  kube::Client client_;
  const Clock& clock_;
  EventLog& log_;
  std::optional<Duration> keep_finished_;
  kube::Cache<Kept> pods_;
  kube::Cache<cluster::Node> nodes_;
  std::multimap<Time, KeptPtr> to_replace_;
  std::deque<std::string> gone_nodes_;
  std::vector<std::string> just_bound_;  // nodes of newly bound pods
  std::deque<std::pair<Time, KeptPtr>> finished_;
  int recreated_ = 0;
};

}  // namespace nos::sim
