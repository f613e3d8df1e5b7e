// The little of kube-controller-manager that a virtual cluster needs: pods that a node refused
// (UnexpectedAdmissionError, OutOfcpu...) get a successor, as a Job's would; pods of nodes that are
// gone are removed and get one too, and so does a pod with a controller that was evicted through
// the eviction API, kFirstPause later; finished pods are removed after a while, if asked for.
//
// Only pods with the label kPodLabel get successors: "a" is followed by "a-r1", "a-r2"..., each
// after a pause twice as long as the last, from kFirstPause to kLongestPause.
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
#include "sim/world/events/event_log.h"

namespace nos::sim {

class PodKeeper final : public Actor {
 public:
  // `keep_finished`: how long finished pods stay; none: for ever.
  PodKeeper(kube::Transport& api, const Clock& clock, EventLog& log,
            std::optional<Duration> keep_finished);

  const std::string& name() const override { return name_; }
  bool Step() override;
  std::optional<Time> NextWake() const override;
  static constexpr Duration kFirstPause = std::chrono::seconds(1);
  static constexpr Duration kLongestPause = std::chrono::seconds(30);

  // Successors made so far.
  int recreated() const { return recreated_; }

 private:
  // A whole object, since a pod is submitted again as it was.
  struct Kept {
    cluster::ObjectMeta meta;  // what the cache needs
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
  std::vector<std::string> just_bound_;  // the nodes of pods
  std::deque<std::pair<Time, KeptPtr>> finished_;
  int recreated_ = 0;
};

}  // namespace nos::sim
