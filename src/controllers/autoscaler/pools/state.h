// Derives the state of a node pool: existing nodes, starting nodes, whether more nodes may be
// requested, and the status to write.
//
//   const PoolState state = StateOf({pool, nodes, wanted, error}, timeouts, now);
//   const Json patch = PoolStatusPatch(*pool, state.status);   // null: nothing changed
//   if (state.write_back) ...   // reduce the wanted count: late nodes are no longer expected
//
// status.asked is the time since which nodes are awaited; it is absent if all nodes exist. Nodes
// that are missing after twice the pool's startSeconds are late. The pool is then closed for a
// while, longer with each failure in a row, and its wanted count is reduced to the existing nodes.
// Requesting more nodes restarts the time limit only if some nodes have arrived since status.asked.
// If another client raises the wanted count, its nodes are awaited in the same way. Implausible
// values in a status (times in the far future, negative counts) are clamped.
//
// Pure functions of values, and a cache of what was read from nodes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/node_pool.h"
#include "codec/json.h"
#include "gpu/catalogue.h"
#include "planning/growth.h"

namespace nos::controllers {

struct PoolTimeouts {
  Duration min_timeout{};  // no node is late before this time
  Duration backoff{};      // doubles with each failure in a row
  Duration max_backoff{};  // upper limit of backoff
};
// How long the pool's nodes are awaited.
Duration ProvisionTimeoutOf(const cluster::NodePool& pool, const PoolTimeouts& timeouts);

// Differences between a node and the description in its pool.
struct MissingRequirements {
  std::string readiness;  // "is not Ready", "has the taint a.b/c"; "": it accepts pods
  std::string substance;  // "has 0 of nvidia.com/gpu, but the pool requires 8"; "": complete
  bool Any() const { return !readiness.empty() || !substance.empty(); }
};
MissingRequirements MissingRequirementsOf(const cluster::Node& node, const cluster::NodePool& pool,
                                          const gpu::Catalogue& catalogue);

// Caches MissingRequirementsOf per version of a node and its pool: few of thousands of nodes change
// between two calls.
class MissingRequirementsCache {
 public:
  // `catalogue` must outlive this
  explicit MissingRequirementsCache(const gpu::Catalogue& catalogue) : catalogue_(catalogue) {}

  // The reference is valid until Forget.
  const MissingRequirements& Of(const std::shared_ptr<const cluster::Node>& node,
                                const std::shared_ptr<const cluster::NodePool>& pool);
  // Drops entries that were not requested since the last call of Forget.
  void Forget();
  uint64_t reads() const { return reads_; }  // computed entries so far

 private:
  struct Known {
    // Shared pointers, so that a new version cannot get the address of an old one and match it.
    std::shared_ptr<const cluster::Node> node;
    std::shared_ptr<const cluster::NodePool> pool;
    MissingRequirements missing;
    uint64_t round = 0;
  };
  const gpu::Catalogue& catalogue_;
  std::map<std::string, Known, std::less<>> known_;  // by node name
  uint64_t round_ = 1, reads_ = 0;
};

// The nodes of a pool. A node whose removal was requested from the pool only counts as `going`.
struct PoolNodes {
  struct Wrong {
    std::string name, why;
    Time created{};
  };
  int there = 0;              // nodes that accept pods, or whose start time is over
  int starting = 0;           // nodes that exist and do not match their pool yet
  int going = 0;              // nodes being removed; not in the counts above
  std::vector<Wrong> wrong;   // nodes in `there` that contradict the pool's spec
  Time newest{};              // creation time of the newest node
  std::vector<Wrong> less;    // nodes in `there` with less than the recorded template
  std::vector<Wrong> closed;  // nodes in `there` that accept no pods and run none
  int Present() const { return there + starting; }
};

struct PoolSeen {
  std::shared_ptr<const cluster::NodePool> pool;  // with the recorded template
  PoolNodes nodes;
  std::optional<int32_t> wanted;  // as read from the infrastructure; absent: see `error`
  Status error;                   // of the read, or of the last write
  std::string problem;            // reason why the planner cannot use the pool; ""
};

// The status to write.
struct PoolStatus {
  int32_t nodes = 0, wanted = 0;
  std::optional<Time> asked;
  int32_t failures = 0;
  std::optional<Time> closed_until;
  cluster::Condition ready;
  std::optional<cluster::NodeTemplate> learned;
};

struct PoolState {
  planning::NodePoolState now;
  PoolStatus status;
  std::optional<int32_t> write_back;  // reduce the wanted count to this
  bool failed = false;                // it is closed now and was open before
};

PoolState StateOf(const PoolSeen& seen, const PoolTimeouts& timeouts, Time now);

// The merge patch for the status of `known`; null if nothing changes.
Json PoolStatusPatch(const cluster::NodePool& known, const PoolStatus& wanted);

}  // namespace nos::controllers
