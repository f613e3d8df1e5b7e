#include "controllers/quota/accounts.h"

#include <fmt/format.h>

#include <any>
#include <utility>

#include "controllers/quota_rules.h"
#include "dra/objects.h"
#include "scheduling/claim_charges.h"

namespace nos::controllers {

using cluster::ElasticQuota;

namespace {

std::shared_ptr<const dra::ResourceClaim> ClaimIn(const std::any& value) {
  const auto* found = std::any_cast<std::shared_ptr<const dra::ResourceClaim>>(&value);
  return found == nullptr ? nullptr : *found;
}

}  // namespace

const kube::Resource& QuotaResource(bool composite) {
  static const kube::Resource kQuotas{"nos.nebuly.com", "v1alpha1", "elasticquotas",
                                      "ElasticQuota"};
  static const kube::Resource kCompositeQuotas{"nos.nebuly.com", "v1alpha1",
                                               "compositeelasticquotas", "CompositeElasticQuota"};
  return composite ? kCompositeQuotas : kQuotas;
}

std::string NameOf(const ElasticQuota& quota) {
  return fmt::format("{}/{}", QuotaResource(quota.composite).plural, quota.Key());
}

QuotaAccounts::QuotaAccounts(quota::ChargeRules charges)
    : charges_(scheduling::WithClaims(std::move(charges), context_)) {}

std::vector<QuotaAccounts::Pod> QuotaAccounts::UsersOf(
    const reconcile::ContextChange& change) const {
  for (const std::any* value : {&change.before, &change.after}) {
    if (const auto claim = ClaimIn(*value)) return ledger_.UsersOf(claim->Key());
  }
  return {};
}

bool HasNode(const cluster::Pod& pod) { return !pod.node_name.empty() && !pod.Finished(); }

void QuotaAccounts::Rebuild(const reconcile::Listers& view) {
  ledger_ = quota::Ledger();
  context_ = view.context->Collect();
  for (const Pod& pod : *view.pods.Snapshot()) Count(view, pod);
}

QuotaChange QuotaAccounts::Apply(const reconcile::ContextChange& change) {
  const auto quota_in = [](const std::any& value) {
    const auto* found = std::any_cast<quota::SharedQuota>(&value);
    return found == nullptr ? nullptr : *found;
  };
  const quota::SharedQuota before = quota_in(change.before), after = quota_in(change.after);
  if (ClaimIn(change.before) != nullptr || ClaimIn(change.after) != nullptr) change.apply(context_);
  if (before == nullptr && after == nullptr) return {};
  change.apply(context_);
  const bool both = before != nullptr && after != nullptr;
  return {NameOf(after != nullptr ? *after : *before), !both || !SameTerms(*before, *after)};
}

void QuotaAccounts::PutInForce() {
  ledger_.SetQuotas(quota::QuotasOf(context_));
  by_name_.clear();
  for (size_t i = 0; i < balance().size(); ++i) by_name_.emplace(NameOf(QuotaOf(i)), i);
  problems_ = ProblemsInForce(balance());
}

void QuotaAccounts::Count(const reconcile::Listers& view, const Pod& pod) {
  if (!HasNode(*pod)) return ledger_.RemovePod(pod->Key());
  const auto node = view.nodes.Get(pod->node_name);
  ledger_.SetPod(pod, ChargePartsOf(*pod, node.get(), charges_));
}

bool QuotaAccounts::ChangesCharges(const reconcile::Change<cluster::Node>& change) const {
  return GpuWorthOf(change.before.get(), charges_) != GpuWorthOf(change.after.get(), charges_);
}

std::optional<size_t> QuotaAccounts::Find(const std::string& name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? std::nullopt : std::optional(found->second);
}

const ElasticQuota& QuotaAccounts::QuotaOf(size_t account) const {
  return *balance().terms(account).quota;
}

}  // namespace nos::controllers
