#include "planning/pack.h"

#include <algorithm>

#include "planning/radix.h"

namespace nos::planning {
namespace {

constexpr size_t kMostStates = size_t{1} << 16;
constexpr uint16_t kUnseen = 0xffff;

// Which largest set led from what was left before a GPU to what is left after it.
struct Origin {
  uint32_t before = 0;
  uint16_t set = kUnseen;
};

class Packer {
 public:
  Packer(GpuStates& states, std::span<const GpuStateId> gpus, std::span<const SliceCount> need)
      : states_(states), gpus_(gpus), need_(need), radix_(Limits(need), kMostStates) {}

  // After each GPU: everything that can be left over. Stops when nothing needs to be left.
  std::optional<std::vector<Counts>> Run(size_t slices) {
    if (radix_.size() == 0) return std::nullopt;
    std::vector<uint32_t> left = {static_cast<uint32_t>(radix_.size() - 1)};
    for (size_t g = 0; g < gpus_.size(); ++g) {
      left = Serve(gpus_[g], left);
      if (origins_.back()[0].set != kUnseen) return Retrace(g, slices);
    }
    return std::nullopt;
  }

 private:
  static std::vector<int> Limits(std::span<const SliceCount> need) {
    std::vector<int> limits;
    for (const SliceCount& n : need) limits.push_back(n.count);
    return limits;
  }

  // A largest set of a GPU as a number of this radix.
  size_t Number(const Counts& set) const {
    size_t number = 0;
    for (size_t i = 0; i < need_.size(); ++i) {
      number += std::min<size_t>(set[need_[i].slice], need_[i].count) * radix_.stride(i);
    }
    return number;
  }

  std::vector<uint32_t> Serve(GpuStateId gpu, const std::vector<uint32_t>& left) {
    std::vector<Origin>& origin = origins_.emplace_back(radix_.size());
    std::vector<uint32_t> after;
    const std::vector<Counts>& sets = states_.MaximalSets(gpu);
    for (size_t s = 0; s < sets.size(); ++s) {
      const size_t taken = Number(sets[s]);
      for (const uint32_t before : left) {
        const size_t rest = radix_.Subtract(before, taken);
        if (origin[rest].set != kUnseen) continue;
        origin[rest] = {before, static_cast<uint16_t>(s)};
        after.push_back(static_cast<uint32_t>(rest));
      }
    }
    return after;
  }

  std::vector<Counts> Retrace(size_t last, size_t slices) const {
    std::vector<Counts> result(gpus_.size(), Counts(slices));
    size_t rest = 0;
    for (size_t g = last + 1; g-- > 0;) {
      const size_t before = origins_[g][rest].before;
      for (size_t i = 0; i < need_.size(); ++i) {
        result[g][need_[i].slice] =
            static_cast<uint8_t>(radix_.Digit(before, i) - radix_.Digit(rest, i));
      }
      rest = before;
    }
    return result;
  }

  GpuStates& states_;
  const std::span<const GpuStateId> gpus_;
  const std::span<const SliceCount> need_;
  const Radix radix_;
  std::vector<std::vector<Origin>> origins_;
};

}  // namespace

std::optional<std::vector<Counts>> PackSlices(GpuStates& states, std::span<const GpuStateId> gpus,
                                              std::span<const SliceCount> need, size_t slices) {
  if (need.empty()) return std::vector<Counts>(gpus.size(), Counts(slices));
  return Packer(states, gpus, need).Run(slices);
}

}  // namespace nos::planning
