// Decides the next operation that brings a node's GPUs closer to the spec: one operation at a time,
// computed from the observed state only, so it converges from any state and after a crash at any
// point. Pure.
//
//   Progress progress = NextOperation(targets, gpus, used, deferred);
//   if (progress.next) Apply(*progress.next); else Report(progress.obstacles);
//
// A GPU with a mode is switched to the mode of its target once it has no instances. If a switch
// takes a reset, and the target asks for the present mode while another one is pending, the pending
// mode is cancelled, whether the GPU is used or not.
//
// Order of operations:
//   1. Remove incomplete instances: they block creation and destruction.
//   2. Switch modes.
//   3. Create instances that fit now, at their exact starts: pending pods need them.
//   4. Destroy free instances that are not wanted.
// Instances in use are kept, whatever the spec says; the targets that they block are reported and
// the rest is applied. A GPU without MIG that is used as a whole is kept likewise. A GPU without a
// target is left as it is, except for incomplete instances.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "device/backend.h"
#include "gpu/catalogue.h"
#include "gpu/obstacle.h"

namespace nos::device {

using gpu::Obstacle;

// The wanted partitioning of a GPU.
struct Target {
  int gpu = 0;
  std::vector<gpu::Placement> placements;
  const gpu::Model* model = nullptr;  // the placements' model; null: the one that the GPU has
};

// How the driver has set up a GPU.
enum class GpuMode {
  kMig,     // partitioned by MIG
  kShares,  // shared by MPS
  kPlain,   // neither: whole, or in time slices
};
std::string_view GpuModeName(GpuMode mode);  // "MIG", "MPS", "plain"

struct ObservedGpu {
  int index = 0;
  const gpu::Model* model = nullptr;
  bool mig_enabled = true;  // or shared by MPS: instances can be created and destroyed
  std::vector<GpuInstance> instances;
  std::string uuid{};  // "GPU-..."
  // Only on a node with a sharing mode per GPU (hybrid): the present mode, and the model that the
  // GPU would have if shared by MPS, or if not shared when it is shared now; null: impossible.
  std::optional<GpuMode> mode{};
  const gpu::Model* alternative = nullptr;
  // Only if MIG mode changes with a reset: MIG mode after the next reset.
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
  std::string profile;  // of the created or destroyed instance
  uint8_t start = 0;
  uint32_t instance_id = 0;  // kDestroy
  // UUID of the destroyed instance (empty for an incomplete one), or of the switched GPU.
  std::string uuid;

  // True if it changes MIG mode.
  bool ChangesMig() const { return kind == Kind::kEnableMig || kind == Kind::kDisableMig; }
  // True if it changes the mode of the whole GPU.
  bool Switches() const { return kind != Kind::kCreate && kind != Kind::kDestroy; }
  // "create 3g.20gb@4 on GPU 0"; also the key in tables of failures.
  std::string ToString() const;
  friend bool operator==(const Operation&, const Operation&) = default;
};

struct Progress {
  std::optional<Operation> next;
  // Filled only if there is no next operation.
  std::vector<Obstacle> obstacles;
};

// `used`: UUIDs of instances that must not be destroyed and GPUs that must not be switched.
// `deferred`: returns true for operations that failed recently and are in back-off; other
// operations proceed. The result does not depend on the order of targets and GPUs.
Progress NextOperation(std::span<const Target> targets, std::span<const ObservedGpu> gpus,
                       const std::set<std::string>& used,
                       const std::function<bool(const Operation&)>& deferred = {});

// The next operation that brings the node's GPUs into MPS mode, or out of it. Only GPUs that are
// unused and have no instances are switched. Call it when NextOperation has no operation left;
// NextOperation enables MIG mode where a target needs it. `were_shared`: UUIDs of GPUs that a
// former agent shared; EnableMps must adopt such a GPU before DisableMps can restore it. `used`,
// `deferred`: as above.
std::optional<Operation> NextSwitch(bool to_mps, std::span<const GpuInfo> infos,
                                    std::span<const ObservedGpu> gpus,
                                    const std::set<std::string>& were_shared,
                                    const std::set<std::string>& used,
                                    const std::function<bool(const Operation&)>& deferred = {});

// The free instances that the targets do not contain, which NextOperation would destroy. Withdraw
// them from the kubelet first.
std::vector<GpuInstance> Unwanted(std::span<const Target> targets,
                                  std::span<const ObservedGpu> gpus,
                                  const std::set<std::string>& used);

// Runs the operation on the backend. Also returns kNotFound if the instance to destroy is no longer
// the intended one.
Status Apply(const Operation& operation, Backend& backend);

}  // namespace nos::device
