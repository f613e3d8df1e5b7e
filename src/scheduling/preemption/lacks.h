// What a node lacks for a pod, of what can be told without asking filters.
//
//   Lacks lacks(RequestsOf(pod), node);
//   for (const quota::Amounts& charge : charges of all that may go) lacks.Lessen(charge);
//   if (lacks.any()) continue;   // no need to ask a filter
//
// Of slices it is known only whether they are free as the GPUs are cut: who has GPU memory may help
// then.
#pragma once

#include <utility>
#include <vector>

#include "cluster/snapshot.h"
#include "quota/amounts.h"

namespace nos::scheduling {

class Lacks {
 public:
  Lacks() = default;
  Lacks(const cluster::ResourceVector& asked, const cluster::NodeInfo& node);

  void Lessen(const quota::Amounts& freed);
  bool any() const;
  // What these alone would be for: nothing, some of what lacks, all of it, as far as that is known.
  enum class Use { kNone, kSome, kAll };
  Use UseOf(const quota::Amounts& freed) const;

 private:
  std::vector<std::pair<cluster::ResourceId, quota::Amount>> lacks_;
  bool slices_ = false;  // of GPUs that may be cut anew
};

}  // namespace nos::scheduling
