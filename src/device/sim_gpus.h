// The GPUs of one node, simulated behind device::Backend: true placement rules (from the model's
// layout table), instance ids that do not follow from the start, UUIDs that come back when the same
// ids do, "in use" errors, latency, faults, reboot.
//
//   SimGpus gpus({{model, "NVIDIA A100-SXM4-40GB"}}, {.node = "gpu-1", .hooks = {...}});
//   auto instance = gpus.Create(0, "3g.20gb", 4);
//
// An operation takes effect at once and reports how long the real one would have taken through
// Hooks::spend{}; whoever owns the clock keeps the caller from going on before that.
// Deterministic. Not thread-safe, as every Backend.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "device/backend.h"
#include "gpu/catalogue.h"

namespace nos::device {

struct SimGpuSpec {
  // One of gpu/shares.h: a board without MIG that has so much for shares.
  const gpu::Model* model = nullptr;
  std::string product{};  // as NVML names it; empty: the model's name
  bool mig_enabled = true;
  ComputeMode compute_mode = ComputeMode::kDefault;
};

// What goes wrong with one operation.
enum class SimFault {
  kNone,
  kBusy,        // a monitor holds the GPU for a moment: NVML_ERROR_IN_USE
  kTimeout,     // takes its time, does nothing, and says kDeadline
  kLateAnswer,  // takes its time, does it, and says kDeadline
  kFails,       // an unknown driver error (kInternal)
  // The agent dies here. A create has made the GPU instance but not the compute instance and leaves
  // it so; a destroy has removed the compute instance only.
  kCrashBetween,
  kLost,  // the GPU falls off the bus: kUnavailable, until Restore()
};

struct SimAttempt {
  enum class Kind {
    kCreate,
    kDestroy,
    kEnableMig,
    kDisableMig,
    kSetComputeMode,
    kReset,
    kTakeBack  // of a MIG mode that waits for a reset
  } kind = Kind::kCreate;
  int gpu = 0;
  std::string profile;
  uint8_t start = 0;
};

// All optional. Called synchronously from the operation.
struct SimHooks {
  std::function<void(Duration)> spend{};
  std::function<SimFault(const SimAttempt&)> fault{};
  // Whether a process of a pod holds the instance (or whole GPU) with this UUID: Destroy then fails
  // "in use".
  std::function<bool(const std::string& uuid)> held{};
  // Whether somebody works on it, for what is measured; where this is empty, `held` says.
  std::function<bool(const std::string& uuid)> busy{};
  // Just before an instance disappears through Destroy (not through Reboot): for invariants.
  std::function<void(const GpuInstance&)> on_destroy{};
  // Just before a GPU is reset, with its UUID: for invariants.
  std::function<void(const std::string& uuid)> on_reset{};
};

// Source of the defaults: mig.md 1.5 (A100-SXM4-80: 2.46 s for seven creates, 4.38 s for seven
// destroys, 6.46 s to switch MIG on); a reset is guessed.
struct SimLatency {
  Duration create = std::chrono::milliseconds(350);
  Duration destroy = std::chrono::milliseconds(600);
  Duration enable_mig = std::chrono::milliseconds(6460);  // and off
  Duration reset = std::chrono::seconds(12);
};

class SimGpus final : public Backend {
 public:
  // `seed_name` (a node's name) makes UUIDs differ between nodes. Models must outlive this.
  SimGpus(const std::vector<SimGpuSpec>& gpus, const std::string& seed_name, SimHooks hooks = {},
          SimLatency latency = {});

  Result<std::vector<GpuInfo>> ListGpus() override;
  Result<std::vector<GpuInstance>> ListInstances(int gpu) override;
  Result<GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override;
  Status Destroy(int gpu, uint32_t instance_id) override;
  Status EnableMig(int gpu) override;
  Status DisableMig(int gpu) override;
  // kUnavailable while it has instances, or Hooks::held says that somebody uses it. None is used
  // exclusively after it.
  Status ResetGpu(int gpu) override;
  Status SetComputeMode(int gpu, ComputeMode mode) override;
  // As Hooks::busy or held says who works; without them nobody does. Each reading is a turn.
  Readings MeasureGpu(int gpu) override;
  Readings MeasureInstance(const GpuInstance& instance) override;

  // The node restarts: every instance vanishes, lost GPUs are back, and none is used exclusively;
  // Ampere keeps MIG mode, or changes as it was told to, later architectures lose it.
  void Reboot();
  void Lose(int gpu);
  void Restore(int gpu);

  // Without latency, faults or hooks: for setting up a scene. Errors as Create.
  Result<GpuInstance> Place(int gpu, const std::string& profile, uint8_t start);
  // What is truly there, lost or not.
  const std::vector<GpuInstance>& Truth(int gpu) const { return gpus_[gpu].instances; }
  const GpuInfo& Info(int gpu) const { return gpus_[gpu].info; }

 private:
  struct SimGpu {
    GpuInfo info;
    const gpu::Model* model = nullptr;
    std::vector<GpuInstance> instances;
    bool lost = false;
  };

  Status SwitchMig(int gpu, bool enable);
  SimFault Begin(const SimAttempt& attempt, Duration cost);
  Result<SimGpu*> Reach(int gpu);
  double LoadOf(const std::string& uuid) const;
  double LoadOf(const SimGpu& gpu) const;
  Result<GpuInstance> Add(SimGpu& gpu, const std::string& profile, uint8_t start, bool complete);

  std::vector<SimGpu> gpus_;
  SimHooks hooks_;
  SimLatency latency_;
  uint64_t turn_ = 0;  // readings of GPU 0 so far
};

}  // namespace nos::device
