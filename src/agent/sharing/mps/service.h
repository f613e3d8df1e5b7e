// The MPS daemons of a node, for every mode whose devices are memory limits of MPS, and for devices
// that ResourceClaims share.
//
//   mps->Request(served, undecided);            // each mode, once a reconciliation
//   mps->Keep();                                // then: serves exactly what was requested
//   if (mps->IsServed(uuid)) mps->End(uuid);    // before the device is destroyed
//
// A device has a memory limit only while a daemon serves it. Without daemons another component
// serves the GPUs. Owned by the agent's thread; Grants() and the functions of ShareDaemons may be
// called by others after Start.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "agent/mps_grant.h"
#include "agent/share_daemons.h"
#include "agent/sharing_modes.h"

namespace nos::agent {

struct MpsServiceOptions {
  bool enabled = false;
  bool by_memory = false;  // limits multiprocessors in proportion to memory
  std::string shm_folder{};
  int64_t shm_mib = 1024;  // size of that folder
  device::MpsControlOptions control{};
};

class MpsService final : public ShareDaemons {
 public:
  // `control`: null if another component serves the GPUs, or before Start.
  MpsService(bool enabled, device::MpsControl* control) : control_(control) {
    options_.enabled = enabled;
  }

  MpsServiceOptions& options() { return options_; }
  bool enabled() const { return options_.enabled; }
  // Starts to control daemons. `context.health` must outlive this.
  void Start(const ModeContext& context);
  // Null: another component serves the GPUs.
  const device::MpsControl* control() const { return control_; }

  // `undecided`: UUIDs whose daemons keep running for now, since clients may depend on them.
  void Request(std::vector<device::MpsGpu> served, std::set<std::string> undecided);
  // No effect if nothing was requested since the last call.
  void Keep();
  // Asks the daemon of this GPU or instance to stop.
  void End(const std::string& uuid);

  // True if the daemon of this GPU or instance still runs.
  bool IsServed(const std::string& uuid) const;
  // UUIDs with a serving daemon, and with one that is starting for the first time.
  std::set<std::string> Serving() const;
  std::set<std::string> Starting() const;
  // True if a daemon is starting for the first time, was just taken over, or is stopping.
  bool IsChanging(int gpu) const;

  // How containers reach the daemons. `backend` must outlive the result.
  MpsGrantOptions Grants(device::Backend& backend) const;

  // REQUIRES for all of these: control() is not null.
  void AwaitClaims() override;
  void ServeForClaims(std::vector<device::MpsGpu> devices) override;
  bool AwaitServing(const std::string& uuid, Duration at_most) override;
  bool AwaitEnd(const std::string& uuid, Duration at_most) override;
  std::set<std::string> Left() const override { return control_->Left(); }
  std::map<std::string, std::string> Troubles() const override;
  device::ContainerEdits AccessTo(const std::string& uuid, int64_t memory_mib,
                                  int64_t total_mib) const override;

 private:
  struct Demand {
    std::vector<device::MpsGpu> served;
    std::set<std::string> undecided;
  };

  std::vector<device::MpsState> States() const;
  // Grants() without the limits of multiprocessors.
  MpsGrantOptions DaemonGrants() const;
  void Apply();
  bool Await(const std::function<bool()>& holds, Duration at_most);

  MpsServiceOptions options_;
  std::unique_ptr<device::MpsControl> own_;
  device::MpsControl* control_;
  std::optional<Demand> requested_;
  std::mutex mutex_;            // orders changes of daemons
  std::optional<Demand> kept_;  // none: no mode has requested yet
  std::optional<std::vector<device::MpsGpu>> for_claims_{std::in_place};  // none: not known yet
  std::mutex changes_mutex_;                                              // held for a moment only
  std::condition_variable changed_;
  uint64_t changes_ = 0;
};

}  // namespace nos::agent
