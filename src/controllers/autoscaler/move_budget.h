// Counts the pods that were moved for others in the last hour, against the limits of the
// configuration.
//
//   MoveBudget budget(config.max_moves_per_hour, config.max_moves_per_namespace);
//   budget.Observe(nodes, now);            // moves of earlier replicas, from annotations
//   MoveAllowance allowance = budget.Allowance();
//   if (allowance.Allows({{"ml", 1}})) allowance.Take("ml");   // while planning
//   budget.Add(id, node, "ml", now);       // a move has started
//
// Owned by one thread.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "controllers/relocations.h"

namespace nos::controllers {

// The rest of the budget during one plan. A value.
struct MoveAllowance {
  int per_hour = 0, per_namespace = 0;
  int total = 0;
  std::map<std::string, int> by_namespace{};  // pods moved

  // True if these further pods, by namespace, may be moved.
  bool Allows(const std::map<std::string, int>& more) const;
  void Take(const std::string& ns);
};

class MoveBudget {
 public:
  MoveBudget(int per_hour, int per_namespace)
      : per_hour_(per_hour), per_namespace_(per_namespace) {}

  // Merges the moves that replicas wrote on nodes (kMovedFrom), and drops those that are older than
  // an hour.
  void Observe(const std::vector<std::shared_ptr<const cluster::Node>>& nodes, Time now);
  // Counts one pod that a relocation moves away from a node.
  void Add(const std::string& relocation, const std::string& node, const std::string& ns, Time now);
  MoveAllowance Allowance() const;

 private:
  const int per_hour_, per_namespace_;
  // By relocation and the node that the pods were moved from.
  std::map<std::pair<std::string, std::string>, Moved> moved_;
};

}  // namespace nos::controllers
