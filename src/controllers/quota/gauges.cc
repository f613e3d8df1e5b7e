#include "controllers/quota/gauges.h"

#include <string>
#include <utility>

#include "controllers/quota_status.h"

namespace nos::controllers {
namespace {

using quota::Amount;
using Values = std::vector<std::pair<MetricLabels, double>>;

MetricLabels LabelsOf(const cluster::ElasticQuota& quota) {
  return {
      {"namespace", quota.meta.ns},
      {"quota", quota.meta.name},
      {"type", std::string(quota.composite ? cluster::kCompositeQuota : cluster::kElasticQuota)}};
}

// In cores, bytes or units.
double NumberOf(cluster::ResourceId id, Amount amount) {
  const auto milli = static_cast<double>(quota::QuantityOf(id, amount).MilliValue());
  const auto whole = static_cast<double>(quota::QuantityOf(id, amount).Value());
  return cluster::ResourceName(id) == "cpu" ? milli / 1000 : whole;
}

void AddAmounts(const quota::Balance& balance, size_t account, Values& values) {
  const quota::Terms& terms = balance.terms(account);
  const auto put = [&](cluster::ResourceId id, const char* what, Amount amount) {
    MetricLabels labels = LabelsOf(*terms.quota);
    labels["resource"] = cluster::ResourceName(id);
    labels["amount"] = what;
    values.emplace_back(std::move(labels), NumberOf(id, amount));
  };
  for (const auto& [id, max] : terms.max.entries()) {
    put(id, "max", max);
    if (!terms.min.Named(id)) put(id, "used", balance.used(account).Get(id));
  }
  for (const auto& [id, min] : terms.min.entries()) {
    put(id, "min", min);
    put(id, "used", balance.used(account).Get(id));
    put(id, "guaranteed", GuaranteedOf(balance, account, id));
    put(id, "borrowed", balance.BorrowedBy(account, id));
    put(id, "lent", balance.LentBy(account, id));
  }
}

bool Waits(const cluster::Pod& pod) {
  return pod.node_name.empty() && !pod.Finished() && !pod.meta.deleted;
}

}  // namespace

void ShowQuotas(const quota::Ledger& ledger,
                const std::vector<std::shared_ptr<const cluster::Pod>>& pods,
                const quota::ChargeRules& rules, Metrics& metrics) {
  const quota::Balance& balance = ledger.balance();
  std::vector<double> owed(balance.size());
  for (const auto& pod : pods) {
    const auto account = Waits(*pod) ? balance.AccountOf(pod->meta.ns) : std::nullopt;
    if (!account) continue;
    const quota::ChargeParts charge =
        ledger.WithoutOthers(quota::ChargePartsOf(*pod, nullptr, rules), pod->Key());
    if (balance.IsGuaranteed(*account, charge.Total())) owed[*account] += 1;
  }
  Values amounts, waiting;
  for (size_t i = 0; i < balance.size(); ++i) {
    AddAmounts(balance, i, amounts);
    waiting.emplace_back(LabelsOf(*balance.terms(i).quota), owed[i]);
  }
  metrics.SetAll(kQuotaAmounts, amounts);
  metrics.SetAll(kQuotaOwed, waiting);
}

void HideQuotas(Metrics& metrics) {
  metrics.SetAll(kQuotaAmounts, {});
  metrics.SetAll(kQuotaOwed, {});
}

}  // namespace nos::controllers
