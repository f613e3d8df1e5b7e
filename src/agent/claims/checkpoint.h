// The claims that this node has prepared, on disk: what containers may use now, whatever the API
// server says and however often the agent restarts.
//
// A claim is written before anything is done for it, and removed only when the kubelet has taken it
// back. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"

namespace nos::agent {

// A device that a claim has on this node.
struct ClaimedDevice {
  std::string request;  // without the alternative: "slice"
  std::string device;   // "gpu-0-mig-1g10gb-19-6"
  bool admin = false;   // beside the claim that uses it
  // Known once the device exists: the GPU, and the MIG instance with the driver's id.
  std::string gpu_uuid{}, instance_uuid{};
  std::optional<uint32_t> instance{};
  std::string alternative{};  // of the request (firstAvailable); "": it has none
  std::string share_id{};     // of a device that several claims have; "": it is not shared
  int64_t memory_mib = 0;     // that the claim has of a device shared by MPS
  // Only the devices that were allocated, not what exists.
  bool SameAllocation(const ClaimedDevice& other) const {
    return request == other.request && device == other.device && admin == other.admin &&
           share_id == other.share_id && memory_mib == other.memory_mib;
  }
};

struct PreparedClaim {
  std::string ns, name, uid;
  bool ready = false;  // the kubelet was given the devices; otherwise they are being made
  std::vector<ClaimedDevice> devices;
  std::string pod_claim{};  // as in AllocatedClaim
};

using PreparedClaims = std::map<std::string, PreparedClaim>;  // by uid

// No file: no claims. Errors: kInvalid (not written by this version or a former one; the message
// names the file), kNotFound (not readable).
Result<PreparedClaims> ReadCheckpoint(const std::string& path);
// Error: kUnavailable.
Status WriteCheckpoint(const std::string& path, const PreparedClaims& claims);

}  // namespace nos::agent
