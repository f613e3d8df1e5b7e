// What PodDisruptionBudgets still allow while more and more pods are counted as gone.
//
//   Budgets budgets(snapshot.around());
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

#include "cluster/surroundings.h"

namespace nos::scheduling {

class Budgets {
 public:
  explicit Budgets(const cluster::Surroundings& around);

  // Those that count the pod, by their numbers.
  std::vector<size_t> Of(const cluster::Pod& pod) const;
  // Whether one of these allows nothing more.
  bool Guard(const std::vector<size_t>& budgets) const;
  bool Guards(const cluster::Pod& pod) const { return Guard(Of(pod)); }
  // Counts the pod as gone. Whether that violates one.
  bool Take(const cluster::Pod& pod);

 private:
  struct Budget {
    std::shared_ptr<const cluster::PodDisruptionBudget> budget;
    size_t number;
  };
  using Table = std::map<std::string, std::vector<Budget>, std::less<>>;  // by namespace

  std::shared_ptr<const Table> table_;  // copies share it
  std::vector<int32_t> allowed_;        // by number: what each still allows
};

// As if the pod had been evicted: the budgets that count it allow fewer further ones.
void CountGone(cluster::Surroundings& around, const cluster::Pod& pod);

}  // namespace nos::scheduling
