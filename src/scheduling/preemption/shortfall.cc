#include "scheduling/preemption/shortfall.h"

#include <algorithm>

#include "quota/charge.h"

namespace nos::scheduling {

using cluster::ResourceId;
using quota::Amount;

namespace {

bool IsOfGpus(ResourceId id) {
  return cluster::IsSliceResource(id) || cluster::ResourceName(id) == cluster::kWholeGpuResource;
}

bool HasGpuMemory(const quota::Amounts& charge) {
  static const ResourceId kId = cluster::InternResource(quota::kGpuMemory);
  return charge.Get(kId) > 0;
}

}  // namespace

ResourceShortfall::ResourceShortfall(const cluster::ResourceVector& asked,
                                     const cluster::NodeInfo& node) {
  for (const auto& [id, amount] : asked.entries()) {
    const Amount free = Amount{node.allocatable.Get(id)} - node.requested.Get(id);
    if (amount <= 0 || amount <= free) continue;
    if (node.gpus.managed && IsOfGpus(id)) {
      slices_ = true;
    } else {
      lacks_.emplace_back(id, amount - free);
    }
  }
}

void ResourceShortfall::Lessen(const quota::Amounts& freed) {
  for (auto& [id, lack] : lacks_) lack -= freed.Get(id);
  slices_ = slices_ && !HasGpuMemory(freed);
}

bool ResourceShortfall::any() const {
  return slices_ || std::ranges::any_of(lacks_, [](const auto& lack) { return lack.second > 0; });
}

ResourceShortfall::Use ResourceShortfall::UseOf(const quota::Amounts& freed) const {
  bool some = lacks_.empty() && !slices_, all = true;
  const auto note = [&](bool is_some, bool is_all) {
    some = some || is_some;
    all = all && is_all;
  };
  for (const auto& [id, lack] : lacks_) {
    const Amount has = freed.Get(id);
    note(has > 0, has >= lack);
  }
  if (slices_) {
    const bool has = HasGpuMemory(freed);
    note(has, has);
  }
  if (!some) return Use::kNone;
  return all ? Use::kAll : Use::kSome;
}

}  // namespace nos::scheduling
