#include "planning/defrag/quota_standing.h"

#include "quota/balance.h"
#include "quota/charge.h"
#include "scheduling/framework.h"
#include "scheduling/quota_plugin.h"

namespace nos::planning {
namespace {

quota::Ledger Fill(const cluster::ClusterSnapshot& snapshot,
                   const scheduling::FrameworkChoice& frameworks) {
  quota::Ledger ledger;
  ledger.SetQuotas(quota::QuotasOf(snapshot.around()));
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const cluster::NodeInfo& node = snapshot.node(i);
    for (const auto& pod : node.pods) {
      const scheduling::QuotaPlugin* quotas = frameworks.For(*pod).quotas();
      if (quotas == nullptr) continue;
      ledger.SetPod(pod, quota::ChargeOf(*pod, node.node.get(), quotas->options().charges));
    }
  }
  return ledger;
}

}  // namespace

bool QuotaStanding::IsOverQuota(const cluster::Pod& pod) {
  if (!ledger_) ledger_ = Fill(snapshot_, frameworks_);
  return ledger_->IsOverQuota(pod.Key());
}

}  // namespace nos::planning
