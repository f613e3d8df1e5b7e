// The devices that the node's driver has announced, and which of them exclude each other. A value.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "agent/claims/allocated_claim.h"
#include "agent/claims/checkpoint.h"
#include "base/status.h"
#include "dra/gpu_slices.h"

namespace nos::agent {

// True if MPS limits the claim's memory of the device.
bool IsLimitedByMps(const ClaimedDevice& device);
// The GPU or placement that the device shares: "gpu-0" for "gpu-0-mps", and for "gpu-0".
std::string WithoutSharing(const std::string& device);

class KnownDevices {
 public:
  void Set(std::vector<dra::GpuOfDriver> gpus);
  bool empty() const { return gpus_.empty(); }

  // By GpuOfDriver::index.
  const std::map<int, dra::GpuOfDriver>& gpus() const { return gpus_; }
  // Null: there is no such device.
  const dra::DriverDevice* Find(const std::string& device) const;
  // REQUIRES: Find returns a device.
  const dra::GpuOfDriver& GpuOf(const std::string& device) const;

  // True if several claims may have the device at a time.
  bool IsShared(const ClaimedDevice& device) const;
  // True if two claims cannot have these at a time. Unknown devices overlap only with themselves.
  bool Overlap(const ClaimedDevice& a, const ClaimedDevice& b) const;
  // Errors: kConflict (together with `others` the claim has more of a shared device than there is),
  // kInvalid (a share without an amount, or several shares by MPS).
  Status CheckShares(const AllocatedClaim& claim, const PreparedClaims& others) const;

 private:
  Status CheckShare(const AllocatedClaim& claim, const ClaimedDevice& device,
                    const PreparedClaims& others) const;

  std::map<int, dra::GpuOfDriver> gpus_;
  std::map<std::string, dra::DriverDevice> devices_;  // by name
};

}  // namespace nos::agent
