// Disruptions that PodDisruptionBudgets still allow while pods are counted as evicted.
//
//   Budgets budgets(snapshot.context());
//   if (budgets.Take(*pod)) ++violations;
//
// Values; a copy is cheap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/context.h"

namespace nos::scheduling {

class Budgets {
 public:
  explicit Budgets(const cluster::ClusterContext& context);

  // Numbers of the budgets that select the pod.
  std::vector<size_t> Of(const cluster::Pod& pod) const;
  // True if one of the budgets allows no further disruption.
  bool Guard(const std::vector<size_t>& budgets) const;
  bool Guards(const cluster::Pod& pod) const { return Guard(Of(pod)); }
  // Counts the pod as evicted. True if that violates a budget.
  bool Take(const cluster::Pod& pod);

 private:
  struct Budget {
    std::shared_ptr<const cluster::PodDisruptionBudget> budget;
    size_t number;
  };
  using Table = std::map<std::string, std::vector<Budget>, std::less<>>;  // by namespace

  std::shared_ptr<const Table> table_;  // copies share it
  std::vector<int32_t> allowed_;        // allowed disruptions, by number of the budget
};

// Decrements the allowed disruptions of the budgets that select the pod.
void CountGone(cluster::ClusterContext& context, const cluster::Pod& pod);

}  // namespace nos::scheduling
