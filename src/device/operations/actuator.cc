#include "device/actuator.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "device/plain_gpus.h"
#include "gpu/modes.h"
#include "gpu/occupancy.h"

namespace nos::device {
namespace {

using Deferred = std::function<bool(const Operation&)>;

// Earlier stages run first on all GPUs. Remnants of a crash block both creation and destruction. A
// creation is more urgent than a destruction, because pods wait for it.
enum Stage { kCleanUp, kEnable, kCreateNow, kDestroyUnwanted, kStages };

// One GPU with its target, in the model's terms.
class GpuWork {
 public:
  GpuWork(const ObservedGpu& gpu, const Target* target, const std::set<std::string>& used)
      : gpu_(gpu), used_(used) {
    for (const GpuInstance& instance : gpu.instances) {
      const auto profile = gpu.model->FindProfile(instance.profile);
      const gpu::Placement placement{profile.value_or(0), instance.start};
      // Instances that exist only in memory are always ours, possibly made with other settings.
      const bool strange = !profile || !MayLie(placement);
      if (strange && IsMigProfile(instance.profile)) foreign_ = &instance;
      present_.push_back(placement);
    }
    if (target == nullptr) return;
    has_target_ = true;
    FindMode(*target);
    if (target->model != nullptr && target->model != gpu.model) return;
    for (const gpu::Placement& placement : target->placements) {
      if (MayLie(placement)) wanted_.insert(placement);
    }
  }

  std::vector<Operation> Candidates(Stage stage) const {
    switch (stage) {
      case kCleanUp:
        return Incomplete();
      case kEnable:
        return Enable();
      case kCreateNow:
        return Creatable();
      default:
        return Destroyable();
    }
  }

  // Instances that are free, unwanted, and not foreign.
  std::vector<GpuInstance> UnwantedInstances() const {
    std::vector<GpuInstance> unwanted;
    if (!Actionable()) return unwanted;
    for (size_t i = 0; i < present_.size(); ++i) {
      const GpuInstance& instance = gpu_.instances[i];
      if (instance.complete && !IsWanted(present_[i]) && !used_.contains(instance.uuid)) {
        unwanted.push_back(instance);
      }
    }
    return unwanted;
  }

  // REQUIRES: every possible operation is deferred.
  void AddObstacles(std::vector<Obstacle>& obstacles) const {
    if (!has_target_) return;
    if (Switches()) return AddNotSwitched(obstacles);
    if (!gpu_.mig_enabled) return AddMigDisabled(obstacles);
    if (foreign_ != nullptr) return AddForeign(obstacles);
    for (const gpu::Placement& placement : wanted_) {
      if (!IsPresent(placement)) AddMissing(placement, obstacles);
    }
    for (size_t i = 0; i < present_.size(); ++i) {
      if (!IsWanted(present_[i])) AddKept(gpu_.instances[i], obstacles);
    }
  }

 private:
  void FindMode(const Target& target) {
    if (!gpu_.mode || target.placements.empty()) return;
    const gpu::Model& model = target.model != nullptr ? *target.model : *gpu_.model;
    if (model.counted()) {
      wanted_mode_ = GpuMode::kShares;
      return;
    }
    const bool plain = gpu::IsPlain(model.profile(target.placements.front().profile));
    wanted_mode_ = plain ? GpuMode::kPlain : GpuMode::kMig;
  }
  bool Switches() const { return wanted_mode_ && gpu_.mode && *wanted_mode_ != *gpu_.mode; }

  // True if the next reset, by any tool, would activate a mode that the target does not ask for.
  bool TakesBack() const {
    const bool is_mig = gpu_.mode == GpuMode::kMig;
    return gpu_.mig_after_reset && wanted_mode_ && (*wanted_mode_ == GpuMode::kMig) == is_mig &&
           *gpu_.mig_after_reset != is_mig;
  }
  Operation::Kind TakeBack() const {
    return gpu_.mode == GpuMode::kMig ? Operation::Kind::kEnableMig : Operation::Kind::kDisableMig;
  }

  // From MPS shares or MIG, first leave that mode: a direct switch is impossible.
  Operation::Kind NextSwitch() const {
    if (gpu_.mode == GpuMode::kMig) return Operation::Kind::kDisableMig;
    if (gpu_.mode == GpuMode::kShares) return Operation::Kind::kDisableMps;
    return wanted_mode_ == GpuMode::kMig ? Operation::Kind::kEnableMig
                                         : Operation::Kind::kEnableMps;
  }

  bool MayLie(gpu::Placement placement) const { return gpu::Occupancy(*gpu_.model).Add(placement); }
  bool Actionable() const { return has_target_ && gpu_.mig_enabled && foreign_ == nullptr; }
  bool IsWanted(gpu::Placement placement) const { return wanted_.contains(placement); }
  bool IsPresent(gpu::Placement placement) const {
    return std::ranges::find(present_, placement) != present_.end();
  }
  std::string NameOf(gpu::Placement placement) const {
    return gpu_.model->PlacementName(placement);
  }

  Operation Make(Operation::Kind kind, gpu::Placement placement) const {
    return {kind, gpu_.index, gpu_.model->profile(placement.profile).name, placement.start, 0, ""};
  }
  Operation DestroyOf(const GpuInstance& instance) const {
    return {Operation::Kind::kDestroy,
            gpu_.index,
            instance.profile,
            instance.start,
            instance.id,
            instance.uuid};
  }

  std::vector<Operation> Incomplete() const {
    std::vector<Operation> operations;
    for (const GpuInstance& instance : gpu_.instances) {
      if (!instance.complete) operations.push_back(DestroyOf(instance));
    }
    return operations;
  }

  std::vector<Operation> Enable() const {
    std::vector<Operation> operations;
    const auto add = [&](Operation::Kind kind) {
      operations.push_back({kind, gpu_.index, "", 0, 0, gpu_.uuid});
    };
    // First, because an MPS daemon opens the GPU once it is shared. It does not affect running
    // programs.
    if (TakesBack()) add(TakeBack());
    if (Switches()) {
      if (present_.empty() && !used_.contains(gpu_.uuid)) add(NextSwitch());
      return operations;
    }
    if (!operations.empty() || gpu_.mig_enabled || wanted_.empty() || used_.contains(gpu_.uuid)) {
      return operations;
    }
    return {{Operation::Kind::kEnableMig, gpu_.index, "", 0, 0, gpu_.uuid}};
  }

  std::vector<Operation> Creatable() const {
    std::vector<Operation> operations;
    if (!Actionable() || Switches()) return operations;
    for (const gpu::Placement& placement : wanted_) {
      if (!IsPresent(placement) && Fits(present_, placement)) {
        operations.push_back(Make(Operation::Kind::kCreate, placement));
      }
    }
    return operations;
  }

  std::vector<Operation> Destroyable() const {
    std::vector<Operation> operations;
    for (const GpuInstance& instance : UnwantedInstances()) {
      operations.push_back(DestroyOf(instance));
    }
    return operations;
  }

  // True if it fits beside the present instances, which need not all be legal.
  bool Fits(const std::vector<gpu::Placement>& present, gpu::Placement placement) const {
    gpu::Occupancy on(*gpu_.model);
    return std::ranges::all_of(present, [&](gpu::Placement one) { return on.Add(one); }) &&
           on.Add(placement);
  }

  void AddMissing(gpu::Placement id, std::vector<Obstacle>& obstacles) const {
    for (size_t i = 0; i < present_.size(); ++i) {
      const GpuInstance& instance = gpu_.instances[i];
      if (!used_.contains(instance.uuid) || Fits({present_[i]}, id)) continue;
      return Add(NameOf(id), gpu::obstacles::kInUse,
                 fmt::format("{} cannot be made: {} ({}) is in use", NameOf(id),
                             NameOf(present_[i]), instance.uuid),
                 obstacles);
    }
    if (Fits(present_, id) || !UnwantedInstances().empty()) {
      return Add(NameOf(id), gpu::obstacles::kDeferred,
                 fmt::format("{} could not be made yet", NameOf(id)), obstacles);
    }
    Add(NameOf(id), gpu::obstacles::kIllegal,
        fmt::format("{} does not fit beside the rest of what is asked", NameOf(id)), obstacles);
  }

  void AddKept(const GpuInstance& instance, std::vector<Obstacle>& obstacles) const {
    const std::string name = fmt::format("{}@{}", instance.profile, instance.start);
    if (used_.contains(instance.uuid)) {
      Add(name, gpu::obstacles::kInUse,
          fmt::format("{} ({}) is kept: it is in use", name, instance.uuid), obstacles);
    } else {
      Add(name, gpu::obstacles::kDeferred, fmt::format("{} could not be destroyed yet", name),
          obstacles);
    }
  }

  void AddNotSwitched(std::vector<Obstacle>& obstacles) const {
    for (size_t i = 0; i < present_.size(); ++i) {
      const GpuInstance& instance = gpu_.instances[i];
      if (used_.contains(instance.uuid)) return AddKept(instance, obstacles);
    }
    if (!gpu_.mode || !wanted_mode_) return;
    Add("", gpu::obstacles::kNotSwitched,
        fmt::format("GPU {} could not be switched from {} to {} yet", gpu_.index,
                    GpuModeName(*gpu_.mode), GpuModeName(*wanted_mode_)),
        obstacles);
  }

  void AddMigDisabled(std::vector<Obstacle>& obstacles) const {
    if (wanted_.empty()) return;
    if (used_.contains(gpu_.uuid)) {
      return Add("", gpu::obstacles::kInUse, fmt::format("GPU {} is in use as a whole", gpu_.index),
                 obstacles);
    }
    Add("", gpu::obstacles::kMigDisabled, fmt::format("MIG mode is off on GPU {}", gpu_.index),
        obstacles);
  }

  void AddForeign(std::vector<Obstacle>& obstacles) const {
    Add("", gpu::obstacles::kForeign,
        fmt::format("GPU {} holds {}@{}, which {} does not know: the GPU is left alone", gpu_.index,
                    foreign_->profile, foreign_->start, gpu_.model->name()),
        obstacles);
  }

  void Add(std::string placement, std::string code, std::string message,
           std::vector<Obstacle>& obstacles) const {
    obstacles.push_back({gpu_.index, std::move(placement), std::move(code), std::move(message)});
  }

  const ObservedGpu& gpu_;
  const std::set<std::string>& used_;
  std::vector<gpu::Placement> present_;   // parallel to gpu_.instances
  const GpuInstance* foreign_ = nullptr;  // its profile or start is not in the model
  std::set<gpu::Placement> wanted_;
  bool has_target_ = false;
  std::optional<GpuMode> wanted_mode_;  // empty: keep the present mode
};

std::vector<GpuWork> WorkOf(std::span<const Target> targets, std::span<const ObservedGpu> gpus,
                            const std::set<std::string>& used) {
  std::vector<const ObservedGpu*> sorted;
  for (const ObservedGpu& gpu : gpus) sorted.push_back(&gpu);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* left, const auto* right) { return left->index < right->index; });
  std::vector<GpuWork> work;
  for (const ObservedGpu* gpu : sorted) {
    const auto target = std::find_if(targets.begin(), targets.end(), [&](const Target& candidate) {
      return candidate.gpu == gpu->index;
    });
    work.emplace_back(*gpu, target == targets.end() ? nullptr : &*target, used);
  }
  return work;
}

void AddAbsentGpus(std::span<const Target> targets, std::span<const ObservedGpu> gpus,
                   std::vector<Obstacle>& obstacles) {
  for (const Target& target : targets) {
    const bool there = std::any_of(gpus.begin(), gpus.end(),
                                   [&](const ObservedGpu& gpu) { return gpu.index == target.gpu; });
    if (there || target.placements.empty()) continue;
    obstacles.push_back({target.gpu, "", gpu::obstacles::kNoSuchGpu,
                         fmt::format("GPU {} is not there or cannot be read", target.gpu)});
  }
}

}  // namespace

std::string_view GpuModeName(GpuMode mode) {
  switch (mode) {
    case GpuMode::kMig:
      return "MIG";
    case GpuMode::kShares:
      return "MPS";
    case GpuMode::kPlain:
      return "plain";
  }
  return "";
}

std::string Operation::ToString() const {
  switch (kind) {
    case Kind::kEnableMig:
      return fmt::format("enable MIG on GPU {}", gpu);
    case Kind::kDisableMig:
      return fmt::format("disable MIG on GPU {}", gpu);
    case Kind::kEnableMps:
      return fmt::format("share GPU {} by MPS", gpu);
    case Kind::kDisableMps:
      return fmt::format("end sharing GPU {} by MPS", gpu);
    default:
      return fmt::format("{} {}@{} on GPU {}", kind == Kind::kCreate ? "create" : "destroy",
                         profile, start, gpu);
  }
}

Progress NextOperation(std::span<const Target> targets, std::span<const ObservedGpu> gpus,
                       const std::set<std::string>& used, const Deferred& deferred) {
  const std::vector<GpuWork> work = WorkOf(targets, gpus, used);
  for (int stage = 0; stage < kStages; ++stage) {
    for (const GpuWork& gpu : work) {
      for (const Operation& operation : gpu.Candidates(static_cast<Stage>(stage))) {
        if (!deferred || !deferred(operation)) return {operation, {}};
      }
    }
  }
  Progress progress;
  for (const GpuWork& gpu : work) gpu.AddObstacles(progress.obstacles);
  AddAbsentGpus(targets, gpus, progress.obstacles);
  return progress;
}

namespace {

// Empty: the GPU is in the wanted mode, or it cannot be switched.
std::optional<Operation::Kind> SwitchOf(bool to_mps, const GpuInfo& info, bool was_shared) {
  if (!info.problem.empty()) return std::nullopt;
  const bool shared = info.share_gib > 0;
  if (!to_mps && shared) return Operation::Kind::kDisableMps;
  if (!to_mps && (!was_shared || info.mig_enabled)) return std::nullopt;
  if (info.mig_enabled) return Operation::Kind::kDisableMig;
  const bool forgotten = info.compute_mode && *info.compute_mode != ComputeMode::kExclusiveProcess;
  return shared && !forgotten ? std::nullopt : std::optional(Operation::Kind::kEnableMps);
}

bool IsEmpty(const GpuInfo& info, std::span<const ObservedGpu> gpus) {
  const auto known = std::ranges::find(gpus, info.index, &ObservedGpu::index);
  const bool divided = info.mig_enabled || info.share_gib > 0;
  return known == gpus.end() ? !divided : known->instances.empty();
}

}  // namespace

std::optional<Operation> NextSwitch(bool to_mps, std::span<const GpuInfo> infos,
                                    std::span<const ObservedGpu> gpus,
                                    const std::set<std::string>& were_shared,
                                    const std::set<std::string>& used, const Deferred& deferred) {
  for (const GpuInfo& info : infos) {
    const auto kind = SwitchOf(to_mps, info, were_shared.contains(info.uuid));
    if (!kind || used.contains(info.uuid)) continue;
    // If only the driver lost the compute mode, it can be set again while the GPU is used.
    const bool again = *kind == Operation::Kind::kEnableMps && info.share_gib > 0;
    if (!again && !IsEmpty(info, gpus)) continue;
    Operation operation{*kind, info.index, "", 0, 0, info.uuid};
    if (!deferred || !deferred(operation)) return operation;
  }
  return std::nullopt;
}

std::vector<GpuInstance> Unwanted(std::span<const Target> targets,
                                  std::span<const ObservedGpu> gpus,
                                  const std::set<std::string>& used) {
  std::vector<GpuInstance> unwanted;
  for (const GpuWork& gpu : WorkOf(targets, gpus, used)) {
    const std::vector<GpuInstance> more = gpu.UnwantedInstances();
    unwanted.insert(unwanted.end(), more.begin(), more.end());
  }
  return unwanted;
}

namespace {

// Checks the instance first: indexes may have changed since the decision, or an incomplete instance
// may have been completed.
Status DestroyMeant(const Operation& operation, Backend& backend) {
  NOS_ASSIGN(const std::vector<GpuInstance> instances, backend.ListInstances(operation.gpu));
  const bool there = std::ranges::any_of(instances, [&](const GpuInstance& instance) {
    return instance.id == operation.instance_id && instance.uuid == operation.uuid;
  });
  if (there) return backend.Destroy(operation.gpu, operation.instance_id);
  return NotFound(fmt::format("GPU {} has another instance {} by now, or none", operation.gpu,
                              operation.instance_id));
}

}  // namespace

Status Apply(const Operation& operation, Backend& backend) {
  switch (operation.kind) {
    case Operation::Kind::kCreate:
      return backend.Create(operation.gpu, operation.profile, operation.start).status();
    case Operation::Kind::kDestroy:
      return DestroyMeant(operation, backend);
    case Operation::Kind::kEnableMig:
      return backend.EnableMig(operation.gpu);
    case Operation::Kind::kDisableMig:
      return backend.DisableMig(operation.gpu);
    case Operation::Kind::kEnableMps:
      return backend.EnableMps(operation.gpu);
    case Operation::Kind::kDisableMps:
      return backend.DisableMps(operation.gpu);
  }
  return Internal("unknown device operation");
}

}  // namespace nos::device
