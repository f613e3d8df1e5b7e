#include "telemetryreporter/gpu_sharing_mode.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/modes.h"
#include "gpu/product.h"

namespace nos::telemetry {
namespace {

const gpu::Model* BoardModelOf(const device::GpuInfo& info, const gpu::Catalogue& catalogue) {
  const gpu::Model* model = catalogue.FindByProduct(info.product);
  return model != nullptr ? model : catalogue.FindByPciId(info.pci_device_id);
}

// GPUs of the Ampere architecture need a reset to change MIG mode. A GPU that waits for a reset
// keeps its current mode until then.
bool MayChangeMig(const device::GpuInfo& info, bool resets, const gpu::Catalogue& catalogue) {
  const gpu::Model* model = info.mig_capable ? BoardModelOf(info, catalogue) : nullptr;
  if (model == nullptr) return false;
  return model->architecture() != "Ampere" || (resets && info.mig_pending == info.mig_enabled);
}

bool LieOn(const gpu::Model& model, gpu::ProfileId profile, const SampledGpu& gpu) {
  return std::ranges::all_of(gpu.instances, [&](const SampledInstance& sampled) {
    return std::ranges::count(model.profile(profile).starts, sampled.instance.start) > 0;
  });
}

}  // namespace

// Time slices use the GPU's own slots if it has any, else the slots that any GPU has.
void PlaceTimeSlices(const gpu::Catalogue& catalogue, int time_slices, SampledGpu& gpu) {
  const gpu::Model* board = gpu.info.mig_capable ? BoardModelOf(gpu.info, catalogue) : nullptr;
  gpu::SharingModes plain{.memory_gib = static_cast<int>(std::clamp<int64_t>(
                              gpu.info.memory_mib / 1024, 1, gpu::kMaxModesGib)),
                          .whole = true};
  std::vector<gpu::SharingModes> candidates = {plain};
  if (board != nullptr && board->slots() < gpu::kPlainSlots) {
    plain.slots = board->slots();
    candidates.insert(candidates.begin(), plain);
  }
  if (board != nullptr) candidates.insert(candidates.begin(), {.mig = board, .whole = true});
  for (gpu::SharingModes& modes : candidates) {
    modes.time_slices = std::min(time_slices, gpu::MostTimeSlices(modes));
    const gpu::Model* model = catalogue.FindSharingModes(gpu::NameOf(modes));
    const auto profile = model == nullptr ? std::nullopt : model->FindProfile(gpu::kTimeSlice);
    if (!profile || !LieOn(*model, *profile, gpu)) continue;
    gpu.slots = model->slots();
    for (SampledInstance& sampled : gpu.instances) {
      sampled.instance.size = static_cast<uint8_t>(model->profile(*profile).slots);
    }
    return;
  }
  gpu.instances.clear();
}

void SetSharingMode(std::span<const device::GpuInstance> there, const NodeSettings& settings,
                    SampledGpu& gpu, const gpu::Catalogue& catalogue) {
  if (!there.empty()) gpu.sharing_mode = gpu::SharingModeOfProfile(there.front().profile);
  if (!gpu.info.gives_whole) return;
  const bool changes_mig = MayChangeMig(gpu.info, settings.resets, catalogue);
  if (gpu.info.mig_enabled && !changes_mig) return;
  const std::array<std::pair<std::string_view, bool>, 4> modes = {
      {{gpu::kMigMode, changes_mig},
       {gpu::kMpsMode, gpu.info.could_share_gib > 0 || gpu.info.share_gib > 0},
       {gpu::kTimeSlicingMode, settings.time_slices > 1},
       {gpu::kWholeMode, true}}};
  for (const auto& [mode, possible] : modes) {
    if (possible && mode != gpu.sharing_mode) gpu.switches.emplace_back(mode);
  }
}

}  // namespace nos::telemetry
