#include "planning/model/problem.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

namespace nos::planning {
namespace {

// Distinguishes shapes without slices that are otherwise equal.
std::vector<int64_t> SizeOf(const Problem& problem, const PodClass& cls) {
  const Packing& packing = problem.packing;
  if (!cls.slices.empty() || packing.nodes.empty()) return {};
  const auto asked = [&](int dimension) {
    return dimension < 0 ? 0 : std::max<int64_t>(cls.requests[dimension], 0);
  };
  const auto doublings = [](int64_t amount) -> int64_t {
    return static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(amount)));
  };
  return {doublings(asked(packing.cpu)), doublings(asked(packing.memory)), asked(packing.gpu)};
}

}  // namespace

void Problem::IndexShapes() {
  shapes.clear();
  levels = 0;
  row_nodes.clear();
  for (const std::vector<bool>& row : allowed) {
    row_nodes.push_back(std::count(row.begin(), row.end(), true));
  }
  total_free.assign(dimensions, 0);
  for (size_t i = 0; i < free.size(); ++i) {
    if (free[i] > 0) total_free[i % dimensions] += static_cast<double>(free[i]);
  }
  std::map<std::tuple<std::vector<SliceCount>, int, std::vector<int64_t>>, int> known;
  for (PodClass& cls : classes) {
    levels = std::max(levels, cls.level + 1);
    const auto [it, fresh] = known.try_emplace({cls.slices, cls.allowed, SizeOf(*this, cls)},
                                               static_cast<int>(shapes.size()));
    cls.shape = it->second;
    if (fresh) {
      Shape& shape = shapes.emplace_back(Shape{cls.slices, cls.allowed, 0, cls.requests});
      for (const SliceCount& s : cls.slices) shape.slice_count += s.count;
      continue;
    }
    std::vector<int64_t>& least = shapes[cls.shape].min_requests;
    for (size_t r = 0; r < least.size(); ++r) least[r] = std::min(least[r], cls.requests[r]);
  }
}

}  // namespace nos::planning
