// Charges pods for the devices of their ResourceClaims: for those that they have, or for the most
// that their claims may get. A claim with several users counts once, for the first of them.
#pragma once

#include <memory>

#include "cluster/snapshot.h"
#include "dra/device_index.h"
#include "quota/charge.h"

namespace nos::scheduling {

class ClaimCharges final : public quota::ClaimCharges {
 public:
  // `snapshot` has the device classes; it must outlive this.
  ClaimCharges(std::shared_ptr<dra::DeviceIndex> devices, const cluster::ClusterSnapshot& snapshot)
      : devices_(std::move(devices)), snapshot_(snapshot) {}
  quota::Amounts Of(const cluster::Pod& pod) const override;

 private:
  dra::DeviceCounts CountsOf(const dra::ResourceClaim& claim, const cluster::Pod& pod) const;

  std::shared_ptr<dra::DeviceIndex> devices_;
  const cluster::ClusterSnapshot& snapshot_;
};

// The rules with the devices that the snapshot's context follows, if it follows any.
quota::ChargeRules WithClaims(quota::ChargeRules rules, const cluster::ClusterSnapshot& snapshot);

}  // namespace nos::scheduling
