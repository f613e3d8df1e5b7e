#include "scheduling/framework/budgets.h"

#include <algorithm>
#include <utility>

#include "cluster/selectors.h"

namespace nos::scheduling {

namespace {

// REQUIRES: the pod is in the budget's namespace.
bool Counts(const cluster::PodDisruptionBudget& budget, const cluster::Pod& pod) {
  const auto& disrupted = budget.disrupted_pods;
  const auto& selector = budget.selector;
  return selector && cluster::Matches(*selector, pod.meta.labels) &&
         std::ranges::find(disrupted, pod.meta.name) == disrupted.end();
}

}  // namespace

Budgets::Budgets(const cluster::ClusterContext& context) {
  Table table;
  for (const auto& [key, budget] : context.budgets.rows()) {
    const auto& selector = budget->selector;
    const bool selects =
        selector && (!selector->match_labels.empty() || !selector->match_expressions.empty());
    if (!selects) continue;
    table[budget->meta.ns].push_back({budget, allowed_.size()});
    allowed_.push_back(budget->disruptions_allowed);
  }
  table_ = std::make_shared<const Table>(std::move(table));
}

std::vector<size_t> Budgets::Of(const cluster::Pod& pod) const {
  std::vector<size_t> numbers;
  const auto own = table_->find(pod.meta.ns);
  if (own == table_->end() || pod.meta.labels.empty()) return numbers;
  for (const Budget& one : own->second) {
    if (Counts(*one.budget, pod)) numbers.push_back(one.number);
  }
  return numbers;
}

bool Budgets::Guard(const std::vector<size_t>& budgets) const {
  return std::ranges::any_of(budgets, [&](size_t number) { return allowed_[number] <= 0; });
}

bool Budgets::Take(const cluster::Pod& pod) {
  bool violates = false;
  for (const size_t number : Of(pod)) violates = --allowed_[number] < 0 || violates;
  return violates;
}

void CountGone(cluster::ClusterContext& context, const cluster::Pod& pod) {
  const auto budgets = context.budgets;
  for (const auto& [key, budget] : budgets.rows()) {
    if (!budget->selector || budget->meta.ns != pod.meta.ns || !Counts(*budget, pod)) continue;
    auto after = std::make_shared<cluster::PodDisruptionBudget>(*budget);
    --after->disruptions_allowed;
    context.budgets.Set(key, std::move(after));
  }
}

}  // namespace nos::scheduling
