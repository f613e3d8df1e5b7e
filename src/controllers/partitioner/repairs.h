// Takes spec annotations off nodes that no agent can act on: damaged by hand, or left behind by a
// GPU that is gone. The GPUs stay as they are; what pods wait for is planned anew.
//
// A node is read again only when it has changed. Who writes the damage time and again is answered
// with growing pauses, one node not delaying another. One owner thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/annotations.h"
#include "kube/work_queue.h"

namespace nos::controllers {

class Repairs {
 public:
  using Node = std::shared_ptr<const cluster::Node>;
  struct Found {
    Node node;
    cluster::SpecRepair repair;
  };

  // After a repair its node rests for `pauses`. One that stayed whole for `pauses.limit` starts
  // from the beginning.
  Repairs(kube::BackOff pauses, const gpu::Catalogue& catalogue)
      : pauses_(pauses), catalogue_(catalogue) {}

  // What is to be written now, for at most `limit` nodes.
  std::vector<Found> Update(const std::vector<Node>& nodes, size_t limit, Time now);
  // When a node that rests may be repaired again.
  std::optional<Time> NextChange(Time now) const;

 private:
  struct State {
    Node whole;  // as last read, when nothing was wrong with it
    int repairs = 0;
    Time until{};          // rests
    bool waiting = false;  // is damaged, and rests
  };
  std::optional<cluster::SpecRepair> Look(const Node& node, State& state, Time now) const;

  kube::BackOff pauses_;
  const gpu::Catalogue& catalogue_;
  std::map<std::string, State> states_;
};

}  // namespace nos::controllers
