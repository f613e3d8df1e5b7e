#include "planning/model/pack.h"

#include <algorithm>
#include <map>

#include "planning/model/integer_program.h"
#include "planning/model/radix.h"

namespace nos::planning {
namespace {

constexpr size_t kMaxStates = size_t{1} << 13;
constexpr int kMaxTreeNodes = 20'000;  // per branch and bound, which ends at the first solution
constexpr uint16_t kUnseen = 0xffff;
constexpr size_t kAskEvery = 16'384;  // steps of the dynamic program

// The maximal sets of slices of GPUs, computed once per state.
class SetBook {
 public:
  SetBook(MaximalSets& sets, std::span<const SliceCount> need, size_t slices)
      : sets_(sets), most_(slices) {
    for (const SliceCount& n : need) most_[n.slice] = n.count;
  }

  // Null: too many sets.
  const std::vector<Counts>* Of(GpuStateId gpu) {
    if (!sets_.MayBeShared(gpu)) return sets_.Of(gpu);
    const auto [at, fresh] = shares_.try_emplace(gpu);
    if (fresh) at->second = sets_.Within(gpu, most_);
    auto& counts = at->second;
    return counts ? &*counts : nullptr;
  }
  bool KnowsAll(std::span<const GpuStateId> gpus) {
    return std::ranges::all_of(gpus, [&](GpuStateId gpu) { return Of(gpu) != nullptr; });
  }

 private:
  MaximalSets& sets_;
  std::vector<int> most_;  // by slice
  std::map<GpuStateId, std::optional<std::vector<Counts>>> shares_;
};

// Which maximal set of a GPU leads from the slices left before it to the slices left after it.
struct Origin {
  uint32_t before = 0;
  uint16_t set = kUnseen;
};

class Packer {
 public:
  Packer(SetBook& sets, std::span<const GpuStateId> gpus, std::span<const SliceCount> need,
         const std::function<bool()>& stop)
      : sets_(sets), gpus_(gpus), need_(need), radix_(Limits(need), kMaxStates), stop_(stop) {}

  bool IsSmall() const { return radix_.size() > 0; }

  // REQUIRES: IsSmall. After each GPU, holds all possible sets of slices left to serve. Stops as
  // soon as the empty set is reachable.
  Packed Run(size_t slices) {
    std::vector<uint32_t> left = {static_cast<uint32_t>(radix_.size() - 1)};
    for (size_t g = 0; g < gpus_.size(); ++g) {
      left = Serve(gpus_[g], left);
      if (stopped_) return {.known = false, .counts = std::nullopt};
      if (origins_.back()[0].set != kUnseen) return {.counts = Retrace(g, slices)};
    }
    return {};
  }

 private:
  static std::vector<int> Limits(std::span<const SliceCount> need) {
    std::vector<int> limits;
    for (const SliceCount& n : need) limits.push_back(n.count);
    return limits;
  }

  // Encodes a maximal set of a GPU as a number of this radix.
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
    const std::vector<Counts>& sets = *sets_.Of(gpu);
    for (size_t s = 0; s < sets.size() && !TimeIsUp(left.size()); ++s) {
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

  bool TimeIsUp(size_t steps) {
    steps_ += steps;
    if (steps_ < kAskEvery) return stopped_;
    steps_ = 0;
    return stopped_ = stop_();
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

  SetBook& sets_;
  const std::span<const GpuStateId> gpus_;
  const std::span<const SliceCount> need_;
  const Radix radix_;
  const std::function<bool()>& stop_;
  std::vector<std::vector<Origin>> origins_;
  size_t steps_ = 0;  // since stop was polled
  bool stopped_ = false;
};

// A quick necessary condition: every kind of slice fits alone, and all fit by total size and by
// total compute slices. Rejects most sets that do not fit.
bool MayFit(MaximalSets& sets, std::span<const GpuStateId> gpus, std::span<const SliceCount> need) {
  const MostOnGpu wanted = sets.WorthOf(need);
  MostOnGpu most;
  for (const GpuStateId gpu : gpus) {
    most.size += sets.MostOn(gpu).size;
    most.compute += sets.MostOn(gpu).compute;
  }
  if (most.size < wanted.size || most.compute < wanted.compute) return false;
  return std::ranges::all_of(need, [&](const SliceCount& n) {
    int fit = 0;
    for (const GpuStateId gpu : gpus) fit += sets.MostOn(gpu).each[n.slice];
    return fit >= n.count;
  });
}

// Columns: number of GPUs in a state that take a set.
Packed PackByProgram(SetBook& sets, std::span<const GpuStateId> gpus,
                     std::span<const SliceCount> need, size_t slices,
                     const std::function<bool()>& stop) {
  std::map<GpuStateId, std::vector<size_t>> by_state;
  for (size_t g = 0; g < gpus.size(); ++g) by_state[gpus[g]].push_back(g);
  IntegerProgram program;
  std::vector<int> served;
  for (const SliceCount& n : need) served.push_back(program.AddRow(-double{1} * n.count));
  for (const auto& [state, members] : by_state) {
    const auto count = static_cast<double>(members.size());
    const int row = program.AddRow(count);
    for (const Counts& set : *sets.Of(state)) {
      const int column = program.AddColumn(count);
      program.Set(row, column, 1);
      for (size_t i = 0; i < need.size(); ++i) {
        if (set[need[i].slice] > 0) program.Set(served[i], column, -double{1} * set[need[i].slice]);
      }
    }
  }
  bool stopped = false;
  const std::vector<double> columns = program.Maximise(
      std::vector<double>(program.columns()),
      {.nodes = kMaxTreeNodes, .out_of_time = [&] { return stopped = stopped || stop(); }});
  if (columns.empty()) return {.known = !stopped, .counts = std::nullopt};
  std::vector<Counts> result(gpus.size(), Counts(slices));
  std::vector<int> left;
  for (const SliceCount& n : need) left.push_back(n.count);
  size_t column = 0;
  for (const auto& [state, members] : by_state) {
    size_t next = 0;
    for (const Counts& set : *sets.Of(state)) {
      for (int n = static_cast<int>(columns[column++]); n > 0; --n, ++next) {
        for (size_t i = 0; i < need.size(); ++i) {
          const int taken = std::min<int>(left[i], set[need[i].slice]);
          result[members[next]][need[i].slice] = static_cast<uint8_t>(taken);
          left[i] -= taken;
        }
      }
    }
  }
  return {.counts = std::move(result)};
}

}  // namespace

Packed PackSlices(MaximalSets& sets, std::span<const GpuStateId> gpus,
                  std::span<const SliceCount> need, size_t slices,
                  const std::function<bool()>& stop) {
  if (need.empty()) return {.counts = std::vector<Counts>(gpus.size(), Counts(slices))};
  if (!MayFit(sets, gpus, need)) return {};
  if (stop()) return {.known = false, .counts = std::nullopt};
  SetBook book(sets, need, slices);
  if (!book.KnowsAll(gpus)) return {.known = false, .counts = std::nullopt};
  Packer packer(book, gpus, need, stop);
  return packer.IsSmall() ? packer.Run(slices) : PackByProgram(book, gpus, need, slices, stop);
}

}  // namespace nos::planning
