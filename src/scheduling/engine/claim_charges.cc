#include "scheduling/engine/claim_charges.h"

#include "dra/context.h"

namespace nos::scheduling {

quota::Amounts ClaimCharges::Of(const cluster::Pod& pod) const {
  quota::Amounts charge;
  for (const std::string& key : dra::SpecClaimKeysOf(pod)) {
    const auto& claim = devices_->FindClaim(key);
    if (claim == nullptr || !dra::IsChargedFor(*claim, pod)) continue;
    quota::Add(CountsOf(*claim, pod), charge);
  }
  return charge;
}

dra::DeviceCounts ClaimCharges::CountsOf(const dra::ResourceClaim& claim,
                                         const cluster::Pod& pod) const {
  if (claim.allocation) return dra::CountsOf(claim, *claim.allocation);
  if (const auto* assumed = devices_->FindAssumed(claim.Key())) {
    // The charge must not change when the claim is stored with its users (IsChargedFor).
    const bool of_group =
        dra::ConsumerFor(claim, pod, snapshot_.around()).resource != dra::kPodConsumer;
    if (assumed->pod_uid != pod.meta.uid && !of_group) return {};
    return dra::CountsOf(claim, assumed->allocation);
  }
  const auto& classes = snapshot_.around().device_classes;
  return devices_->MostOf(claim, [&](const std::string& name) { return classes.Share(name); });
}

quota::ChargeRules WithClaims(quota::ChargeRules rules, const cluster::ClusterSnapshot& snapshot) {
  const auto& devices = snapshot.around().devices;
  if (devices != nullptr) rules.claims = std::make_shared<ClaimCharges>(devices, snapshot);
  return rules;
}

}  // namespace nos::scheduling
