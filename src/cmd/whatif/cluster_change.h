// What-if for a cluster: nodes more or less, or another quota; the pods that would start, and the
// running pods that would have to go. Pure functions.
//
//   NOS_ASSIGN(const ClusterObjects changed, WithChange(objects, change, catalogue));
//   const ChangeReport report = CompareOutcomes(objects, changed, before, after);
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cmd/telemetry/read_cluster.h"
#include "codec/json.h"
#include "gpu/catalogue.h"
#include "planning/plan.h"

namespace nos::cmd {

struct ClusterChange {
  std::vector<std::string> add_nodes{};     // a NodePool, or a node of which another one is added
  std::vector<std::string> remove_nodes{};  // names
  // "QUOTA=AMOUNT" or "QUOTA:RESOURCE=AMOUNT", with "NAMESPACE/NAME", or a namespace, as QUOTA
  std::vector<std::string> quotas{};
  bool any() const { return !add_nodes.empty() || !remove_nodes.empty() || !quotas.empty(); }
};

// A quota that is changed gets `min`; `max` rises with it. Pods of a removed node whose owners
// start them again elsewhere are pending, the others are gone. Errors: kNotFound (no such node,
// pool or quota), kInvalid.
Result<ClusterObjects> WithChange(const ClusterObjects& objects, const ClusterChange& change,
                                  const gpu::Catalogue& catalogue);

// A plan, and by the key of a pod those that its scheduler would evict for it.
struct PlannedOutcome {
  planning::Plan plan;
  std::map<std::string, std::vector<std::string>> victims;
};

// Keys of pods.
struct ChangeReport {
  using Pair = std::pair<std::string, std::string>;
  std::vector<Pair> start;  // pending pods that would start, and the node; "": after evictions
  std::vector<std::string> wait;   // pending pods that would not start any more
  std::vector<Pair> moved;         // pods of removed nodes that would run again, and the node
  std::vector<std::string> stuck;  // pods of removed nodes that would be pending
  std::vector<std::string> gone;   // pods of removed nodes that nobody starts again
  std::vector<Pair> evicted;       // running pods that would be evicted, and for which pod
};
ChangeReport CompareOutcomes(const ClusterObjects& before, const ClusterObjects& after,
                             const PlannedOutcome& plan_before, const PlannedOutcome& plan_after);

JsonObject ToJson(const ChangeReport& report);
std::string ToText(const ChangeReport& report);

}  // namespace nos::cmd
