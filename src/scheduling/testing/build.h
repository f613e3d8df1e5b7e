// Short ways to write pods, nodes and snapshots in tests.
//
//   const ClusterSnapshot snapshot = Snap({NodeOf("a", {{"cpu", "8"}})}, {PodOf("p", {{"cpu",
//   "1"}}, "a")});
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/snapshot.h"

namespace nos::scheduling::testing {

using Amounts = std::initializer_list<std::pair<std::string, std::string>>;

// Quantities as text. REQUIRES: they parse.
cluster::ResourceList Resources(Amounts amounts);
// A pod of one container in namespace "x", phase Pending, bound when `node` is given.
cluster::Pod PodOf(std::string name, Amounts requests = {}, std::string node = "");
// 110 pods fit unless `allocatable` says otherwise.
cluster::Node NodeOf(std::string name, Amounts allocatable = {}, cluster::StringMap labels = {});
cluster::ClusterSnapshot Snap(const std::vector<cluster::Node>& nodes,
                              const std::vector<cluster::Pod>& pods = {});

}  // namespace nos::scheduling::testing
