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

InstanceLoss InstanceLosses::LossOf(const gpu::Model& model, gpu::LayoutId used,
                                    gpu::LayoutId after) {
  const auto& plain = PlainOf(model);
  const auto potential = [&](gpu::LayoutId layout) {
    return static_cast<double>(gpu::Potential(model, plain, layout));
  };
  return {(potential(used) - potential(after)) / potential(LayoutTable::kEmpty),
          static_cast<double>(model.slots() - std::popcount(model.layouts().Slots(after)))};
}

// None: it does not fit.
const std::optional<InstanceLoss>& InstanceLosses::BestCut(const gpu::Model& model,
                                                           gpu::LayoutId used,
                                                           gpu::ProfileId profile) {
  const auto [found, fresh] = best_cuts_.try_emplace({&model, used, profile});
  std::optional<InstanceLoss>& best = found->second;
  if (!fresh) return best;
  const LayoutTable& table = model.layouts();
  for (uint64_t left = table.Addable(used) & table.PlacementsOf(profile); left != 0;
       left &= left - 1) {
    const auto placement = static_cast<gpu::PlacementId>(std::countr_zero(left));
    const InstanceLoss loss = LossOf(model, used, table.Add(used, placement));
    if (!best || loss < *best) best = loss;
  }
  return best;
}

InstanceLoss InstanceLosses::Of(const cluster::NodeInfo& node, cluster::ResourceId resource,
                                int64_t count) {
  if (!node.gpus.managed) return {};
  InstanceLoss sum;
  std::optional<InstanceLoss> cut;  // the least
  int choices = 0;
  for (const cluster::Gpu& gpu : node.gpus.gpus) {
    const auto profile = ProfileOf(*gpu.model, resource);
    if (!profile) continue;
    const gpu::LayoutId used = gpu.UsedLayout();
    if (used == LayoutTable::kIllegal) continue;
    const LayoutTable& table = gpu.model->layouts();
    for (const cluster::Instance& instance : gpu.instances) {
      if (instance.used || instance.placement.profile != *profile) continue;
      const auto placement = table.Find(instance.placement);
      const gpu::LayoutId after = placement ? table.Add(used, *placement) : LayoutTable::kIllegal;
      if (after == LayoutTable::kIllegal) continue;
      const InstanceLoss loss = LossOf(*gpu.model, used, after);
      sum.gpus += loss.gpus;
      sum.free_slots += loss.free_slots;
      ++choices;
    }
    if (choices > 0 || gpu.fixed) continue;
    const std::optional<InstanceLoss>& best = BestCut(*gpu.model, used, *profile);
    if (best && (!cut || *best < *cut)) cut = best;
  }
  const auto wanted = static_cast<double>(count);
  if (choices == 0 && cut) return {(1 + cut->gpus) * wanted, cut->free_slots};
  if (choices == 0) return {wanted, 0};
  return {sum.gpus / choices * wanted, sum.free_slots / choices};
}

}  // namespace nos::scheduling
