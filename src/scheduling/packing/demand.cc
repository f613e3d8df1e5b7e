#include "scheduling/packing/demand.h"

#include <algorithm>

namespace nos::scheduling::packing {

void Demand::Precompute(const PodKind& kind) {
  auto found = counts_.find(kind);
  if (found == counts_.end()) {
    while (counts_.size() >= kMaxKinds) Halve();
    found = counts_.emplace(kind, 0).first;
  }
  ++found->second;
  ++total_;
  ++learned_;
}

bool Demand::WantsGpus() const {
  return std::ranges::any_of(counts_, [](const auto& kind) { return kind.first.gpus > 0; });
}

void Demand::Halve() {
  total_ = 0;
  for (auto at = counts_.begin(); at != counts_.end();) {
    at->second /= 2;
    total_ += at->second;
    at = at->second == 0 ? counts_.erase(at) : std::next(at);
  }
}

}  // namespace nos::scheduling::packing
