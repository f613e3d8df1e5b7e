// The devices that claims share by MPS, and their daemons.
//
// A GPU whose memory is shared is in EXCLUSIVE_PROCESS mode while its daemon serves, so that no
// program gets round the limits; MIG instances keep the default mode, because the driver has no
// other for them. The mode is put back before the daemon ends: a daemon that is left shows the next
// agent which GPUs are in that mode.
//
// Thread-safe; functions with a backend are for the queue of its GPU.
#pragma once

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "agent/claims/checkpoint.h"
#include "agent/claims/known_devices.h"
#include "agent/share_daemons.h"
#include "base/status.h"
#include "device/backend.h"
#include "dra/gpu_slices.h"

namespace nos::agent {

class SharedByMps {
 public:
  // `daemons`: null if there are no shares by MPS.
  explicit SharedByMps(ShareDaemons* daemons) : daemons_(daemons) {}

  // Takes over the devices of prepared claims, and the GPUs that an earlier agent has left shared.
  void Restore(const KnownDevices& devices, const PreparedClaims& prepared);
  // Serves the device. `made` is its GPU or instance. Errors: kUnavailable (no daemon serves it
  // within some seconds), those of the backend.
  Status Serve(const ClaimedDevice& made, const dra::GpuOfDriver& gpu,
               const dra::DriverDevice& device, device::Backend& backend);
  // GPUs with a served device that is not in `used`.
  std::set<int> GpusWithUnused(const std::set<std::string>& used) const;
  // Ends the daemons of these devices of the GPU, and waits until they are gone. Error:
  // kUnavailable (one is not; call again).
  Status EndUnused(int gpu, const std::set<std::string>& used, device::Backend& backend);
  // The changes of a container that has the share. Error: kUnavailable (no daemon can serve it).
  Result<device::ContainerEdits> EditsFor(const ClaimedDevice& device, int64_t total_mib) const;

 private:
  struct Served {
    device::MpsGpu gpu;
    bool ends = false;  // its daemon was asked to end
  };

  void Publish();

  ShareDaemons* const daemons_;
  std::mutex publishing_;  // orders the calls of ServeForClaims; locked before mutex_
  mutable std::mutex mutex_;
  std::map<std::string, Served> served_;  // by name of the device, until its daemon is gone
};

}  // namespace nos::agent
