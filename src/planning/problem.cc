#include "planning/problem.h"

#include <algorithm>
#include <map>
#include <utility>

namespace nos::planning {

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
  std::map<std::pair<std::vector<SliceCount>, int>, int> known;
  for (PodClass& cls : classes) {
    levels = std::max(levels, cls.level + 1);
    const auto [it, fresh] =
        known.try_emplace({cls.slices, cls.allowed}, static_cast<int>(shapes.size()));
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
