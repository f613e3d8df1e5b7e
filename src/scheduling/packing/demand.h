// What kinds of pods arrive, and how often: all that packing learns.
//
//   Demand demand;
//   demand.Learn({.cpu_milli = 4000, .memory_mib = 8192, .gpus = 1, .milli = 470});
//   demand.total();  // 1
//
// Holds at most kMaxKinds kinds. When a new one finds no room, all counts are halved and those that
// reach zero are forgotten, so that what has not been seen for long gives way.
// A plain value; not synchronised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "scheduling/packing/node.h"

namespace nos::scheduling::packing {

class Demand {
 public:
  static constexpr size_t kMaxKinds = 4096;

  void Learn(const PodKind& kind);

  const std::map<PodKind, int64_t>& counts() const { return counts_; }
  int64_t total() const { return total_; }      // sum of counts()
  bool WantsGpus() const;                       // some kind does
  int64_t learned() const { return learned_; }  // pods ever learnt; never falls

 private:
  void Halve();

  std::map<PodKind, int64_t> counts_;
  int64_t total_ = 0;
  int64_t learned_ = 0;
};

}  // namespace nos::scheduling::packing
