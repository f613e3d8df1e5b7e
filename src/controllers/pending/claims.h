// Promises to pods: the slices planned for a pod stay its own until it is bound, or a deadline
// shows that something else keeps it from running. Such a pod is left out of planning for a while,
// longer each time, so that it does not hold slices for ever that it cannot use.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/objects.h"
#include "kube/work_queue.h"

namespace nos::controllers {

struct Claim {
  std::shared_ptr<const cluster::Pod> pod;
  std::string node;
  Time until{};
};

class Claims {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  // `pauses.base` is also how long a promise holds.
  explicit Claims(kube::BackOff pauses) : pauses_(pauses) {}

  void Add(Pod pod, std::string node, Time now);
  // Takes in what became of the pods (`find` gives a pod as it is now, or null). Returns promises
  // that were not taken up in time.
  std::vector<Claim> Update(const std::function<Pod(const std::string& key)>& find, Time now);
  // The node's slices are there now: the time to take them up begins.
  void Renew(const std::string& node, Time now);
  // The node will not keep its promises.
  void DropNode(const std::string& node);
  void Drop(const std::string& pod) { claims_.erase(pod); }

  bool Holds(const std::string& pod) const { return claims_.contains(pod); }
  // Left out of planning for now.
  bool Pausing(const std::string& pod, Time now) const;
  const std::map<std::string, Claim>& all() const { return claims_; }
  std::optional<Time> NextChange(Time now) const;

 private:
  struct Pause {
    std::string uid;  // of the pod; another of the same name starts afresh
    int times = 0;
    Time until{};
  };

  kube::BackOff pauses_;
  std::map<std::string, Claim> claims_;  // by pod key
  std::map<std::string, Pause> paused_;  // by pod key
};

}  // namespace nos::controllers
