#include "study/placement/fleet.h"

#include <algorithm>
#include <bit>

namespace nos::study {

Fleet::Fleet(const gpu::Fragmentation& rule, size_t gpus)
    : rule_(&rule),
      layout_(gpus, gpu::LayoutTable::kEmpty),
      index_(gpus),
      gpus_of_(rule.layouts().size()) {
  for (size_t p = 0; p < rule.layouts().profile_count(); ++p) {
    ranks_.emplace_back((rule.Preferred(static_cast<gpu::ProfileId>(p)).size() + 63) / 64);
  }
  // In reverse order, because the last GPU of a layout is taken first.
  for (size_t gpu = gpus; gpu-- > 0;) Enter(static_cast<uint32_t>(gpu), gpu::LayoutTable::kEmpty);
}

void Fleet::Set(uint32_t gpu, gpu::LayoutId layout) {
  Leave(gpu);
  Enter(gpu, layout);
}

void Fleet::Enter(uint32_t gpu, gpu::LayoutId layout) {
  std::vector<uint32_t>& gpus = gpus_of_[layout];
  layout_[gpu] = layout;
  index_[gpu] = static_cast<uint32_t>(gpus.size());
  gpus.push_back(gpu);
  if (gpus.size() == 1) Mark(layout, true);
}

void Fleet::Leave(uint32_t gpu) {
  std::vector<uint32_t>& gpus = gpus_of_[layout_[gpu]];
  gpus[index_[gpu]] = gpus.back();
  index_[gpus.back()] = index_[gpu];
  gpus.pop_back();
  if (gpus.empty()) Mark(layout_[gpu], false);
}

void Fleet::Mark(gpu::LayoutId layout, bool present) {
  const auto at = std::ranges::lower_bound(present_, layout);
  if (present) {
    present_.insert(at, layout);
  } else {
    present_.erase(at);
  }
  for (size_t p = 0; p < ranks_.size(); ++p) {
    const uint16_t rank = rule_->Rank(layout, static_cast<gpu::ProfileId>(p));
    if (rank != gpu::Fragmentation::kNoRank) ranks_[p][rank / 64] ^= uint64_t{1} << (rank % 64);
  }
}

gpu::LayoutId Fleet::BestLayout(gpu::ProfileId profile,
                                std::span<const gpu::LayoutId> reserved) const {
  const std::vector<uint64_t>& words = ranks_[profile];
  for (size_t w = 0; w < words.size(); ++w) {
    for (uint64_t rest = words[w]; rest != 0; rest &= rest - 1) {
      const size_t rank = w * 64 + static_cast<size_t>(std::countr_zero(rest));
      const gpu::LayoutId layout = rule_->Preferred(profile)[rank];
      const auto taken = static_cast<size_t>(std::ranges::count(reserved, layout));
      if (Count(layout) > taken) return layout;
    }
  }
  return gpu::LayoutTable::kIllegal;
}

std::optional<Spot> Fleet::Choose(gpu::ProfileId profile) const {
  const gpu::LayoutId layout = BestLayout(profile, {});
  if (layout == gpu::LayoutTable::kIllegal) return std::nullopt;
  return Spot{gpus_of_[layout].back(), rule_->Best(layout, profile)};
}

}  // namespace nos::study
