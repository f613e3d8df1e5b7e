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

namespace {

StandingOrder OrderBy(cluster::ResourceId resource) {
  Amounts named;
  named.Set(resource, 0);
  return StandingOrder(named);
}

}  // namespace

SharedStanding::SharedStanding(cluster::ResourceId resource, Amount min)
    : resource_(resource),
      min_(min),
      order_(OrderBy(resource)),
      holders_(order_),
      first_over_(holders_.end()) {}

bool SharedStanding::IsBeforeFirstOver(const Holder& holder) const {
  return first_over_ == holders_.end() || order_(&holder, *first_over_);
}

bool SharedStanding::Covers(const Holder& holder) const {
  return UseOf(holder) <= 0 || IsBeforeFirstOver(holder);
}

void SharedStanding::Add(const Holder& holder, Crossed crossed) {
  if (UseOf(holder) <= 0) return;
  const bool before = IsBeforeFirstOver(holder);
  holders_.insert(&holder);
  if (!before) return;
  covered_ += UseOf(holder);
  while (covered_ > min_) {
    covered_ -= UseOf(**--first_over_);
    if (*first_over_ != &holder) crossed(**first_over_);
  }
}

void SharedStanding::Remove(const Holder& holder, Crossed crossed) {
  const auto at = holders_.find(&holder);
  if (at == holders_.end()) return;
  if (at == first_over_) {
    ++first_over_;
  } else if (IsBeforeFirstOver(holder)) {
    covered_ -= UseOf(holder);
  }
  holders_.erase(at);
  while (first_over_ != holders_.end() && covered_ + UseOf(**first_over_) <= min_) {
    covered_ += UseOf(**first_over_);
    crossed(**first_over_);
    ++first_over_;
  }
}

}  // namespace nos::quota
