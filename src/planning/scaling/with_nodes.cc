#include "planning/scaling/with_nodes.h"

#include <cstddef>

namespace nos::planning {

Problem WithNodes(const Problem& from, std::span<const int> nodes) {
  Problem to;
  to.models = from.models;
  to.slices = from.slices;
  to.classes = from.classes;
  to.gangs = from.gangs;
  to.dimensions = from.dimensions;
  to.packing.demand = from.packing.demand;
  to.packing.cpu = from.packing.cpu;
  to.packing.memory = from.packing.memory;
  to.packing.gpu = from.packing.gpu;
  for (const int n : nodes) {
    ProblemNode node = from.nodes[n];
    const int node_index = static_cast<int>(to.nodes.size());
    const auto first = from.gpus.begin() + node.first_gpu;
    node.first_gpu = static_cast<int>(to.gpus.size());
    to.gpus.insert(to.gpus.end(), first, first + node.gpu_count);
    for (int g = 0; g < node.gpu_count; ++g) to.gpus[node.first_gpu + g].node = node_index;
    to.nodes.push_back(node);
    const auto offset = static_cast<std::ptrdiff_t>(n * from.dimensions);
    const auto width = static_cast<std::ptrdiff_t>(from.dimensions);
    to.free.insert(to.free.end(), from.free.begin() + offset, from.free.begin() + offset + width);
    if (!from.capacity.empty()) {
      const auto capacity = from.capacity.begin() + offset;
      to.capacity.insert(to.capacity.end(), capacity, capacity + width);
    }
    if (from.packing.nodes.empty()) continue;
    to.packing.nodes.push_back(from.packing.nodes[n]);
    to.packing.tie_order.push_back(static_cast<uint32_t>(node_index));
  }
  to.allowed.reserve(from.allowed.size());
  for (const std::vector<bool>& row : from.allowed) {
    std::vector<bool>& copy = to.allowed.emplace_back(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) copy[i] = row[nodes[i]];
  }
  to.IndexShapes();
  return to;
}

}  // namespace nos::planning
