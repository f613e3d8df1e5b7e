#include "quota/standing.h"

#include <algorithm>
#include <tuple>

namespace nos::quota {

StandingOrder::StandingOrder(const Amounts& min) {
  for (const auto& [id, amount] : min.entries()) named_.push_back(id);
  std::ranges::sort(named_, {}, [](cluster::ResourceId id) { return cluster::ResourceName(id); });
}

bool StandingOrder::operator()(const Holder* a, const Holder* b) const {
  const cluster::Pod &first = *a->pod, &second = *b->pod;
  if (first.meta.created != second.meta.created) return first.meta.created < second.meta.created;
  if (first.priority != second.priority) return first.priority > second.priority;
  for (const cluster::ResourceId id : named_) {
    const Amount left = a->charge.Get(id), right = b->charge.Get(id);
    if (left != right) return left < right;
  }
  return std::tie(first.meta.ns, first.meta.name) < std::tie(second.meta.ns, second.meta.name);
}

size_t CountInQuota(const Amounts& min, const std::vector<Holder*>& ordered) {
  Amounts sum;
  const auto is_beyond = [&](const Holder* holder) {
    sum.Add(holder->charge);
    return std::ranges::any_of(
        min.entries(), [&](const auto& entry) { return sum.Get(entry.first) > entry.second; });
  };
  const auto first_over = std::ranges::find_if(ordered, is_beyond);
  for (auto it = ordered.begin(); it != ordered.end(); ++it) (*it)->over_quota = it >= first_over;
  return static_cast<size_t>(first_over - ordered.begin());
}

}  // namespace nos::quota
