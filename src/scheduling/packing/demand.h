// Kinds of arriving pods and their frequencies: the only input that packing learns.
//
//   Demand demand;
//   demand.Precompute({.cpu_milli = 4000, .memory_mib = 8192, .gpus = 1, .milli = 470});
//   demand.total();  // 1
//
// Keeps at most kMaxKinds kinds. If a new kind exceeds the limit, all counts are halved and kinds
// with count zero are dropped, so that kinds not seen for long disappear. A plain value; not
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

#include "scheduling/packing/node.h"

namespace nos::scheduling::packing {

class Demand {
 public:
  static constexpr size_t kMaxKinds = 4096;

  void Precompute(const PodKind& kind);

  const std::map<PodKind, int64_t>& counts() const { return counts_; }
  int64_t total() const { return total_; }      // sum of counts()
  bool WantsGpus() const;                       // some kind requests GPUs
  int64_t learned() const { return learned_; }  // number of Precompute calls; never decreases

 private:
  void Halve();

  std::map<PodKind, int64_t> counts_;
  int64_t total_ = 0;
  int64_t learned_ = 0;
};

}  // namespace nos::scheduling::packing
