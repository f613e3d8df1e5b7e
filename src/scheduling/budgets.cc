#include "scheduling/budgets.h"

#include <algorithm>

#include "cluster/selectors.h"

namespace nos::scheduling {

Budgets::Budgets(const cluster::Surroundings& around) {
  for (const auto& [key, budget] : around.budgets.rows()) {
    const bool selects = budget->selector && (!budget->selector->match_labels.empty() ||
                                              !budget->selector->match_expressions.empty());
    if (selects) budgets_.emplace_back(budget.get(), budget->disruptions_allowed);
  }
}

// Calls it with the index of each that counts the pod.
template <typename Visit>
void Budgets::ForEach(const cluster::Pod& pod, Visit visit) const {
  if (pod.meta.labels.empty()) return;
  for (size_t i = 0; i < budgets_.size(); ++i) {
    const cluster::PodDisruptionBudget& budget = *budgets_[i].first;
    if (budget.meta.ns != pod.meta.ns || !cluster::Matches(*budget.selector, pod.meta.labels)) {
      continue;
    }
    const auto& disrupted = budget.disrupted_pods;
    if (std::ranges::find(disrupted, pod.meta.name) == disrupted.end()) visit(i);
  }
}

bool Budgets::Guards(const cluster::Pod& pod) const {
  bool guards = false;
  ForEach(pod, [&](size_t i) { guards = budgets_[i].second <= 0 || guards; });
  return guards;
}

bool Budgets::Take(const cluster::Pod& pod) {
  bool violates = false;
  ForEach(pod, [&](size_t i) { violates = --budgets_[i].second < 0 || violates; });
  return violates;
}

}  // namespace nos::scheduling
