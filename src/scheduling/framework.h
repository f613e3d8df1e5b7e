// Runs the plugins of one profile, in order, over a snapshot.
//
//   const Framework framework = Framework::Default();
//   const CycleState precomputed = framework.Precompute(snapshot, waiting);  // once for a batch
//   const Decision decision = framework.Schedule(pod, snapshot, precomputed);
//   if (decision.node == nullptr) Log(LogLevel::kInfo, decision.diagnosis.ToString());
//
// Thread-safe: any number of threads may use a framework, each with its own Cycle and Precompute
// result. engine.h makes the same decisions faster for a sequence of pods.
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
#include "scheduling/cycle.h"
#include "scheduling/diagnosis.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

struct Decision {
  const cluster::NodeInfo* node = nullptr;  // in the snapshot; null: no node fits
  int64_t score = 0;
  Diagnosis diagnosis;  // filled if there is no node
};

// The plugins in the order in which they run.
class Framework {
 public:
  struct Entry {
    std::unique_ptr<const Plugin> plugin;
    int weight = 1;  // of its score; 0: does not score
  };
  struct Scorer {
    const ScorePlugin* plugin;
    int weight;
  };
  // Plugins of each extension point, in execution order.
  struct Points {
    std::vector<const PreEnqueuePlugin*> gates;
    std::vector<const PreFilterPlugin*> pre_filters;
    std::vector<const FilterPlugin*> filters;
    std::vector<Scorer> scorers;
    std::vector<const ReservePlugin*> reservers;
    std::vector<const PreBindPlugin*> pre_binders;
  };
  Framework(std::vector<std::unique_ptr<const Plugin>> plugins, Points points);
  // Registers every plugin at all extension points that it implements.
  explicit Framework(std::vector<Entry> entries);
  // The default profile; see configuration.h.
  static Framework Default(PartitionedBy partitioned_by = PartitionedBy::kPartitioner);

  // For callers that evaluate plugins themselves and only when an input changed.
  std::span<const PreFilterPlugin* const> pre_filters() const { return points_.pre_filters; }
  std::span<const FilterPlugin* const> filters() const { return points_.filters; }
  std::span<const Scorer> scorers() const { return points_.scorers; }
  std::span<const ReservePlugin* const> reservers() const { return points_.reservers; }
  std::span<const PreBindPlugin* const> pre_binders() const { return points_.pre_binders; }
  std::span<const PreEnqueuePlugin* const> gates() const { return points_.gates; }
  // kScheduler if the GpuPartitioning filter is enabled: the caller must then have GPUs partitioned
  // for the pods that it places.
  PartitionedBy partitioned_by() const { return partitioned_by_; }
  // Null: pods of this framework are not subject to quotas.
  const QuotaPlugin* quotas() const { return quotas_; }

  Cycle PreFilter(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot) const;
  // Returns the first verdict against the node, in plugin order. `by`, if not null, receives the
  // plugin.
  Verdict Filter(const Cycle& cycle, const cluster::Pod& pod, const cluster::NodeInfo& node,
                 const Plugin** by = nullptr) const;
  // Precomputes inputs of scores from the cluster and all pods. The result serves any number of
  // pods while the cluster changes little.
  CycleState Precompute(const cluster::ClusterSnapshot& snapshot, Pods waiting) const;
  // Result of the first scorer that has a preference (ScorePlugin::PreferredGpu).
  std::optional<int> PreferredGpu(const CycleState& precomputed, const cluster::Pod& pod,
                                  const cluster::NodeInfo& node) const;
  // Weighted totals, one per node.
  std::vector<int64_t> Score(const Cycle& cycle, const cluster::Pod& pod,
                             const cluster::ClusterSnapshot& snapshot, Nodes nodes,
                             const CycleState& precomputed = {}) const;

  // Requests of all plugins after no node was found for the pod (Plugin::PostFilter).
  std::vector<codec::ApiRequest> PostFilter(const cluster::Pod& pod,
                                            const cluster::ClusterSnapshot& snapshot) const;

  // Chooses the best feasible node.
  Decision Schedule(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot,
                    const CycleState& precomputed) const;
  // For a single pod: calls Precompute with running pods and this pod, which takes time
  // proportional to the number of all pods.
  Decision Schedule(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot) const;
  // Collects the verdicts of all nodes on the pod.
  Diagnosis Diagnose(const cluster::Pod& pod, const cluster::ClusterSnapshot& snapshot) const;

 private:
  void CacheSpecialPlugins();
  // Scorers that take part for one pod, and its state.
  struct Scoring {
    CycleState state;
    std::vector<Scorer> scorers;
  };
  Scoring PreScore(const Cycle& cycle, const cluster::Pod& pod,
                   const cluster::ClusterSnapshot& snapshot, Nodes feasible,
                   const CycleState& precomputed) const;
  static std::vector<int64_t> TotalsOf(const Scoring& scoring, const cluster::Pod& pod,
                                       Nodes nodes);
  static bool ComesFirst(const Scoring& scoring, const cluster::Pod& pod,
                         const cluster::NodeInfo& left, const cluster::NodeInfo& right);

  std::vector<std::unique_ptr<const Plugin>> plugins_;
  Points points_;
  PartitionedBy partitioned_by_ = PartitionedBy::kPartitioner;
  const QuotaPlugin* quotas_ = nullptr;
};

}  // namespace nos::scheduling
