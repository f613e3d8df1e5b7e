#include "scheduling/plugins/gpu_packing/instance_loss.h"

#include <bit>
#include <optional>

#include "gpu/fragmentation.h"

namespace nos::scheduling {

using gpu::LayoutTable;

const std::vector<gpu::ProfileId>& InstanceLosses::PlainOf(const gpu::Model& model) {
  const auto [found, fresh] = plain_.try_emplace(&model);
  if (fresh) found->second = gpu::PlainProfiles(model);
  return found->second;
}

std::optional<gpu::ProfileId> InstanceLosses::ProfileOf(const gpu::Model& model,
                                                        cluster::ResourceId resource) {
  const auto [found, fresh] = profiles_.try_emplace({&model, resource});
  if (fresh) found->second = model.FindProfile(cluster::ResourceName(resource));
  return found->second;
}

InstanceLoss InstanceLosses::LossOf(const gpu::Occupancy& used, const gpu::Occupancy& after) {
  return {gpu::LostGpus(used, after, PlainOf(used.model())),
          static_cast<double>(after.free_slots())};
}

// Absent: the profile does not fit.
const std::optional<InstanceLoss>& InstanceLosses::BestCreation(const gpu::Occupancy& used,
                                                                gpu::ProfileId profile) {
  const gpu::Model& model = used.model();
  const int state = model.counted() ? used.taken_slots() : used.layout();
  const auto [found, fresh] = best_creations_.try_emplace({&model, state, used.count(), profile});
  std::optional<InstanceLoss>& best = found->second;
  if (!fresh) return best;
  const auto consider = [&](gpu::Placement placement) {
    gpu::Occupancy after = used;
    if (!after.Add(placement)) return;
    const InstanceLoss loss = LossOf(used, after);
    if (!best || loss < *best) best = loss;
  };
  if (model.counted()) {
    if (const auto place = used.FirstPlace(profile)) consider(*place);
    return best;
  }
  const LayoutTable& table = model.layouts();
  for (uint64_t left = table.Addable(used.layout()) & table.PlacementsOf(profile); left != 0;
       left &= left - 1) {
    consider(table.placements()[static_cast<size_t>(std::countr_zero(left))]);
  }
  return best;
}

// Loss of switching the GPU to its alternative model, equal to that of an empty GPU of that model.
void InstanceLosses::ConsiderOther(const cluster::Gpu& gpu, cluster::ResourceId resource,
                                   int choices, std::optional<InstanceLoss>& creation) {
  if (choices > 0 || gpu.fixed || !gpu.MaySwitch()) return;
  const auto profile = ProfileOf(*gpu.alternative, resource);
  if (!profile) return;
  const std::optional<InstanceLoss>& best =
      BestCreation(gpu::Occupancy(*gpu.alternative), *profile);
  if (best && (!creation || *best < *creation)) creation = best;
}

InstanceLoss InstanceLosses::Of(const cluster::NodeInfo& node, cluster::ResourceId resource,
                                int64_t count) {
  if (!node.gpus.managed) return {};
  InstanceLoss sum;
  std::optional<InstanceLoss> creation;  // the smallest loss of creating an instance
  int choices = 0;
  for (const cluster::Gpu& gpu : node.gpus.gpus) {
    const auto profile = ProfileOf(*gpu.model, resource);
    if (!profile) {
      ConsiderOther(gpu, resource, choices, creation);
      continue;
    }
    const auto used = gpu.Used();
    if (!used) continue;
    for (const cluster::Instance& instance : gpu.instances) {
      if (instance.used || instance.placement.profile != *profile) continue;
      gpu::Occupancy after = *used;
      if (!after.Add(instance.placement)) continue;
      const InstanceLoss loss = LossOf(*used, after);
      sum.gpus += loss.gpus;
      sum.free_slots += loss.free_slots;
      ++choices;
    }
    if (choices > 0 || gpu.fixed) continue;
    const std::optional<InstanceLoss>& best = BestCreation(*used, *profile);
    if (best && (!creation || *best < *creation)) creation = best;
  }
  const auto wanted = static_cast<double>(count);
  if (choices == 0 && creation) return {(1 + creation->gpus) * wanted, creation->free_slots};
  if (choices == 0) return {wanted, 0};
  return {sum.gpus / choices * wanted, sum.free_slots / choices};
}

}  // namespace nos::scheduling
