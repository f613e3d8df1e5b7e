#include "dra/placement/gpus.h"

namespace nos::dra {

// Devices of one GPU that contradict each other about its model: the first decides.
void GpuTable::Add(const ResourceSlice& slice, const Device& device) {
  GpuPlace& place = places_.emplace_back();
  const auto read = reader_->Read(slice, device);
  if (!read) return;
  const GpuRule& rule = reader_->RuleOf(*read->model);
  const auto [found, added] = gpus_.try_emplace(read->gpu, static_cast<uint32_t>(rules_.size()));
  if (added) rules_.push_back(&rule);
  if (rules_[found->second] != &rule) return;
  if (read->kind == GpuDevice::Kind::kInstance) {
    const auto placement = rule.fragmentation.layouts().Find(read->placement);
    if (!placement) return;
    place.placement = *placement;
  }
  if (read->kind == GpuDevice::Kind::kWhole) place.placement = GpuPlace::kWhole;
  place.gpu = found->second;
}

}  // namespace nos::dra
