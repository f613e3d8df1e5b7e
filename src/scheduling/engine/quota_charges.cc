#include "scheduling/engine/quota_charges.h"

#include <algorithm>

namespace nos::scheduling {
namespace {

const cluster::Node* NodeOf(const cluster::NodeInfo* info) {
  return info == nullptr ? nullptr : info->node.get();
}

}  // namespace

// Compares with copies of the tables, because no event reports changes of quotas.
void QuotaCharges::SetQuotas(const cluster::ClusterContext& context) {
  if (context.quotas.IsCopyOf(quotas_) && context.composite_quotas.IsCopyOf(composite_quotas_)) {
    return;
  }
  const auto same = [](const auto& a, const auto& b) {
    return std::ranges::equal(a.rows(), b.rows(), [](const auto& left, const auto& right) {
      return left.second == right.second || cluster::SameTerms(*left.second, *right.second);
    });
  };
  const bool alike =
      same(context.quotas, quotas_) && same(context.composite_quotas, composite_quotas_);
  quotas_ = context.quotas;
  composite_quotas_ = context.composite_quotas;
  if (alike) return;
  ledger_.SetQuotas(quota::QuotasOf(context));
  ++version_;
}

void QuotaCharges::Count(const Pod& pod, const cluster::NodeInfo* node) {
  if (HasQuota(*pod)) ++version_;
  ledger_.SetPod(pod, quota::ChargePartsOf(*pod, NodeOf(node), rules_));
}

void QuotaCharges::Remove(const cluster::Pod& pod) {
  if (HasQuota(pod)) ++version_;
  ledger_.RemovePod(pod.Key());
}

quota::ChargeParts QuotaCharges::PartsOf(const cluster::Pod& pod,
                                         const cluster::NodeInfo* node) const {
  return ledger_.WithoutOthers(quota::ChargePartsOf(pod, NodeOf(node), rules_), pod.Key());
}

}  // namespace nos::scheduling
