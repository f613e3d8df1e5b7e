// Removes spec annotations that no agent can carry out: edited by hand, or left over from a removed
// GPU. The GPUs stay as they are. The pending pods get a new plan.
//
// A node is read again only after a change. If a writer damages a node again and again, repairs
// back off with growing pauses, for each node separately. Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/annotations.h"
#include "reconcile/back_off_table.h"

namespace nos::controllers {

class Repairs {
 public:
  using Node = std::shared_ptr<const cluster::Node>;
  struct Found {
    Node node;
    cluster::SpecRepair repair;
  };

  // A node backs off by `pauses` after a repair. The back-off starts over for a node that stayed
  // valid for `pauses.limit`.
  Repairs(BackOff pauses, const gpu::Catalogue& catalogue)
      : catalogue_(catalogue), rests_(pauses) {}

  // The repairs to write now, for at most `limit` nodes.
  std::vector<Found> Update(const std::vector<Node>& nodes, size_t limit, Time now);
  // When a node in back-off may be repaired again.
  std::optional<Time> NextChange(Time now) const { return rests_.NextEnd(now); }

 private:
  const gpu::Catalogue& catalogue_;
  std::map<std::string, Node> whole_;  // the last version of each node without damage
  reconcile::BackOffTable<> rests_;    // nodes after a repair
};

}  // namespace nos::controllers
