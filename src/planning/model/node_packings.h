// Remembers which slices fit together on the GPUs of a node.
//
//   NodePackings packings(problem, sets);
//   const int gpus = packings.InternGpus(states);       // sorted
//   const int slices = packings.InternSlices(shape.slices);
//   const bool* fits = packings.Fits(gpus, slices);     // null: not known yet
//   const auto* counts = packings.Pack(gpus, slices, stop);
//
// Drops everything that it remembers when that becomes too much. Pointers are valid until the next
// call.
//
// The constructor's arguments must outlive it. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "planning/model/maximal_sets.h"

namespace nos::planning {

class NodePackings {
 public:
  NodePackings(const Problem& problem, MaximalSets& sets) : problem_(problem), sets_(sets) {}

  // Ids for recurring keys: the GPUs of a node, whatever their order, and the slices that a pod
  // requests. `gpus`: sorted.
  int InternGpus(const std::vector<GpuStateId>& gpus);
  int InternSlices(const std::vector<SliceCount>& slices);
  // Points to true if these slices fit on these GPUs; null: not known yet.
  const bool* Fits(int gpus, int slices) const;
  void Remember(int gpus, int slices, bool fits);
  // Number of each slice on each of these GPUs (pack.h). nullopt: they do not fit together. Null:
  // `stop` returned true before the result was known.
  const std::optional<std::vector<Counts>>* Pack(int gpus, int slices,
                                                 const std::function<bool()>& stop);

 private:
  const Problem& problem_;
  MaximalSets& sets_;
  std::map<std::vector<GpuStateId>, int> gpus_ids_;
  std::vector<const std::vector<GpuStateId>*> gpus_;
  std::map<std::vector<SliceCount>, int> slices_ids_;
  std::vector<const std::vector<SliceCount>*> slices_;
  // By GPU list id and slice list id.
  std::unordered_map<uint64_t, bool> fits_;
  std::unordered_map<uint64_t, std::optional<std::vector<Counts>>> packings_;
};

}  // namespace nos::planning
