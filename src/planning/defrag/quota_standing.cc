#include "planning/defrag/quota_standing.h"

#include "quota/balance.h"
#include "scheduling/claim_charges.h"
#include "scheduling/framework.h"
#include "scheduling/quota_plugin.h"

namespace nos::planning {
namespace {

quota::Ledger Fill(const cluster::ClusterSnapshot& snapshot,
                   const scheduling::FrameworkChoice& frameworks) {
  for (size_t i = 0; i < snapshot.size(); ++i) {
    for (const auto& pod : snapshot.node(i).pods) {
      const scheduling::QuotaPlugin* quotas = frameworks.For(*pod).quotas();
      if (quotas == nullptr) continue;
      // All profiles have the same rules.
      const quota::ChargeRules rules = scheduling::WithClaims(quotas->options().charges, snapshot);
      return quota::LedgerOf(quota::QuotasOf(snapshot.context()), snapshot, {}, rules);
    }
  }
  return {};
}

}  // namespace

bool QuotaStanding::IsOverQuota(const cluster::Pod& pod) {
  if (!ledger_) ledger_ = Fill(snapshot_, frameworks_);
  return frameworks_.For(pod).quotas() != nullptr && ledger_->IsOverQuota(pod.Key());
}

}  // namespace nos::planning
