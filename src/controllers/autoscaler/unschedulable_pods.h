// Pending pods that no plan for the existing nodes places, and their gangs.
//
//   UnschedulablePods rest = all.Without(placed);   // indices into all.pods
//
// A value.
#pragma once

#include <memory>
#include <set>
#include <vector>

#include "cluster/objects.h"
#include "planning/plan.h"

namespace nos::controllers {

struct UnschedulablePods {
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  std::vector<planning::Gang> gangs;  // members are indices into `pods`

  // The pods without those with these indices. A gang that has enough members placed without its
  // remaining pods is dropped.
  UnschedulablePods Without(const std::set<int>& gone) const;
};

}  // namespace nos::controllers
