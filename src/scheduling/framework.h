// The plugins of one profile, run in order over a snapshot.
//
//   const Framework framework = Framework::Default();
//   const CycleState learnt = framework.Learn(snapshot, waiting);  // once for a batch of pods
//   const Decision decision = framework.Schedule(pod, snapshot, learnt);
//   if (decision.node == nullptr) Say(decision.diagnosis.ToString());
//
// A framework may be used from any number of threads, each with its own cycle and its own learnt
// state. engine.h decides the same, for many pods after each other, faster.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/snapshot.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {


// One pod's way through the pre-filters.
struct Cycle {
  CycleState state;
  Verdict verdict;                             // not fitting: no node will do
  std::optional<std::set<std::string>> nodes;  // the only candidates
  Verdict elsewhere;                           // what to say of the other nodes
  std::vector<const FilterPlugin*> filters;    // those that have something to say
  const Plugin* by = nullptr;                  // whose `verdict` or `elsewhere` it is
};

// Why a pod has no node: each reason with the number of nodes that gave it, most frequent first.
struct Diagnosis {
  struct Entry {
    std::string code, message;
    Verdict::Kind kind = Verdict::Kind::kUnschedulable;
    int nodes = 0;
  };
  int nodes = 0;     // in the cluster
  int feasible = 0;  // of them
  std::vector<Entry> entries;
  std::vector<const Plugin*> by;  // who refused, in no order
  bool asked = true;              // false: refused before any node was asked

  // As kube-scheduler words it, but for the order of reasons: "0/5 nodes are available: 3
  // Insufficient cpu, 2 node(s) were unschedulable."
  std::string ToString() const;
};

struct Decision {
  const cluster::NodeInfo* node = nullptr;  // in the snapshot; null: none fits
  int64_t score = 0;
  Diagnosis diagnosis;  // filled when there is no node
};

// Who has GPUs cut for pods that find no free slice.
enum class GpusCut {
  kElsewhere,  // the partitioner, as far as the scheduler is concerned: it waits for slices
  kHere,       // this scheduler, in the cycle that chooses the node
};

// The plugins in the order in which they run.
class Framework {
 public:
  struct Entry {
    std::unique_ptr<const Plugin> plugin;
    int weight = 1;  // of its score; 0: do not score
  };
  struct Scorer {
    const ScorePlugin* plugin;
    int weight;
  };
  // Who runs at each point, in this order.
  struct Points {
    std::vector<const PreEnqueuePlugin*> gates;
    std::vector<const PreFilterPlugin*> pre_filters;
    std::vector<const FilterPlugin*> filters;
    std::vector<Scorer> scorers;
    std::vector<const ReservePlugin*> reservers;
    std::vector<const PreBindPlugin*> pre_binders;
  };
  Framework(std::vector<std::unique_ptr<const Plugin>> plugins, Points points);
  // Every plugin at all points that it has.
  explicit Framework(std::vector<Entry> entries);
  // Of a profile of which nothing is said (configuration.h).
  static Framework Default(GpusCut gpus_cut = GpusCut::kElsewhere);

  // For callers that evaluate plugins themselves, each only when something that it depends on has
  // changed.
  std::span<const PreFilterPlugin* const> pre_filters() const { return points_.pre_filters; }
  std::span<const FilterPlugin* const> filters() const { return points_.filters; }
  std::span<const Scorer> scorers() const { return points_.scorers; }
  std::span<const ReservePlugin* const> reservers() const { return points_.reservers; }
  std::span<const PreBindPlugin* const> pre_binders() const { return points_.pre_binders; }
  std::span<const PreEnqueuePlugin* const> gates() const { return points_.gates; }
  // kHere where GpuCutting filters: whoever places the pods has to have GPUs cut.
  GpusCut gpus_cut() const { return gpus_cut_; }
  // Null: pods of this framework need not heed quotas.
  const QuotaPlugin* quotas() const { return quotas_; }

  Cycle PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot) const;
  // The first verdict against the node, in the order of plugins; `by` (if not null) gets whose.
  Verdict Filter(const Cycle& cycle, const cluster::Pod& pod, const cluster::NodeInfo& node,
                 const Plugin** by = nullptr) const;
  // What scores need to know of the cluster and of all pods; serves any number of pods while the
  // cluster changes little.
  CycleState Learn(const cluster::ClusterSnapshot& snapshot, Pods waiting) const;
  // As the first scorer has it that knows one (ScorePlugin).
  std::optional<int> PreferredGpu(const CycleState& learnt, const cluster::Pod& pod,
                                  const cluster::NodeInfo& node) const;
  // Weighted sums, one for each node.
  std::vector<int64_t> Score(const Cycle& cycle, const cluster::Pod& pod,
                             const cluster::ClusterSnapshot& snapshot, Nodes nodes,
                             const CycleState& learnt = {}) const;

  // The best node that fits.
  Decision Schedule(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    const CycleState& learnt) const;
  // For a single pod: learns from those that run and from it, which takes time with the number of
  // all pods.
  Decision Schedule(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot) const;
  // What every node says to the pod.
  Diagnosis Diagnose(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot) const;

 private:
  void CacheSpecialPlugins();
  // What is left of the scorers for one pod, and its state.
  struct Scoring {
    CycleState state;
    std::vector<Scorer> scorers;
  };
  Scoring PreScore(const Cycle& cycle, const cluster::Pod& pod,
                   const cluster::ClusterSnapshot& snapshot, Nodes feasible,
                   const CycleState& learnt) const;
  static std::vector<int64_t> TotalsOf(const Scoring& scoring, const cluster::Pod& pod,
                                       Nodes nodes);
  static bool ComesFirst(const Scoring& scoring, const cluster::Pod& pod,
                         const cluster::NodeInfo& left, const cluster::NodeInfo& right);

  std::vector<std::unique_ptr<const Plugin>> plugins_;
  Points points_;
  GpusCut gpus_cut_ = GpusCut::kElsewhere;
  const QuotaPlugin* quotas_ = nullptr;
};

}  // namespace nos::scheduling
