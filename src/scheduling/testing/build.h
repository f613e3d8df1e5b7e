// Builders of pods, nodes and snapshots for tests.
//
//   const ClusterSnapshot snapshot =
//       Snap({NodeOf("a", {{"cpu", "8"}})}, {PodOf("p", {{"cpu", "1"}}, "a")});
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/snapshot.h"

namespace nos::scheduling::testing {

using Amounts = std::initializer_list<std::pair<std::string, std::string>>;

// Parses quantities. REQUIRES: they are valid.
cluster::ResourceList Resources(Amounts amounts);
// A pod with one container in namespace "x" and phase Pending, bound if `node` is given.
cluster::Pod PodOf(std::string name, Amounts requests = {}, std::string node = "");
// A node with capacity for 110 pods, unless `allocatable` has "pods".
cluster::Node NodeOf(std::string name, Amounts allocatable = {}, cluster::StringMap labels = {});
cluster::ClusterSnapshot Snap(const std::vector<cluster::Node>& nodes,
                              const std::vector<cluster::Pod>& pods = {});

}  // namespace nos::scheduling::testing
