// The agent's view of a virtual node's divided MIG instances, with the fault injection and checks
// that SimGpus' hooks provide for instances.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "device/mig_parts.h"
#include "device/sim_gpus.h"

namespace nos::sim {

class WatchedParts final : public device::MigParts {
 public:
  using Instances = std::vector<device::GpuInstance>;

  // `gpus` and `catalogue` must outlive the object.
  WatchedParts(device::SimGpus& gpus, const gpu::Catalogue& catalogue,
               std::vector<gpu::InstancePart> parts, device::SimHooks hooks)
      : MigParts(gpus, catalogue, std::move(parts)), hooks_(std::move(hooks)) {}

  void GiveWhole(bool give) override {
    MigParts::GiveWhole(give);
    if (!give) known_.clear();
  }
  std::vector<std::string> Adopt(std::span<const std::string> device_ids) override {
    std::vector<std::string> refused = MigParts::Adopt(device_ids);
    const auto infos = ListGpus();
    if (!infos.ok()) return refused;
    for (const device::GpuInfo& info : *infos) (void)ListInstances(info.index);
    return refused;
  }
  Result<Instances> ListInstances(int gpu) override {
    Result<Instances> listed = MigParts::ListInstances(gpu);
    if (!listed.ok()) return listed;
    Instances& parts = known_[gpu];
    parts = *listed;
    std::erase_if(parts, [](const device::GpuInstance& one) { return one.part_of.empty(); });
    return listed;
  }
  Result<device::GpuInstance> Create(int gpu, const std::string& profile, uint8_t start) override {
    if (!gpu::ParsePartName(profile)) return MigParts::Create(gpu, profile, start);
    NOS_RETURN_IF_ERROR(Try({device::SimAttempt::Kind::kCreate, gpu, profile, start}));
    Result<device::GpuInstance> made = MigParts::Create(gpu, profile, start);
    (void)ListInstances(gpu);
    return made;
  }
  Status Destroy(int gpu, uint32_t instance_id) override {
    NOS_ASSIGN(const Instances instances, ListInstances(gpu));
    const auto part = std::ranges::find(instances, instance_id, &device::GpuInstance::id);
    if (part == instances.end() || part->part_of.empty()) {
      return MigParts::Destroy(gpu, instance_id);
    }
    NOS_RETURN_IF_ERROR(Try({device::SimAttempt::Kind::kDestroy, gpu, part->profile, part->start}));
    hooks_.on_destroy(*part);
    Status destroyed = MigParts::Destroy(gpu, instance_id);
    (void)ListInstances(gpu);
    return destroyed;
  }

  // The parts of a GPU as last listed; may be called while an operation is in progress.
  Instances PartsOn(int gpu) const {
    const auto known = known_.find(gpu);
    return known == known_.end() ? Instances() : known->second;
  }

 private:
  Status Try(const device::SimAttempt& attempt) const {
    if (hooks_.fault(attempt) == device::SimFault::kNone) return Status::Ok();
    return {Code::kUnavailable, "the instance is not reached (injected)"};
  }

  device::SimHooks hooks_;
  std::map<int, Instances> known_;  // by GPU
};

}  // namespace nos::sim
