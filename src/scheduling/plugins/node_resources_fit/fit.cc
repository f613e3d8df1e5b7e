#include "scheduling/plugins/node_resources_fit/fit.h"

#include <algorithm>

#include "cluster/annotations.h"
#include "scheduling/packing/view.h"

namespace nos::scheduling {
namespace {

using cluster::ResourceVector;

bool Skipped(cluster::ResourceId id, int64_t amount, Mig mig) {
  static const cluster::ResourceId whole = cluster::InternResource(cluster::kWholeGpuResource);
  return amount <= 0 || (mig != Mig::kCount && cluster::IsSliceResource(id)) ||
         (mig == Mig::kIgnoreWholeGpus && id == whole);
}

// Avoids the possible overflow of allocatable - used.
bool ResourceShortfall(int64_t amount, int64_t allocatable, int64_t used) {
  return amount > allocatable || used > allocatable - amount;
}

}  // namespace

Mig MigOn(const cluster::NodeInfo& node) {
  if (!node.gpus.managed) return Mig::kCount;
  return node.gpus.whole ? Mig::kIgnoreWholeGpus : Mig::kIgnore;
}

std::vector<Shortfall> Shortfalls(const ResourceVector& requests, const ResourceVector& allocatable,
                                  const ResourceVector& used, Mig mig) {
  std::vector<Shortfall> shortfalls;
  for (const auto& [id, amount] : requests.entries()) {
    if (Skipped(id, amount, mig)) continue;
    const bool known = id != cluster::kUnknownResource;
    const Shortfall shortfall{
        id, amount, used.Get(id), known ? allocatable.Get(id) : 0,
        amount > allocatable.Get(id) && id != cluster::kPods && !cluster::IsSliceResource(id)};
    if (ResourceShortfall(amount, shortfall.allocatable, shortfall.used))
      shortfalls.push_back(shortfall);
  }
  return shortfalls;
}

bool IsKeptForMig(cluster::ResourceId resource, const cluster::NodeInfo& node) {
  if (resource != packing::WholeGpuResource()) return false;
  const auto reported = node.node->allocatable.find(cluster::kWholeGpuResource);
  return reported != node.node->allocatable.end() &&
         reported->second.Value() > node.allocatable.Get(resource);
}

Reason ReasonOf(const Shortfall& shortfall, const cluster::NodeInfo& node) {
  Reason reason = Insufficient(shortfall.resource);
  if (IsKeptForMig(shortfall.resource, node)) {
    reason.message += " beside GPUs that may be partitioned for MIG";
  }
  return reason;
}

bool Fits(const ResourceVector& requests, const ResourceVector& allocatable,
          const ResourceVector& used, Mig mig) {
  return std::all_of(requests.entries().begin(), requests.entries().end(), [&](const auto& entry) {
    const auto& [id, amount] = entry;
    if (Skipped(id, amount, mig)) return true;
    return id != cluster::kUnknownResource &&
           !ResourceShortfall(amount, allocatable.Get(id), used.Get(id));
  });
}

}  // namespace nos::scheduling
