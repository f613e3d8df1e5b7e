// Which pods have to go so that a more important one fits.
//
//   if (auto preemption = FindPreemption(framework, snapshot, pod, {}))
//     Evict(preemption->victims), Nominate(pod, preemption->node);
//
// Semantics: kube-scheduler's DefaultPreemption. On each node that refuses the pod for what can
// change, all pods of lower priority are taken away; if the pod fits then, as many of them as
// possible are taken back, those first whose PodDisruptionBudgets would be violated, then the more
// important ones. Of all nodes the one is taken with the fewest violations, then the least
// important first victim, the least sum of priorities, the fewest victims, and the youngest. Unlike
// there, candidates are looked at in the order of the nodes' names, so that a run repeats.
//
// Pure functions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "scheduling/framework.h"

namespace nos::scheduling {

// DefaultPreemptionArgs.
struct PreemptionOptions {
  int min_candidate_percentage = 10;  // of all nodes
  int min_candidates = 100;
};

struct Preemption {
  std::string node;
  std::vector<std::shared_ptr<const cluster::Pod>> victims;  // the most important first
  int violations = 0;                                        // of disruption budgets
};

// A scheduler has evicted it, and it takes its time to end. Who ends for another reason may take
// hours, and is not waited for (kube-scheduler 1.34's DefaultPreemption).
bool EndsByPreemption(const cluster::Pod& pod);

// Why a pod may not preempt; empty: it may. One that has made room already waits for it: its
// victims take their time to end.
std::string WhyNotPreempt(const Framework& framework, const cluster::ClusterSnapshot& snapshot,
                          const cluster::Pod& pod);

// None: nothing that may be taken away would help. `snapshot` holds the pods that were promised a
// node before, too; its surroundings have the budgets.
std::optional<Preemption> FindPreemption(const Framework& framework,
                                         const cluster::ClusterSnapshot& snapshot,
                                         const cluster::Pod& pod, const PreemptionOptions& options);

// All of which FindPreemption takes the first of the best, in the order of the nodes' names.
std::vector<Preemption> PreemptionCandidates(const Framework& framework,
                                             const cluster::ClusterSnapshot& snapshot,
                                             const cluster::Pod& pod,
                                             const PreemptionOptions& options);
// The fewest pods of one node without which the pod fits there, whatever their priorities, of those
// that `may_go`; the least important ones of equally many. Each alone is tried, then each pair, in
// at most some thousand trials; beyond that, and for more, all that may go are taken away and taken
// back as above, on as many nodes as a preemption looks at. None: that would not help, or it fits.
std::optional<Preemption> FindFewest(const Framework& framework,
                                     const cluster::ClusterSnapshot& snapshot,
                                     const cluster::Pod& pod,
                                     FunctionRef<bool(const cluster::Pod&)> may_go);
// Whether `a` does less harm than `b`.
bool IsGentler(const Preemption& a, const Preemption& b);

}  // namespace nos::scheduling
