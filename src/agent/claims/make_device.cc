#include "agent/claims/make_device.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "device/actuator.h"
#include "device/mig_parts.h"
#include "gpu/occupancy.h"

namespace nos::agent {
namespace {

// More than a GPU has placements: each operation makes or removes one instance.
constexpr int kMaxOperations = 80;

using device::Operation;

// The state of one GPU with what may not be touched.
struct Scene {
  bool mig = false;
  std::vector<device::GpuInstance> instances;
  std::set<std::string> used;  // UUIDs
};

Result<Scene> Observe(const DeviceWork& work, const std::set<std::string>& held,
                      device::Backend& backend) {
  Scene scene;
  auto instances = backend.ListInstances(work.gpu);
  if (!instances.ok() && instances.status().code() != Code::kUnimplemented) {
    return instances.status();
  }
  scene.mig = instances.ok();
  if (scene.mig) scene.instances = std::move(instances).value();
  scene.used = held;
  if (work.whole_claimed) scene.used.insert(work.gpu_uuid);
  for (const device::GpuInstance& instance : scene.instances) {
    const auto profile =
        work.model == nullptr ? std::nullopt : work.model->FindProfile(instance.profile);
    const bool claimed =
        profile && std::ranges::count(work.claimed, gpu::Placement{*profile, instance.start}) > 0;
    if (claimed && instance.complete) scene.used.insert(instance.uuid);
  }
  return scene;
}

// The target has what is wanted, what other claims have, and all free instances that fit beside.
device::Target TargetOf(const DeviceWork& work, const Scene& scene) {
  device::Target target{work.gpu, {}, nullptr};
  if (!work.wanted) return target;
  gpu::Occupancy room(*work.model);
  const auto add = [&](gpu::Placement placement) {
    if (room.Add(placement)) target.placements.push_back(placement);
  };
  add(*work.wanted);
  // The instances of other claims are made for them, not here.
  for (const gpu::Placement& placement : work.claimed) (void)room.Add(placement);
  for (const device::GpuInstance& instance : scene.instances) {
    const auto profile = work.model->FindProfile(instance.profile);
    if (!profile || !instance.complete) continue;
    const gpu::Placement placement{*profile, instance.start};
    if (placement == *work.wanted) continue;
    if (std::ranges::count(work.claimed, placement) > 0) {
      target.placements.push_back(placement);
    } else {
      add(placement);
    }
  }
  return target;
}

std::optional<MadeDevice> FindMade(const DeviceWork& work, const Scene& scene) {
  if (!work.wanted) {
    if (scene.mig) return std::nullopt;
    return MadeDevice{};
  }
  for (const device::GpuInstance& instance : scene.instances) {
    if (!instance.complete || !instance.part_of.empty()) continue;
    const auto profile = work.model->FindProfile(instance.profile);
    if (profile && gpu::Placement{*profile, instance.start} == *work.wanted) {
      return MadeDevice{instance.uuid, device::DriverIdOf(instance.id)};
    }
  }
  return std::nullopt;
}

// The next operation, or why there is none.
Result<Operation> Next(const DeviceWork& work, const Scene& scene) {
  std::vector<device::ObservedGpu> gpus(1);
  gpus[0].index = work.gpu;
  gpus[0].model = work.model;
  gpus[0].mig_enabled = scene.mig;
  gpus[0].instances = scene.instances;
  gpus[0].uuid = work.gpu_uuid;
  device::Progress progress;
  if (work.model != nullptr) {
    const std::vector<device::Target> targets{TargetOf(work, scene)};
    progress = device::NextOperation(targets, gpus, scene.used);
  }
  if (progress.next) return *progress.next;
  const bool switches = !work.wanted && scene.instances.empty() && scene.mig;
  if (switches && !scene.used.contains(work.gpu_uuid)) {
    return Operation{Operation::Kind::kDisableMig, work.gpu, "", 0, 0, work.gpu_uuid};
  }
  std::string why = fmt::format("GPU {} cannot have the device now", work.gpu);
  if (!progress.obstacles.empty()) why = progress.obstacles.front().message;
  return Status(Code::kConflict, std::move(why));
}

Status CheckWork(const DeviceWork& work) {
  if (work.wanted && (work.model == nullptr || !work.model->layouts().Find(*work.wanted))) {
    return Invalid(fmt::format("GPU {} has no such placement", work.gpu));
  }
  if (!work.create) return Status::Ok();
  if (work.whole_claimed) {
    return {Code::kConflict, fmt::format("another claim uses GPU {} as a whole", work.gpu)};
  }
  if (!work.wanted && !work.claimed.empty()) {
    return {Code::kConflict, fmt::format("other claims use instances of GPU {}", work.gpu)};
  }
  for (const gpu::Placement& placement : work.claimed) {
    gpu::Occupancy room(*work.model);
    if (room.Add(placement) && work.wanted && room.Add(*work.wanted)) continue;
    return {Code::kConflict, fmt::format("another claim uses {} of GPU {}",
                                         work.model->PlacementName(placement), work.gpu)};
  }
  return Status::Ok();
}

}  // namespace

Result<MadeDevice> MakeDevice(const DeviceWork& work, const HeldDevices& held,
                              device::Backend& backend) {
  NOS_RETURN_IF_ERROR(CheckWork(work));
  std::set<std::string> holds;
  bool asked = false;
  // Another device plugin may give GPUs whose MIG mode is off.
  if (!work.wanted && work.create) {
    NOS_ASSIGN(holds, held());
    asked = true;
    if (holds.contains(work.gpu_uuid)) {
      return Status(Code::kConflict, fmt::format("a pod without a claim has GPU {}", work.gpu));
    }
  }
  for (int i = 0; i < kMaxOperations; ++i) {
    // 1. Observe, because every operation may have failed half-way, now or before a crash.
    NOS_ASSIGN(const Scene scene, Observe(work, holds, backend));
    if (auto made = FindMade(work, scene)) return *made;
    if (!work.create) return NotFound(fmt::format("the device of GPU {} is not there", work.gpu));
    // 2. Decide. Before it destroys or switches anything, it asks the kubelet what pods hold.
    NOS_ASSIGN(const Operation operation, Next(work, scene));
    if (operation.kind != Operation::Kind::kCreate && !asked) {
      NOS_ASSIGN(holds, held());
      asked = true;
      continue;
    }
    // 3. Act.
    Log(LogLevel::kInfo, "changing GPU for claim", {{"operation", operation.ToString()}});
    NOS_RETURN_IF_ERROR(device::Apply(operation, backend).Within(operation.ToString()));
  }
  return Internal(fmt::format("GPU {} does not settle", work.gpu));
}

Status RemoveDevice(const DeviceWork& work, const HeldDevices& held, device::Backend& backend) {
  NOS_ASSIGN(const std::set<std::string> holds, held());
  NOS_ASSIGN(const Scene scene, Observe(work, holds, backend));
  const auto made = FindMade(work, scene);
  if (!made) return Status::Ok();
  for (const device::GpuInstance& instance : scene.instances) {
    if (instance.uuid != made->instance_uuid) continue;
    if (scene.used.contains(instance.uuid)) {
      return {Code::kConflict, fmt::format("a claim or pod uses {}", instance.uuid)};
    }
    const Operation operation{Operation::Kind::kDestroy,
                              work.gpu,
                              instance.profile,
                              instance.start,
                              instance.id,
                              instance.uuid};
    Log(LogLevel::kInfo, "changing GPU for claims", {{"operation", operation.ToString()}});
    NOS_RETURN_IF_ERROR(device::Apply(operation, backend).Within(operation.ToString()));
  }
  return Status::Ok();
}

}  // namespace nos::agent
