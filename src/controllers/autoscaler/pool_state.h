// Where a node pool stands: how many nodes it has, how many are on their way, whether it may be
// asked for more, and what its status says of it.
//
//   const PoolState state = StateOf({pool, nodes, wanted, error}, patience, now);
//   const Json patch = PoolStatusPatch(*pool, state.status);   // null: it says so already
//   if (state.write_back) ...                                  // late ones are not to come any
//   more
//
// status.asked is since when nodes are awaited, and absent when all are there. Nodes that are not
// there twice the pool's startSeconds later are late: the pool is closed for a while, longer each
// time in a row, and asked for what is there. Whoever asks for more meanwhile makes it wait longer
// only where some have come. Whoever else asks for nodes is believed: they are awaited just so. A
// status that cannot be (times far off, negative counts) wedges nothing.
//
// Pure functions of values, and a memory of what has been read of nodes.
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

struct PoolPatience {
  Duration least{};          // nodes are not late before
  Duration close_for{};      // doubles each time in a row
  Duration longest_close{};  // until here
};
// How long its nodes are waited for.
Duration PatienceOf(const cluster::NodePool& pool, const PoolPatience& patience);

// What a node lacks of what its pool says.
struct NodeLacks {
  std::string readiness;  // "is not Ready", "has the taint a.b/c"; "": it takes pods
  std::string substance;  // "has 0 of nvidia.com/gpu, and the pool says 8"; "": it has all
  bool Any() const { return !readiness.empty() || !substance.empty(); }
};
NodeLacks LacksOf(const cluster::Node& node, const cluster::NodePool& pool,
                  const gpu::Catalogue& catalogue);

// LacksOf, of each version of a node and its pool once: of thousands few change between two looks.
class KnownLacks {
 public:
  explicit KnownLacks(const gpu::Catalogue& catalogue) : catalogue_(catalogue) {}  // outlives it

  // Valid until Forget.
  const NodeLacks& Of(const std::shared_ptr<const cluster::Node>& node,
                      const std::shared_ptr<const cluster::NodePool>& pool);
  // Those that were not asked for since it was called last.
  void Forget();
  uint64_t reads() const { return reads_; }  // so far

 private:
  struct Known {
    // Held, so that no other version comes to lie where this one was.
    std::shared_ptr<const cluster::Node> node;
    std::shared_ptr<const cluster::NodePool> pool;
    NodeLacks lacks;
    uint64_t round = 0;
  };
  const gpu::Catalogue& catalogue_;
  std::map<std::string, Known, std::less<>> known_;  // by the node's name
  uint64_t round_ = 1, reads_ = 0;
};

// The nodes of a pool. One that the pool has been told to take away is none of them any more.
struct PoolNodes {
  struct Wrong {
    std::string name, why;
    Time created{};
  };
  int there = 0;              // that take pods, or have had time enough to
  int starting = 0;           // that have come, and lack something still
  int going = 0;              // that are to be taken away: in none of the above
  std::vector<Wrong> wrong;   // of those there, that are not what the pool says
  Time newest{};              // when the last one came
  std::vector<Wrong> less;    // of those there, that are less than what was only learnt
  std::vector<Wrong> closed;  // of those there, that take no pods and on which none runs
  int Present() const { return there + starting; }
};

struct PoolSeen {
  std::shared_ptr<const cluster::NodePool> pool;  // with what was learnt
  PoolNodes nodes;
  std::optional<int32_t> wanted;  // of whoever makes its nodes; none: `error` says why
  Status error;                   // of reading that, or of changing it
  std::string problem;            // why it cannot be planned with; ""
};

// What is written.
struct PoolStatus {
  int32_t nodes = 0, wanted = 0;
  std::optional<Time> asked;
  int32_t failures = 0;
  std::optional<Time> closed_until;
  cluster::Condition ready;
  std::optional<cluster::NodeTemplate> learnt;
};

struct PoolState {
  planning::PoolNow now;
  PoolStatus status;
  std::optional<int32_t> write_back;  // so many are to be wanted instead
  bool failed = false;                // it is closed from now on, and was not before
};

PoolState StateOf(const PoolSeen& seen, const PoolPatience& patience, Time now);

// The merge patch for the status of `known`; null: it says the same.
Json PoolStatusPatch(const cluster::NodePool& known, const PoolStatus& wanted);

}  // namespace nos::controllers
