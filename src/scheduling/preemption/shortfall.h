// Resource shortfall of a node for a pod, computed without calling filters.
//
//   ResourceShortfall lacks(RequestsOf(pod), node);
//   for (const quota::Amounts& charge : charges of all allowed victims) lacks.Lessen(charge);
//   if (lacks.any()) continue;   // no need to call a filter
//
// Shortfalls of slices are only tracked as present or absent, because the free slices depend on how
// GPUs are partitioned. Any pod with GPU memory may help.
#pragma once

#include <utility>
#include <vector>

#include "cluster/snapshot.h"
#include "quota/amounts.h"

namespace nos::scheduling {

class ResourceShortfall {
 public:
  ResourceShortfall() = default;
  ResourceShortfall(const cluster::ResourceVector& asked, const cluster::NodeInfo& node);

  void Lessen(const quota::Amounts& freed);
  bool any() const;
  // Effect of evicting only the owner of `freed`: kNone frees nothing useful, kSome part of the
  // shortfall, kAll the whole shortfall, as far as it can be computed.
  enum class Use { kNone, kSome, kAll };
  Use UseOf(const quota::Amounts& freed) const;

 private:
  std::vector<std::pair<cluster::ResourceId, quota::Amount>> lacks_;
  bool slices_ = false;  // a slice of GPUs that can be repartitioned is missing
};

}  // namespace nos::scheduling
