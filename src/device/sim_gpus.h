// The GPUs of one node, simulated behind device::Backend: real placement rules (from the model's
// layout table), instance ids that do not follow from the start, UUIDs that repeat with the same
// ids, "in use" errors, latency, faults, reboot.
//
//   SimGpus gpus({{model, "NVIDIA A100-SXM4-40GB"}}, {.node = "gpu-1", .hooks = {...}});
//   auto instance = gpus.Create(0, "3g.20gb", 4);
//
// An operation takes effect at once and reports the duration of the real one through Hooks::spend;
// the owner of the clock delays the caller by that.
// Deterministic. Not thread-safe, like every Backend.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "device/backend.h"
#include "device/bounded_gpus.h"
#include "gpu/catalogue.h"

namespace nos::device {

struct SimGpuSpec {
  // A model of gpu/shares.h: a GPU without MIG and with this capacity for shares.
  const gpu::Model* model = nullptr;
  std::string product{};  // NVML's product name; empty: the model's name
  bool mig_enabled = true;
  ComputeMode compute_mode = ComputeMode::kDefault;
};

// The fault of one operation.
enum class SimFault {
  kNone,
  kBusy,        // a monitor holds the GPU briefly: NVML_ERROR_IN_USE
  kTimeout,     // takes its time, has no effect, and returns kDeadline
  kLateAnswer,  // takes its time, takes effect, and returns kDeadline
  kFails,       // an unknown driver error (kInternal)
  // The agent dies during the operation. A create has made the GPU instance but not the compute
  // instance; a destroy has removed only the compute instance.
  kCrashBetween,
  kLost,  // the GPU falls off the bus: kUnavailable, until Restore()
  // The call does not return, and no later one, until Release(); then it takes effect.
  kHangs,
};

struct SimAttempt {
  enum class Kind {
    kCreate,
    kDestroy,
    kEnableMig,
    kDisableMig,
    kSetComputeMode,
    kReset,
    kTakeBack  // of a pending MIG mode
  } kind = Kind::kCreate;
  int gpu = 0;
  std::string profile;
  uint8_t start = 0;
};

// All are optional. Called synchronously from the operation.
struct SimHooks {
  std::function<void(Duration)> spend{};
  std::function<SimFault(const SimAttempt&)> fault{};
  // True if a process of a pod holds the instance (or whole GPU) with this UUID: Destroy then
  // returns "in use".
  std::function<bool(const std::string& uuid)> held{};
  // True if a process works on it, for readings; if empty, `held` is used.
  std::function<bool(const std::string& uuid)> busy{};
  // Called before Destroy (not Reboot) removes an instance: for invariant checkers.
  std::function<void(const GpuInstance&)> on_destroy{};
  // The same for one whose destruction took effect only at Release().
  std::function<void(const GpuInstance&)> on_late_destroy{};
  // A call for the GPU has just used up this time without an answer; zero: the GPU answers again.
  std::function<void(int gpu, Duration waited)> on_hang{};
  // Called with its UUID before a GPU is reset: for invariant checkers.
  std::function<void(const std::string& uuid)> on_reset{};
};

// Measured on an A100-SXM4-80: 2.46 s for seven creates, 4.38 s for seven destroys, 6.46 s to
// switch MIG on; the duration of a reset is a guess.
struct SimLatency {
  Duration create = std::chrono::milliseconds(350);
  Duration destroy = std::chrono::milliseconds(600);
  Duration enable_mig = std::chrono::milliseconds(6460);  // also to disable
  Duration reset = std::chrono::seconds(12);
  // Limits of calls that do not return (device/bounded_gpus.h).
  Duration read_limit = LimitOf(BoundedCallOptions::Kind::kRead);
  Duration change_limit = LimitOf(BoundedCallOptions::Kind::kChange);
};

class SimGpus final : public Backend {
 public:
  // `seed_name` (a node's name) makes UUIDs unique per node. Models must outlive this.
  SimGpus(const std::vector<SimGpuSpec>& gpus, const std::string& seed_name, SimHooks hooks = {},
          SimLatency latency = {});

  Result<std::vector<GpuInfo>> ListGpus() override;
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override;
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override;
  Status Destroy(int gpu, uint32_t instance_id) override;
  Status EnableMig(int gpu) override;
  Status DisableMig(int gpu) override;
  // kUnavailable while it has instances, or while Hooks::held returns true. Resets the compute mode
  // to kDefault.
  Status ResetGpu(int gpu) override;
  Status SetComputeMode(int gpu, ComputeMode mode) override;
  // Load follows Hooks::busy or held; without them it is idle. Each reading advances the turn.
  Readings MeasureGpu(int gpu) override;
  Readings MeasureInstance(const GpuInstance& instance) override;

  // Restarts the node: every instance vanishes, lost GPUs are back, and compute modes are kDefault;
  // Ampere keeps MIG mode or takes the pending one, later architectures lose it.
  void Reboot();
  void Lose(int gpu);
  void Restore(int gpu);
  // Calls for this GPU do not return until Release() or Reboot(). Answers as BoundedGpus: the first
  // one uses up its limit, the others fail at once.
  void Hang(int gpu);
  // A call that has not returned takes effect.
  void Release(int gpu);
  bool Hangs(int gpu) const { return gpus_.at(gpu).hangs; }
  bool IsLost(int gpu) const { return gpus_.at(gpu).lost; }

  // Without latency, faults or hooks: for setting up a scene. Errors as Create.
  Result<GpuInstance> Place(int gpu, const std::string& profile, uint8_t start);
  // The true state, lost or not.
  const std::vector<GpuInstance>& Truth(int gpu) const { return gpus_[gpu].instances; }
  const GpuInfo& Info(int gpu) const { return gpus_[gpu].info; }

 private:
  struct SimGpu {
    GpuInfo info;
    const gpu::Model* model = nullptr;
    std::vector<GpuInstance> instances;
    bool lost = false;
    bool hangs = false, overdue = false;  // overdue: a caller has waited in vain
    std::function<void()> pending{};      // effect of the call that hangs
  };

  Status SwitchMig(int gpu, bool enable);
  void GiveUp(SimGpu& gpu, Duration limit);
  void DestroyLate(int gpu, uint32_t instance_id);
  SimFault Begin(const SimAttempt& attempt, Duration cost);
  Result<SimGpu*> Reach(int gpu);
  double LoadOf(const std::string& uuid) const;
  double LoadOf(const SimGpu& gpu) const;
  Result<GpuInstance> Add(SimGpu& gpu, const std::string& profile, uint8_t start, bool complete);

  std::vector<SimGpu> gpus_;
  SimHooks hooks_;
  SimLatency latency_;
  uint64_t turn_ = 0;  // number of readings of GPU 0
};

}  // namespace nos::device
