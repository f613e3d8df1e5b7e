// The kubelet's API of DRA drivers (Dynamic Resource Allocation) as an interface: a driver makes
// the devices of ResourceClaims ready before containers start, and takes them back after pods end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/status.h"

namespace nos::kubelet {

// A ResourceClaim as the kubelet names it. The driver reads its allocation from the API server, and
// checks the uid.
struct ClaimReference {
  std::string ns, name, uid;
  friend bool operator==(const ClaimReference&, const ClaimReference&) = default;
};

struct PreparedDevice {
  std::vector<std::string> requests;  // of the claim, without alternatives; empty: all
  std::string pool, device;
  std::vector<std::string> cdi_ids;  // "nos.nebuly.com/claim=..."
  std::string share_id;              // "": none
  friend bool operator==(const PreparedDevice&, const PreparedDevice&) = default;
};

struct DeviceHealth {
  std::string device;  // its name in the pool
  bool healthy = true;
  std::string message{};  // why not, and what to do
  friend bool operator==(const DeviceHealth&, const DeviceHealth&) = default;
};

class DraDriver {
 public:
  using Prepared = std::function<void(Result<std::vector<PreparedDevice>>)>;
  using Unprepared = std::function<void(const Status&)>;

  virtual ~DraDriver() = default;
  // Both are called by one thread, must not block for long, and call `done` once, from any thread.
  // Both are idempotent: kubelets repeat them. An error lets the kubelet try again.
  virtual void Prepare(const ClaimReference& claim, Prepared done) = 0;
  // A claim that is not prepared is no error; the object may be gone.
  virtual void Unprepare(const ClaimReference& claim, Unprepared done) = 0;
};

}  // namespace nos::kubelet
