// NodePools and their nodes as one call of the autoscaler sees them.
//
//   ObservedCluster cluster;                    // filled by PoolObserver (pools/observer.h)
//   if (ObservedPool* pool = cluster.Find("a100"); pool != nullptr && pool->memory->MayWrite()) ...
//
// Values without behaviour of their own. An ObservedCluster lives for one call, a PoolMemory as
// long as its pool.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "cluster/node_pool.h"
#include "controllers/autoscaler/pools/state.h"
#include "controllers/pool_scaling.h"
#include "controllers/relocations.h"

namespace nos::controllers {

// State of a pool that survives from one call to the next.
struct PoolMemory {
  using PoolPtr = std::shared_ptr<const cluster::NodePool>;

  std::string target;              // identifies the object or webhook that `scale` was read from
  std::optional<PoolScale> scale;  // as last read or written
  bool fresh = false;              // read since the last write, so a write may be based on it
  Time pool_sync_interval{};
  Status read_error, write_error;
  Time write_again{};  // no write before this time after write_error
  Time grown{};        // time of the last scale-up
  int unanswered = 0;  // consecutive writes without a definite answer
  int silent = 0;      // consecutive reads that the webhook did not answer
  Time silent_since{};
  std::optional<cluster::NodeTemplate> learned;  // recorded from the pool's nodes, for its status
  Time learn_again{};
  uint64_t learned_from = 0;        // version of the node cache
  PoolPtr described, described_of;  // the pool with its template, and the pool as read

  // Nodes that the pool asks its infrastructure for; 0 while that is unknown.
  int32_t Wanted() const { return scale ? scale->wanted : 0; }
  const Status& error() const { return read_error.ok() ? write_error : read_error; }
  bool MayWrite() const { return fresh && write_error.ok(); }
};

struct ObservedPool {
  std::shared_ptr<const cluster::NodePool> pool;  // with the recorded template
  PoolMemory* memory = nullptr;
  PoolNodes nodes{};
  PoolState state{};
  std::shared_ptr<const cluster::NodePool> as_read{};

  // True if another autoscaler creates the pool's nodes (scaling_signal.h).
  bool HasSignal() const { return pool->signal != cluster::PoolSignal::kNone; }
};

using NodeNames = std::set<std::string, std::less<>>;

struct ObservedCluster {
  std::vector<std::shared_ptr<const cluster::Node>> nodes{};
  std::map<std::string, Removal> removals{};  // by node
  std::vector<ObservedPool> pools{};          // by name
  std::vector<int> pool_of{};                 // index into `pools` for each node; -1: no pool
  NodeNames starting{};

  ObservedPool* Find(const std::string& name);
  const ObservedPool* Find(const std::string& name) const;
};

// The pool with the node template that its memory has recorded.
std::shared_ptr<const cluster::NodePool> WithRecordedTemplate(const ObservedPool& pool);

// Value of a removal mark for a node whose removal has certainly been requested from its pool: the
// request is never repeated, whatever the pool wants later. Before that, the mark holds the node
// count that the pool should want.
inline constexpr int32_t kRemovalRequested = cluster::kMaxPoolNodes;
// True if the node's pool has been asked to remove it.
bool IsRequested(const Removal& removal, const PoolMemory& pool);

// The resource NodePools.
const kube::Resource& PoolResource();

}  // namespace nos::controllers
