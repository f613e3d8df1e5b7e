#include "scheduling/plugins/capacity_scheduling/plugin.h"

#include <algorithm>

#include "cluster/elastic_quota.h"

namespace nos::scheduling {
namespace {

// True if the pod that left may have freed a resource that the pending pod requests.
bool Overlap(const cluster::Pod& left, const cluster::Pod& waits) {
  const quota::Amounts freed = quota::ChargeOf(left, nullptr, {});
  const quota::Amounts asked = quota::ChargeOf(waits, nullptr, {});
  return std::ranges::any_of(asked.entries(),
                             [&](const auto& entry) { return freed.Get(entry.first) > 0; });
}

}  // namespace

bool QuotaTerms::MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const {
  if (event.kind == ClusterEvent::Kind::kPodBound) {
    return may_take_ && may_take_(pod, *event.pod);
  }
  if (event.kind != ClusterEvent::Kind::kContext) return false;
  if (event.context_kind != cluster::kElasticQuota &&
      event.context_kind != cluster::kCompositeQuota) {
    return false;
  }
  const auto* before = event.ContextBefore<cluster::ElasticQuota>();
  const auto* after = event.ContextAfter<cluster::ElasticQuota>();
  return before == nullptr || after == nullptr || !cluster::SameTerms(*before, *after);
}

bool CapacityScheduling::MayHelp(const ClusterEvent& event, const cluster::Pod& pod) const {
  switch (event.kind) {
    case ClusterEvent::Kind::kPodLeft:
    case ClusterEvent::Kind::kPodChanged:
      return event.pod_before == nullptr || Overlap(*event.pod_before, pod);
    case ClusterEvent::Kind::kContext:
      return QuotaTerms().MayHelp(event, pod);
    case ClusterEvent::Kind::kNodeAdded:  // the pod may now fit somewhere after evictions
    case ClusterEvent::Kind::kNodeChanged:
      return true;
    default:
      return false;
  }
}

}  // namespace nos::scheduling
