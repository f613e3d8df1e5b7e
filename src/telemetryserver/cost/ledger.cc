#include "telemetryserver/cost/ledger.h"

namespace nos::telemetryserver {

void Ledger::Add(const CostKey& key, const CostSums& sums) {
  AddTo(rows_[key], sums);
  AddTo(total_, sums);
}

void Ledger::Add(const Ledger& other) {
  for (const auto& [key, sums] : other.rows_) Add(key, sums);
  overflowed_ = overflowed_ || other.overflowed_;
}

void Ledger::AddTo(CostSums& sum, const CostSums& sums) {
  for (Micros CostSums::* field : {&CostSums::cost, &CostSums::gpu_time, &CostSums::unpriced}) {
    if (__builtin_add_overflow(sum.*field, sums.*field, &(sum.*field))) overflowed_ = true;
  }
}

}  // namespace nos::telemetryserver
