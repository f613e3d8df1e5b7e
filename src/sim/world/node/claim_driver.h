// A double of NVIDIA's DRA driver on one node, between kubelet and GPUs. It announces devices
// (device_slices.h), and prepares them for claims: it creates the MIG instance at the placement
// that the device's name states, and destroys it when the claim is unprepared. Rules of the driver
// (cmd/gpu-kubelet-plugin, dynamic MIG):
// - It reads the claim itself and checks uid and allocation. Both calls may be repeated.
// - A device that overlaps with one prepared for another claim is refused.
// - All calls of a node take turns; one that would wait longer than kPatience fails.
// - A claim is prepared whole or not at all. A rollback that failed is repeated before the next
// claim
//   is prepared: the driver does so when the kubelet repeats the call or ends it.
// - GPUs get MIG mode with their first instance and lose it with the last one, unless that needs a
//   reset: these have MIG mode from the start, and are not announced as whole devices.
// A reboot destroys all instances and forgets all claims, as a start of the real driver after one
// does.
//
// One thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "device/sim_gpus.h"
#include "kube/client.h"
#include "sim/world/events/actor.h"
#include "sim/world/events/log.h"
#include "sim/world/node/device_slices.h"

namespace nos::sim {

inline constexpr char kFaultTaint[] = "sim.nos.nebuly.com/fault";
// Binding conditions of devices.
inline constexpr char kReadyCondition[] = "sim.nos.nebuly.com/ready";
inline constexpr char kFailedCondition[] = "sim.nos.nebuly.com/failed";

class ClaimDriver final : public Actor {
 public:
  struct ClaimRef {
    std::string ns, name, uid;
  };
  // How the slices differ from what the GPUs have. For faults.
  struct Publication {
    // A slice less than the pool counts; a device in two slices; no slice with the counters.
    enum class Defect { kNone, kMissingSlice, kDuplicateDevice, kNoCounters };
    Defect defect = Defect::kNone;
    std::set<int> hidden_gpus;   // no slice lists their devices, and none is prepared
    std::set<int> tainted_gpus;  // with kFaultTaint
    bool conditions = false;     // pods are bound only after kReadyCondition
    Duration between{};          // pause after the write of each slice
  };
  // Called when the API server grants a device to two claims.
  using ReportProblem = std::function<void(std::string problem)>;

  // `gpus` and `api` must outlive the object. REQUIRES: the models are MIG models.
  ClaimDriver(std::string node, device::SimGpus& gpus, std::vector<const gpu::Model*> models,
              kube::Transport& api, const Clock& clock, EventLog& log,
              ReportProblem report_problem);

  const std::string& name() const override { return name_; }
  // Announces the devices.
  bool Step() override;
  std::optional<Time> NextWake() const override;
  bool announced() const { return announced_; }
  // Announces the devices again, as the next generation of the pool.
  void Publish(Publication publication);
  const Publication& publication() const { return publication_; }
  // The driver is removed, and the kubelet deletes its slices. It remembers prepared claims.
  void Vanish();
  // REQUIRES: away().
  void Return();
  bool away() const { return away_; }

  // The time until the claim's devices are ready. Error: try again.
  Result<Duration> Prepare(const ClaimRef& claim);
  // The time until they are destroyed; zero for a claim that is not prepared.
  Result<Duration> Unprepare(const std::string& uid);
  // To be called with the time that each operation on the GPUs takes.
  void Spend(Duration time) { spent_ += time; }

  // The node has rebooted.
  void Forget();
  // True if the instance or whole GPU with this UUID is prepared for a claim.
  bool Holds(std::string_view uuid) const;
  // UUIDs of all prepared devices with the key of their claim.
  std::map<std::string, std::string> Held() const;
  // True if the device with this UUID is prepared for the claim.
  bool HasPrepared(const std::string& claim_uid, std::string_view uuid) const;
  // Names of the devices that are prepared for the claim with this uid, sorted.
  std::vector<std::string> PreparedFor(const std::string& claim_uid) const;

  static constexpr Duration kPatience = std::chrono::seconds(10);

 private:
  struct Device {
    DeviceId id;
    std::string name, uuid;
    uint32_t instance = 0;
  };
  struct Prepared {
    ClaimRef claim;
    std::vector<Device> devices;
    bool ending = false;  // some devices may be destroyed already
  };

  Status Announce();
  std::vector<Json> Slices(std::string_view node_uid) const;
  void Change(Json& slice, int gpu) const;
  Status Write(const Json& slice);
  void Begin();
  Result<Duration> TakeTurn();
  Result<std::vector<Device>> Granted(const ClaimRef& claim);
  Status CheckFree(const Device& device, const std::string& uid);
  bool Overlap(const DeviceId& a, const DeviceId& b) const;
  void ReportOverlap(const Device& device, const Device& other, const Prepared& holder);
  Status Create(Device& device);
  Status Destroy(const Device& device);
  Status End(Prepared& claim);
  std::vector<AnnouncedGpu> Announced() const;

  std::string node_, name_;
  device::SimGpus& gpus_;
  std::vector<const gpu::Model*> models_;
  kube::Client client_;
  const Clock& clock_;
  EventLog& log_;
  ReportProblem report_problem_;
  bool announced_ = false, away_ = false;
  Publication publication_;
  int64_t generation_ = 1;
  size_t written_ = 0;                        // slices of the current generation
  Time retry_at_{}, free_at_{};               // free_at_: end of the last call's turn
  Duration spent_{};                          // by the current call
  std::map<std::string, Prepared> prepared_;  // by uid of the claim
  std::vector<Device> leftovers_;             // of claims that could not be prepared
};

}  // namespace nos::sim
