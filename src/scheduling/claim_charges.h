// Charges pods for the devices of their ResourceClaims: for those that they have, or for the most
// that their claims may get.
//
//   quota::ChargeRules rules = WithClaims(options.charges, snapshot);
//   ledger.SetPod(pod, quota::ChargePartsOf(*pod, node, rules));
//
// Every component charges claims by this class. One that does not follow devices (dra::DeviceIndex)
// cannot know the most that a claim may get: until it is allocated the claim counts for nothing.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "cluster/snapshot.h"
#include "dra/device_counts.h"
#include "quota/charge.h"

namespace nos::scheduling {

class ClaimCharges final : public quota::ClaimCharges {
 public:
  // The context that has the claims, their classes and the index if there is one. What it refers to
  // must outlive this.
  using Context = std::function<const cluster::ClusterContext&()>;

  explicit ClaimCharges(Context context) : context_(std::move(context)) {}
  quota::ClaimAmounts Of(const cluster::Pod& pod) const override;

 private:
  dra::DeviceCounts CountsOf(const std::string& claim) const;

  const Context context_;
};

// Keys of the claims for which the pod is charged.
std::set<std::string> ChargedClaimsOf(const cluster::Pod& pod);

// The rules with the claims of the context, which must outlive them.
quota::ChargeRules WithClaims(quota::ChargeRules rules, const cluster::ClusterContext& context);
quota::ChargeRules WithClaims(quota::ChargeRules rules, const cluster::ClusterSnapshot& snapshot);

}  // namespace nos::scheduling
