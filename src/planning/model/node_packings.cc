#include "planning/model/node_packings.h"

#include <utility>

#include "planning/model/pack.h"

namespace nos::planning {
namespace {

constexpr size_t kMaxRemembered = 1'000'000;

uint64_t Key(int gpus, int slices) {
  return static_cast<uint64_t>(gpus) << 32 | static_cast<uint32_t>(slices);
}

template <typename T>
int InternIn(const T& value, std::map<T, int>& ids, std::vector<const T*>& all) {
  const auto [it, fresh] = ids.try_emplace(value, static_cast<int>(all.size()));
  if (fresh) all.push_back(&it->first);
  return it->second;
}

}  // namespace

int NodePackings::InternGpus(const std::vector<GpuStateId>& gpus) {
  return InternIn(gpus, gpus_ids_, gpus_);
}

int NodePackings::InternSlices(const std::vector<SliceCount>& slices) {
  return InternIn(slices, slices_ids_, slices_);
}

const bool* NodePackings::Fits(int gpus, int slices) const {
  const auto found = fits_.find(Key(gpus, slices));
  return found == fits_.end() ? nullptr : &found->second;
}

void NodePackings::Remember(int gpus, int slices, bool fits) {
  if (fits_.size() >= kMaxRemembered) fits_.clear();
  fits_.insert_or_assign(Key(gpus, slices), fits);
}

const std::optional<std::vector<Counts>>* NodePackings::Pack(int gpus, int slices,
                                                             const std::function<bool()>& stop) {
  const auto found = packings_.find(Key(gpus, slices));
  if (found != packings_.end()) return &found->second;
  Packed packed = PackSlices(sets_, *gpus_[gpus], *slices_[slices], problem_.slices.size(), stop);
  if (!packed.known) return nullptr;
  if (packings_.size() >= kMaxRemembered) packings_.clear();
  return &packings_.insert_or_assign(Key(gpus, slices), std::move(packed.counts)).first->second;
}

}  // namespace nos::planning
