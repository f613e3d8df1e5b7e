#include "scheduling/claim_charges.h"

#include <memory>
#include <vector>

#include "dra/device_index.h"

namespace nos::scheduling {

quota::ClaimAmounts ClaimCharges::Of(const cluster::Pod& pod) const {
  quota::ClaimAmounts claims;
  for (std::string& key : dra::SpecClaimKeysOf(pod)) {
    quota::Amounts amounts;
    quota::Add(CountsOf(key), amounts);
    claims.emplace_back(std::move(key), std::move(amounts));
  }
  return claims;
}

dra::DeviceCounts ClaimCharges::CountsOf(const std::string& claim) const {
  const cluster::ClusterContext& context = context_();
  dra::DeviceIndex* index = context.devices.get();
  const auto& known =
      index == nullptr ? context.device_claims.Share(claim) : index->FindClaim(claim);
  if (known == nullptr) return {};
  if (known->allocation) return dra::CountsOf(*known, *known->allocation);
  if (index == nullptr) return {};
  if (const auto* assumed = index->FindAssumed(claim)) {
    return dra::CountsOf(*known, assumed->allocation);
  }
  return index->MostOf(*known,
                       [&](const std::string& name) { return context.device_classes.Share(name); });
}

std::set<std::string> ChargedClaimsOf(const cluster::Pod& pod) {
  const std::vector<std::string> keys = dra::SpecClaimKeysOf(pod);
  return {keys.begin(), keys.end()};
}

quota::ChargeRules WithClaims(quota::ChargeRules rules, const cluster::ClusterContext& context) {
  rules.claims = std::make_shared<ClaimCharges>(
      [&context]() -> const cluster::ClusterContext& { return context; });
  return rules;
}

quota::ChargeRules WithClaims(quota::ChargeRules rules, const cluster::ClusterSnapshot& snapshot) {
  rules.claims = std::make_shared<ClaimCharges>(
      [&snapshot]() -> const cluster::ClusterContext& { return snapshot.context(); });
  return rules;
}

}  // namespace nos::scheduling
