// What PodDisruptionBudgets still allow while more and more pods are counted as gone.
//
//   Budgets budgets(snapshot.around());
//   if (budgets.Take(*pod)) ++violations;
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cluster/surroundings.h"

namespace nos::scheduling {

class Budgets {
 public:
  explicit Budgets(const cluster::Surroundings& around);

  // Whether it would violate one if the pod went now.
  bool Guards(const cluster::Pod& pod) const;
  // Counts the pod as gone. Whether that violates one.
  bool Take(const cluster::Pod& pod);

 private:
  // Calls visit(what it still allows) for each that counts the pod.
  template <typename Table, typename Visit>
  static void ForEach(Table& budgets, const cluster::Pod& pod, Visit visit);

  // What each still allows, by namespace.
  std::map<std::string, std::vector<std::pair<const cluster::PodDisruptionBudget*, int32_t>>,
           std::less<>>
      budgets_;
};

// As if the pod had been evicted: the budgets that count it allow fewer further ones.
void CountGone(cluster::Surroundings& around, const cluster::Pod& pod);

}  // namespace nos::scheduling
