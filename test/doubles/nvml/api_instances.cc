// The exported functions for GPU and compute instances. Signatures and answers: device/nvml_abi.h
// and its sources.
#include <algorithm>
#include <cstring>

#include "driver.h"
#include "export.h"

namespace nos::nvml_double {
namespace {

// Like OnModel, but also requires MIG mode.
nvml::Return OnMig(std::string_view call, nvml::Device device,
                   const std::function<nvml::Return(const Context&, Gpu&)>& body) {
  return OnModel(call, device, [&](const Context& context, Gpu& gpu) {
    return gpu.mig ? body(context, gpu) : nvml::kNotSupported;
  });
}

nvml::PlacementSlots Falsified(const Context& context, nvml::PlacementSlots slots) {
  if (context.fault == nullptr) return slots;
  if (context.fault->start) slots.start = static_cast<unsigned>(*context.fault->start);
  if (context.fault->size) slots.size = static_cast<unsigned>(*context.fault->size);
  return slots;
}

const gpu::Profile& ProfileOf(const Gpu& gpu, const Instance& instance) {
  return gpu.model->profile(instance.placement.profile);
}

unsigned FreeSlices(const Gpu& gpu, const Instance& instance) {
  auto free = static_cast<unsigned>(ProfileOf(gpu, instance).compute);
  for (const ComputeInstance& one : instance.compute) free -= std::min(free, one.slices);
  return free;
}

nvml::GpuInstanceRef InstanceHandle(int gpu, unsigned id) {
  return static_cast<nvml::GpuInstanceRef>(ToHandle(Handle::kInstance, {gpu, id, 0}));
}

// The file is untrusted input too: an instance's start may be invalid for the model.
bool Placeable(const Gpu& gpu, const ProfileRow& row, const nvml::PlacementSlots& at) {
  const gpu::Profile& profile = gpu.model->profile(row.profile);
  const bool known =
      std::find(profile.starts.begin(), profile.starts.end(), at.start) != profile.starts.end();
  return known && at.size == static_cast<unsigned>(profile.slots);
}

}  // namespace

EXPORTED nvml::Return nvmlDeviceGetGpuInstanceProfileInfo(nvml::Device device, unsigned profile,
                                                          nvml::GpuInstanceProfileInfo* info) {
  return OnModel("nvmlDeviceGetGpuInstanceProfileInfo", device,
                 [&](const Context& context, Gpu& gpu) {
                   ProfileRow row;
                   const nvml::Return code = FindRow(gpu, profile, row);
                   if (code != nvml::kSuccess) return code;
                   *info = GpuProfileInfo(*gpu.model, row);
                   info->instance_count = PutCount(context, info->instance_count);
                   return code;
                 });
}

EXPORTED nvml::Return nvmlDeviceGetGpuInstancePossiblePlacements_v2(
    nvml::Device device, unsigned profile_id, nvml::PlacementSlots* placements, unsigned* count) {
  return OnModel("nvmlDeviceGetGpuInstancePossiblePlacements_v2", device,
                 [&](const Context& context, Gpu& gpu) {
                   const auto row = RowOf(*gpu.model, profile_id);
                   if (!row) return nvml::kInvalidArgument;
                   if (!ReportsProfiles(gpu)) return nvml::kNotSupported;
                   const gpu::Profile& profile = gpu.model->profile(row->profile);
                   for (size_t i = 0; placements != nullptr && i < profile.starts.size(); ++i) {
                     placements[i] = Falsified(
                         context, {profile.starts[i], static_cast<unsigned>(profile.slots)});
                   }
                   *count = PutCount(context, profile.starts.size());
                   return nvml::kSuccess;
                 });
}

EXPORTED nvml::Return nvmlDeviceCreateGpuInstanceWithPlacement(nvml::Device device,
                                                               unsigned profile_id,
                                                               const nvml::PlacementSlots* at,
                                                               nvml::GpuInstanceRef* made) {
  return OnMig("nvmlDeviceCreateGpuInstanceWithPlacement", device, [&](const Context&, Gpu& gpu) {
    const auto row = RowOf(*gpu.model, profile_id);
    if (!row || !Placeable(gpu, *row, *at)) return nvml::kInvalidArgument;
    const gpu::Placement placement{row->profile, static_cast<uint8_t>(at->start)};
    if (!Fits(gpu, placement)) return nvml::kInsufficientResources;
    const unsigned id = FreeInstanceId(gpu);
    gpu.instances.push_back({id, placement, {}, {}});
    *made = InstanceHandle(FromHandle(Handle::kGpu, device).gpu, id);
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlGpuInstanceDestroy(nvml::GpuInstanceRef ref) {
  const Name name = FromHandle(Handle::kInstance, ref);
  return RunOnInstance(
      "nvmlGpuInstanceDestroy", name, [&](const Context&, Gpu& gpu, Instance& instance) {
        if (!instance.compute.empty()) return nvml::kInUse;
        std::erase_if(gpu.instances,
                      [&](const Instance& candidate) { return candidate.id == name.instance; });
        return nvml::kSuccess;
      });
}

EXPORTED nvml::Return nvmlDeviceGetGpuInstances(nvml::Device device, unsigned profile_id,
                                                nvml::GpuInstanceRef* instances, unsigned* count) {
  return OnMig("nvmlDeviceGetGpuInstances", device, [&](const Context& context, Gpu& gpu) {
    const auto row = RowOf(*gpu.model, profile_id);
    if (!row) return nvml::kInvalidArgument;
    size_t found = 0;
    for (const Instance& instance : gpu.instances) {
      if (instance.placement.profile != row->profile) continue;
      instances[found++] = InstanceHandle(FromHandle(Handle::kGpu, device).gpu, instance.id);
    }
    *count = PutCount(context, found);
    return nvml::kSuccess;
  });
}

EXPORTED nvml::Return nvmlDeviceGetGpuInstanceById(nvml::Device device, unsigned id,
                                                   nvml::GpuInstanceRef* ref) {
  return OnMig("nvmlDeviceGetGpuInstanceById", device, [&](const Context&, Gpu& gpu) {
    for (const Instance& instance : gpu.instances) {
      if (instance.id != id) continue;
      *ref = InstanceHandle(FromHandle(Handle::kGpu, device).gpu, id);
      return nvml::kSuccess;
    }
    return nvml::kNotFound;
  });
}

EXPORTED nvml::Return nvmlGpuInstanceGetInfo(nvml::GpuInstanceRef ref,
                                             nvml::GpuInstanceInfo* info) {
  const Name name = FromHandle(Handle::kInstance, ref);
  return RunOnInstance(
      "nvmlGpuInstanceGetInfo", name, [&](const Context& context, Gpu& gpu, Instance& instance) {
        unsigned profile_id = 0;
        for (const ProfileRow& row : Rows(*gpu.model)) {
          if (row.profile == instance.placement.profile) profile_id = row.id;
        }
        const auto size = static_cast<unsigned>(ProfileOf(gpu, instance).slots);
        *info = {static_cast<nvml::Device>(ToHandle(Handle::kGpu, {name.gpu, 0, 0})), instance.id,
                 profile_id, Falsified(context, {instance.placement.start, size})};
        return nvml::kSuccess;
      });
}

EXPORTED nvml::Return nvmlGpuInstanceGetComputeInstanceProfileInfo(
    nvml::GpuInstanceRef ref, unsigned profile, unsigned engine_profile,
    nvml::ComputeInstanceProfileInfo* info) {
  return RunOnInstance(
      "nvmlGpuInstanceGetComputeInstanceProfileInfo", FromHandle(Handle::kInstance, ref),
      [&](const Context& context, Gpu& gpu, Instance& instance) {
        if (profile >= kComputeProfilePlaces || engine_profile != 0) {
          return nvml::kInvalidArgument;
        }
        const auto found = ComputeProfileInfo(*gpu.model, ProfileOf(gpu, instance), profile);
        if (!found) return nvml::kNotSupported;
        *info = *found;
        info->instance_count = PutCount(context, info->instance_count);
        return nvml::kSuccess;
      });
}

EXPORTED nvml::Return nvmlGpuInstanceCreateComputeInstance(nvml::GpuInstanceRef ref,
                                                           unsigned profile_id,
                                                           nvml::ComputeInstanceRef* made) {
  const Name name = FromHandle(Handle::kInstance, ref);
  return RunOnInstance("nvmlGpuInstanceCreateComputeInstance", name,
                       [&](const Context&, Gpu& gpu, Instance& instance) {
                         if (profile_id >= kComputeProfilePlaces) return nvml::kInvalidArgument;
                         const auto info =
                             ComputeProfileInfo(*gpu.model, ProfileOf(gpu, instance), profile_id);
                         if (!info) return nvml::kNotSupported;
                         if (info->slice_count > FreeSlices(gpu, instance))
                           return nvml::kInsufficientResources;
                         const unsigned id = FreeComputeId(instance);
                         instance.compute.push_back({id, profile_id, info->slice_count, false});
                         Journal("created " + MigUuid(gpu, instance.id, id));
                         *made = static_cast<nvml::ComputeInstanceRef>(
                             ToHandle(Handle::kCompute, {name.gpu, name.instance, id}));
                         return nvml::kSuccess;
                       });
}

EXPORTED nvml::Return nvmlComputeInstanceDestroy(nvml::ComputeInstanceRef ref) {
  const Name name = FromHandle(Handle::kCompute, ref);
  return RunOnInstance(
      "nvmlComputeInstanceDestroy", name, [&](const Context&, Gpu& gpu, Instance& instance) {
        for (auto one = instance.compute.begin(); one != instance.compute.end(); ++one) {
          if (one->id != name.compute) continue;
          if (one->in_use) return nvml::kInUse;
          Journal("destroyed " + MigUuid(gpu, instance.id, one->id));
          instance.compute.erase(one);
          return nvml::kSuccess;
        }
        return nvml::kInvalidArgument;
      });
}

EXPORTED nvml::Return nvmlGpuInstanceGetComputeInstances(nvml::GpuInstanceRef ref,
                                                         unsigned profile_id,
                                                         nvml::ComputeInstanceRef* instances,
                                                         unsigned* count) {
  const Name name = FromHandle(Handle::kInstance, ref);
  return RunOnInstance("nvmlGpuInstanceGetComputeInstances", name,
                       [&](const Context& context, Gpu&, Instance& instance) {
                         size_t found = 0;
                         for (const ComputeInstance& one : instance.compute) {
                           if (one.profile != profile_id) continue;
                           instances[found++] = static_cast<nvml::ComputeInstanceRef>(
                               ToHandle(Handle::kCompute, {name.gpu, name.instance, one.id}));
                         }
                         *count = PutCount(context, found);
                         return nvml::kSuccess;
                       });
}

EXPORTED nvml::Return nvmlComputeInstanceGetInfo_v2(nvml::ComputeInstanceRef ref,
                                                    nvml::ComputeInstanceInfo* info) {
  const Name name = FromHandle(Handle::kCompute, ref);
  return RunOnInstance(
      "nvmlComputeInstanceGetInfo_v2", name, [&](const Context&, Gpu& gpu, Instance& instance) {
        for (const ComputeInstance& one : instance.compute) {
          if (one.id != name.compute) continue;
          const Handle kind = gpu.parent_handles ? Handle::kGpu : Handle::kMigDevice;
          const Name device = gpu.parent_handles ? Name{name.gpu, 0, 0} : name;
          *info = {static_cast<nvml::Device>(ToHandle(kind, device)),
                   InstanceHandle(name.gpu, name.instance),
                   one.id,
                   one.profile,
                   {0, one.slices}};
          return nvml::kSuccess;
        }
        return nvml::kInvalidArgument;
      });
}

}  // namespace nos::nvml_double
