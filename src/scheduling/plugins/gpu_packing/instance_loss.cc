#include "scheduling/plugins/gpu_packing/instance_loss.h"

#include <bit>
#include <optional>
#include <tuple>

#include "gpu/fragmentation.h"

namespace nos::scheduling {

using gpu::LayoutTable;

const std::vector<gpu::ProfileId>& InstanceLosses::PlainOf(const gpu::Model& model) {
  const auto [found, fresh] = plain_.try_emplace(&model);
  if (fresh) found->second = gpu::PlainProfiles(model);
  return found->second;
}

InstanceLoss InstanceLosses::Of(const cluster::NodeInfo& node, cluster::ResourceId resource,
                                int64_t count) {
  if (!node.gpus.managed) return {};
  InstanceLoss sum;
  std::optional<InstanceLoss> cut;  // the least
  int choices = 0;
  for (const cluster::Gpu& gpu : node.gpus.gpus) {
    const auto profile = gpu.model->FindProfile(cluster::ResourceName(resource));
    const gpu::LayoutId used = gpu.UsedLayout();
    if (!profile || used == LayoutTable::kIllegal) continue;
    const LayoutTable& table = gpu.model->layouts();
    const auto& plain = PlainOf(*gpu.model);
    const auto potential = [&](gpu::LayoutId layout) {
      return static_cast<double>(gpu::Potential(*gpu.model, plain, layout));
    };
    const auto loss_of = [&](gpu::LayoutId after) {
      return InstanceLoss{
          (potential(used) - potential(after)) / potential(LayoutTable::kEmpty),
          static_cast<double>(gpu.model->slots() - std::popcount(table.Slots(after)))};
    };
    for (const cluster::Instance& instance : gpu.instances) {
      if (instance.used || instance.placement.profile != *profile) continue;
      const auto placement = table.Find(instance.placement);
      const gpu::LayoutId after = placement ? table.Add(used, *placement) : LayoutTable::kIllegal;
      if (after == LayoutTable::kIllegal) continue;
      const InstanceLoss loss = loss_of(after);
      sum.gpus += loss.gpus;
      sum.free_slots += loss.free_slots;
      ++choices;
    }
    if (choices > 0 || gpu.fixed) continue;
    for (uint64_t left = table.Addable(used) & table.PlacementsOf(*profile); left != 0;
         left &= left - 1) {
      const auto placement = static_cast<gpu::PlacementId>(std::countr_zero(left));
      const InstanceLoss loss = loss_of(table.Add(used, placement));
      if (!cut || std::tie(loss.gpus, loss.free_slots) < std::tie(cut->gpus, cut->free_slots)) {
        cut = loss;
      }
    }
  }
  const auto wanted = static_cast<double>(count);
  if (choices == 0 && cut) return {(1 + cut->gpus) * wanted, cut->free_slots};
  if (choices == 0) return {wanted, 0};
  return {sum.gpus / choices * wanted, sum.free_slots / choices};
}

}  // namespace nos::scheduling
