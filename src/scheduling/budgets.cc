#include "scheduling/budgets.h"

#include <algorithm>

#include "cluster/selectors.h"

namespace nos::scheduling {

Budgets::Budgets(const cluster::Surroundings& around) {
  for (const auto& [key, budget] : around.budgets.rows()) {
    const bool selects = budget->selector && (!budget->selector->match_labels.empty() ||
                                              !budget->selector->match_expressions.empty());
    if (selects) {
      budgets_[budget->meta.ns].emplace_back(budget.get(), budget->disruptions_allowed);
    }
  }
}

namespace {

// REQUIRES: it has a selector, and the pod is of its namespace.
bool Counts(const cluster::PodDisruptionBudget& budget, const cluster::Pod& pod) {
  const auto& disrupted = budget.disrupted_pods;
  return cluster::Matches(*budget.selector, pod.meta.labels) &&
         std::ranges::find(disrupted, pod.meta.name) == disrupted.end();
}

}  // namespace

template <typename Table, typename Visit>
void Budgets::ForEach(Table& budgets, const cluster::Pod& pod, Visit visit) {
  const auto own = budgets.find(pod.meta.ns);
  if (own == budgets.end() || pod.meta.labels.empty()) return;
  for (auto& [budget, allowed] : own->second) {
    if (Counts(*budget, pod)) visit(allowed);
  }
}

bool Budgets::Guards(const cluster::Pod& pod) const {
  bool guards = false;
  ForEach(budgets_, pod, [&](int32_t allowed) { guards = allowed <= 0 || guards; });
  return guards;
}

bool Budgets::Take(const cluster::Pod& pod) {
  bool violates = false;
  ForEach(budgets_, pod, [&](int32_t& allowed) { violates = --allowed < 0 || violates; });
  return violates;
}

void CountGone(cluster::Surroundings& around, const cluster::Pod& pod) {
  const auto budgets = around.budgets;
  for (const auto& [key, budget] : budgets.rows()) {
    if (!budget->selector || budget->meta.ns != pod.meta.ns || !Counts(*budget, pod)) continue;
    auto after = std::make_shared<cluster::PodDisruptionBudget>(*budget);
    --after->disruptions_allowed;
    around.budgets.Set(key, std::move(after));
  }
}

}  // namespace nos::scheduling
