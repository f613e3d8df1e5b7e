// Finds what the quotas of the cluster allow a pending pod. Internal to explanations.
//
// Pure functions.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "quota/balance.h"
#include "scheduling/explain.h"

namespace nos::scheduling {

// Why the pod's quota refuses it, with the remedy in `for_quota`. No effect if it does not.
void AskQuota(const ExplainInput& input, Explanation& why);

// Nodes on which the quota admits the pod with its charge there.
struct Admitted {
  bool everywhere = true;
  std::vector<size_t> nodes = {};              // indices, sorted, unless everywhere
  std::optional<quota::Refusal> refusal = {};  // of the first other node
};
Admitted AdmittedBy(const quota::Balance& balance, const Framework& framework,
                    const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot);
// The pod's charge on the node. Null: on the node, among sufficiently large ones, where it is
// least. Empty: the framework ignores quotas. Adds the pod's claims to `counted`, which do not
// count again, as do not those of pods with a node.
quota::Amounts ChargeFor(const Framework& framework, const cluster::Pod& pod,
                         const cluster::Node* node, const cluster::ClusterSnapshot& snapshot,
                         std::set<std::string>& counted);

}  // namespace nos::scheduling
