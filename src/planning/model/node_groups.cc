#include "planning/model/node_groups.h"

#include <algorithm>
#include <set>

namespace nos::planning {
namespace {

constexpr size_t kMaxPools = 16;
constexpr size_t kMaxColumns = 1500;  // groups times classes of pods
constexpr size_t kMaxNodesTimesClasses = 400;

class Pooler {
 public:
  Pooler(const Problem& problem, GpuStates& states, const std::vector<int>& classes)
      : problem_(problem),
        classes_(classes.size()),
        max_pools_(
            std::clamp<size_t>(kMaxColumns / std::max<size_t>(classes.size(), 1), 1, kMaxPools)) {
    for (const int c : classes) rows_.insert(problem.classes[c].allowed);
    for (const ProblemGpu& gpu : problem.gpus) {
      gpu_.push_back(states.Start(gpu, gpu.may_repartition));
    }
  }

  std::vector<NodeGroup> Run() const {
    if (IsSmall()) return PoolBy(&Pooler::Each);
    using Key = std::vector<int64_t> (Pooler::*)(int) const;
    for (const Key key : {&Pooler::Everything, &Pooler::Pods}) {
      std::vector<NodeGroup> pools = PoolBy(key);
      if (pools.size() <= max_pools_) return pools;
    }
    return PoolBy(&Pooler::Nothing);
  }

 private:
  bool IsUseful(int node) const {
    return std::any_of(rows_.begin(), rows_.end(),
                       [&](int row) { return problem_.allowed[row][node]; });
  }

  // True if there are few enough pods and nodes to model the resources of every node.
  bool IsSmall() const {
    return problem_.nodes.size() <= max_pools_ &&
           problem_.nodes.size() * classes_ <= kMaxNodesTimesClasses;
  }
  std::vector<int64_t> Each(int node) const { return {node}; }
  std::vector<int64_t> Nothing(int node) const {
    return {problem_.nodes[node].slices_as_resources};
  }
  std::vector<int64_t> Pods(int node) const {
    std::vector<int64_t> key = Nothing(node);
    for (const int row : rows_) key.push_back(problem_.allowed[row][node]);
    return key;
  }
  std::vector<int64_t> Everything(int node) const {
    std::vector<int64_t> key = Pods(node);
    const int64_t* free = problem_.FreeOf(node);
    key.insert(key.end(), free, free + problem_.dimensions);
    const auto first = static_cast<std::ptrdiff_t>(key.size());
    const ProblemNode& where = problem_.nodes[node];
    for (int i = 0; i < where.gpu_count; ++i) key.push_back(gpu_[where.first_gpu + i]);
    std::sort(key.begin() + first, key.end());
    return key;
  }

  // Stops at too many groups, unless no coarser key is left.
  std::vector<NodeGroup> PoolBy(std::vector<int64_t> (Pooler::*key)(int) const) const {
    std::map<std::vector<int64_t>, NodeGroup> pools;
    for (int n = 0; n < static_cast<int>(problem_.nodes.size()); ++n) {
      if (!IsUseful(n)) continue;
      NodeGroup& pool = pools[(this->*key)(n)];
      pool.slices_as_resources = problem_.nodes[n].slices_as_resources;
      pool.nodes.push_back(n);
      if (pools.size() > max_pools_) break;
    }
    std::vector<NodeGroup> result;
    for (auto& [k, pool] : pools) {
      if (!pool.slices_as_resources) AddGpus(pool);
      result.push_back(std::move(pool));
    }
    return result;
  }

  void AddGpus(NodeGroup& pool) const {
    for (int i = 0, more = 1; more > 0; ++i) {
      more = 0;
      for (const int n : pool.nodes) {
        if (i >= problem_.nodes[n].gpu_count) continue;
        const int gpu = problem_.nodes[n].first_gpu + i;
        pool.gpus[gpu_[gpu]].push_back(gpu);
        ++more;
      }
    }
  }

  const Problem& problem_;
  const size_t classes_;
  const size_t max_pools_;
  std::set<int> rows_;           // of Problem::allowed
  std::vector<GpuStateId> gpu_;  // by GPU
};

}  // namespace

std::vector<NodeGroup> MakePools(const Problem& problem, GpuStates& states,
                                 const std::vector<int>& classes) {
  return Pooler(problem, states, classes).Run();
}

}  // namespace nos::planning
