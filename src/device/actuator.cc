#include "device/actuator.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace nos::device {
namespace {

using Deferred = std::function<bool(const Operation&)>;

// Earlier stages go first on all GPUs: what a crash left blocks both kinds of work, and a pod waits
// for a creation, nobody for a destruction.
enum Stage { kCleanUp, kEnable, kCreateNow, kDestroyUnwanted, kStages };

// One GPU with its target, in the model's terms.
class GpuWork {
 public:
  GpuWork(const ObservedGpu& gpu, const Target* target, const std::set<std::string>& used)
      : gpu_(gpu), used_(used) {
    for (const GpuInstance& instance : gpu.instances) {
      const auto profile = gpu.model->FindProfile(instance.profile);
      const auto id = profile ? Table().Find({*profile, instance.start}) : std::nullopt;
      if (!id) foreign_ = &instance;
      present_.push_back(id.value_or(0));
    }
    if (target == nullptr) return;
    has_target_ = true;
    for (const gpu::Placement& placement : target->placements) {
      if (const auto id = Table().Find(placement)) wanted_ |= uint64_t{1} << *id;
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

  // Free, unwanted, and ours to judge.
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

  // REQUIRES: nothing can be done now but what is deferred.
  void AddObstacles(std::vector<Obstacle>& obstacles) const {
    if (!has_target_) return;
    if (!gpu_.mig_enabled) return AddMigDisabled(obstacles);
    if (foreign_ != nullptr) return AddForeign(obstacles);
    for (size_t id = 0; id < Table().placements().size(); ++id) {
      const auto placement = static_cast<gpu::PlacementId>(id);
      if (IsWanted(placement) && !IsPresent(placement)) AddMissing(placement, obstacles);
    }
    for (size_t i = 0; i < present_.size(); ++i) {
      if (!IsWanted(present_[i])) AddKept(gpu_.instances[i], obstacles);
    }
  }

 private:
  const gpu::LayoutTable& Table() const { return gpu_.model->layouts(); }
  bool Actionable() const { return has_target_ && gpu_.mig_enabled && foreign_ == nullptr; }
  bool IsWanted(gpu::PlacementId id) const { return (wanted_ >> id & 1) != 0; }
  bool IsPresent(gpu::PlacementId id) const {
    return std::find(present_.begin(), present_.end(), id) != present_.end();
  }
  std::string NameOf(gpu::PlacementId id) const {
    return gpu_.model->PlacementName(Table().placements()[id]);
  }

  Operation Make(Operation::Kind kind, gpu::PlacementId id) const {
    const gpu::Placement placement = Table().placements()[id];
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
    if (gpu_.mig_enabled || wanted_ == 0 || used_.contains(gpu_.uuid)) return {};
    return {{Operation::Kind::kEnableMig, gpu_.index, "", 0, 0, gpu_.uuid}};
  }

  std::vector<Operation> Creatable() const {
    std::vector<Operation> operations;
    if (!Actionable()) return operations;
    const gpu::LayoutId layout = Layout(present_);
    for (size_t id = 0; id < Table().placements().size(); ++id) {
      const auto placement = static_cast<gpu::PlacementId>(id);
      if (IsWanted(placement) && !IsPresent(placement) && Fits(layout, placement)) {
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

  gpu::LayoutId Layout(const std::vector<gpu::PlacementId>& ids) const {
    uint64_t members = 0;
    for (const gpu::PlacementId id : ids) members |= uint64_t{1} << id;
    return Table().FromMembers(members);
  }
  bool Fits(gpu::LayoutId layout, gpu::PlacementId id) const {
    return layout != gpu::LayoutTable::kIllegal &&
           Table().Add(layout, id) != gpu::LayoutTable::kIllegal;
  }

  void AddMissing(gpu::PlacementId id, std::vector<Obstacle>& obstacles) const {
    for (size_t i = 0; i < present_.size(); ++i) {
      const GpuInstance& instance = gpu_.instances[i];
      if (!used_.contains(instance.uuid) || Fits(Layout({present_[i]}), id)) continue;
      return Add(NameOf(id), "InUse",
                 fmt::format("{} cannot be made: {} ({}) is in use", NameOf(id),
                             NameOf(present_[i]), instance.uuid),
                 obstacles);
    }
    if (Fits(Layout(present_), id) || !UnwantedInstances().empty()) {
      return Add(NameOf(id), "Deferred", fmt::format("{} could not be made yet", NameOf(id)),
                 obstacles);
    }
    Add(NameOf(id), "Illegal",
        fmt::format("{} does not fit beside the rest of what is asked", NameOf(id)), obstacles);
  }

  void AddKept(const GpuInstance& instance, std::vector<Obstacle>& obstacles) const {
    const std::string name = fmt::format("{}@{}", instance.profile, instance.start);
    if (used_.contains(instance.uuid)) {
      Add(name, "InUse", fmt::format("{} ({}) is kept: it is in use", name, instance.uuid),
          obstacles);
    } else {
      Add(name, "Deferred", fmt::format("{} could not be destroyed yet", name), obstacles);
    }
  }

  void AddMigDisabled(std::vector<Obstacle>& obstacles) const {
    if (wanted_ == 0) return;
    if (used_.contains(gpu_.uuid)) {
      return Add("", "InUse", fmt::format("GPU {} is in use as a whole", gpu_.index), obstacles);
    }
    Add("", "MigDisabled", fmt::format("MIG mode is off on GPU {}", gpu_.index), obstacles);
  }

  void AddForeign(std::vector<Obstacle>& obstacles) const {
    Add("", "Foreign",
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
  std::vector<gpu::PlacementId> present_;  // parallel to gpu_.instances
  const GpuInstance* foreign_ = nullptr;   // of a profile or start the model does not have
  uint64_t wanted_ = 0;                    // bit set of placement ids
  bool has_target_ = false;
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
    obstacles.push_back({target.gpu, "", "NoSuchGpu",
                         fmt::format("GPU {} is not there or cannot be read", target.gpu)});
  }
}

}  // namespace

std::string Operation::ToString() const {
  if (kind == Kind::kEnableMig) return fmt::format("enable MIG on GPU {}", gpu);
  return fmt::format("{} {}@{} on GPU {}", kind == Kind::kCreate ? "create" : "destroy", profile,
                     start, gpu);
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

Status Apply(const Operation& operation, Backend& backend) {
  switch (operation.kind) {
    case Operation::Kind::kCreate:
      return backend.Create(operation.gpu, operation.profile, operation.start).status();
    case Operation::Kind::kDestroy:
      return backend.Destroy(operation.gpu, operation.instance_id);
    case Operation::Kind::kEnableMig:
      return backend.EnableMig(operation.gpu);
  }
  return Internal("unknown device operation");
}

}  // namespace nos::device
