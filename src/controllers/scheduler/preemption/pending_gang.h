// A gang of which some members have no node (controllers/gangs.h).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cluster/objects.h"

namespace nos::controllers {

struct PendingGang {
  std::string name;
  size_t least = 0, placed = 0;  // members that must have a node, and members that have one
  std::vector<std::shared_ptr<const cluster::Pod>> waiting;
};

}  // namespace nos::controllers
