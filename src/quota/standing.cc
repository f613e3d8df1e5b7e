#include "quota/standing.h"

#include <algorithm>
#include <tuple>

namespace nos::quota {
namespace {

// Of what min names, in the order of the names: ids differ from run to run.
std::vector<Amount> SizeOf(const std::vector<cluster::ResourceId>& named, const Amounts& charge) {
  std::vector<Amount> size;
  for (const cluster::ResourceId id : named) size.push_back(charge.Get(id));
  return size;
}

}  // namespace

size_t CountInQuota(const Amounts& min, std::vector<Holder>& holders) {
  std::vector<cluster::ResourceId> named;
  for (const auto& [id, amount] : min.entries()) named.push_back(id);
  std::ranges::sort(named, {}, [](cluster::ResourceId id) { return cluster::ResourceName(id); });
  std::ranges::sort(holders, [&](const Holder& a, const Holder& b) {
    const auto first = std::tuple(a.pod->meta.created, -int64_t{a.pod->priority});
    const auto second = std::tuple(b.pod->meta.created, -int64_t{b.pod->priority});
    if (first != second) return first < second;
    const auto sizes = std::pair(SizeOf(named, a.charge), SizeOf(named, b.charge));
    if (sizes.first != sizes.second) return sizes.first < sizes.second;
    return a.pod->Key() < b.pod->Key();
  });
  Amounts sum;
  for (size_t i = 0; i < holders.size(); ++i) {
    sum.Add(holders[i].charge);
    const bool within = std::ranges::all_of(
        min.entries(), [&](const auto& entry) { return sum.Get(entry.first) <= entry.second; });
    if (!within) return i;
  }
  return holders.size();
}

}  // namespace nos::quota
