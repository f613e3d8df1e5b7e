// What to do next on a node's GPUs so that they become what the spec asks: one operation at a time,
// decided afresh from what is there, so that it converges from any state and a crash anywhere is
// harmless. Pure.
//
//   Progress progress = NextOperation(targets, gpus, used, deferred);
//   if (progress.next) Apply(*progress.next); else Report(progress.obstacles);
//
// A GPU that has a mode is switched to that of its target once nothing is left on it. Where that
// takes a reset, a mode that waits for it is taken back when the target asks for the present one,
// be it used or not.
//
// In this order: incomplete instances are removed; instances that fit now are created at their
// exact starts; free instances that are not wanted are destroyed. Instances in use are kept,
// whatever the spec says; what they block is reported and the rest is applied. So is a GPU without
// MIG that is in use as a whole. A GPU without a target is left as it is, but for incomplete
// instances.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/backend.h"
#include "gpu/obstacle.h"
#include "gpu/catalogue.h"

namespace nos::device {

using gpu::Obstacle;

// How a GPU shall be cut.
struct Target {
  int gpu = 0;
  std::vector<gpu::Placement> placements;
  const gpu::Model* model = nullptr;  // whose they are; null: the one that the GPU has
};

// What a GPU is used as.
enum class Mode {
  kMig,     // cut by MIG
  kShares,  // shared by MPS
  kPlain,   // neither: whole, or in time slices
};
std::string_view ModeName(Mode mode);  // "MIG", "MPS", "plain"

struct ObservedGpu {
  int index = 0;
  const gpu::Model* model = nullptr;
  bool mig_enabled = true;  // or it is shared by MPS: instances can be made and removed
  std::vector<GpuInstance> instances;
  std::string uuid{};  // "GPU-..."
  // Of a node whose GPUs are each used in their own way: how it is used now, and the model that it
  // would have as shares, or as anything else if it is shared; null: it cannot be.
  std::optional<Mode> mode{};
  const gpu::Model* other = nullptr;
  // Where MIG mode changes with a reset only: whether it is on after the next one.
  std::optional<bool> mig_after_reset{};
};

struct Operation {
  enum class Kind {
    kCreate,
    kDestroy,
    kEnableMig,
    kDisableMig,
    kEnableMps,
    kDisableMps
  } kind = Kind::kCreate;
  int gpu = 0;
  std::string profile;  // of what is created or destroyed
  uint8_t start = 0;
  uint32_t instance_id = 0;  // kDestroy
  std::string uuid;          // of what is destroyed, empty for an incomplete instance; of the GPU
                             // that is switched

  // Whether it changes MIG mode.
  bool ChangesMig() const { return kind == Kind::kEnableMig || kind == Kind::kDisableMig; }
  // Whether it changes the mode of the GPU as a whole.
  bool Switches() const { return kind != Kind::kCreate && kind != Kind::kDestroy; }
  // "create 3g.20gb@4 on GPU 0"; also its identity in tables of failures.
  std::string ToString() const;
  friend bool operator==(const Operation&, const Operation&) = default;
};

struct Progress {
  std::optional<Operation> next;
  // Filled only when there is no next operation.
  std::vector<Obstacle> obstacles;
};

// `used`: UUIDs of instances that must not be destroyed and GPUs that must not be switched.
// `deferred`: operations that failed lately and are not to be tried now; others go on. Targets and
// GPUs in any order; the result does not depend on it.
Progress NextOperation(std::span<const Target> targets, std::span<const ObservedGpu> gpus,
                       const std::set<std::string>& used,
                       const std::function<bool(const Operation&)>& deferred = {});

// What to do next so that the node's GPUs are shared by MPS, or no more: those that nobody uses and
// that have no instances. To be asked when NextOperation has nothing left to do; MIG mode that a
// target needs NextOperation switches on. `were_shared`, by UUID: what a former agent shared, which
// has to be known as such before it can be put back. `used`, `deferred`: as there.
std::optional<Operation> NextSwitch(bool to_mps, std::span<const GpuInfo> infos,
                                    std::span<const ObservedGpu> gpus,
                                    const std::set<std::string>& were_shared,
                                    const std::set<std::string>& used,
                                    const std::function<bool(const Operation&)>& deferred = {});

// What NextOperation would destroy sooner or later if nothing changed: free instances that the
// targets do not contain. To be withdrawn from the kubelet before.
std::vector<GpuInstance> Unwanted(std::span<const Target> targets,
                                  std::span<const ObservedGpu> gpus,
                                  const std::set<std::string>& used);

// Runs it on the backend. Error also: kNotFound: what it would destroy is not what was meant.
Status Apply(const Operation& operation, Backend& backend);

}  // namespace nos::device
