// The problem with equal nodes grouped, as an integer program. It gives an upper bound, and a plan
// if not all pods fit.
//
//   PooledProgram pooled(problem, states, candidates);
//   const Bound bound = pooled.UpperBound();
//   pooled.Fill(draft, first_open_level, out_of_time);
//
// Variables: the number of pods of each class in each group of nodes, and the number of GPUs in
// each state that are partitioned for each maximal set of slices. GPUs and resources of a group
// count as if they belonged to one node, so the program admits every plan, and some assignments
// that are not plans. Deterministic.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "planning/model/draft.h"
#include "planning/model/integer_program.h"
#include "planning/model/node_groups.h"

namespace nos::planning {

struct Bound {
  int pods = 0;  // no plan places more
  // By class: the share of scarce slots and resources that a pod takes, from the dual prices of the
  // bound. A plan that serves many pods prefers cheap ones.
  std::vector<double> prices;
};

class PooledProgram {
 public:
  // `candidates`: the classes of which a pod could be placed on its own. Other classes are ignored.
  PooledProgram(const Problem& problem, GpuStates& states, const std::vector<int>& candidates);

  Bound UpperBound() const;
  // Upper limit for the value of all pods of levels up to this one.
  double MostValue(int last_level) const;
  // Places as much of the program's best solution, level by level, as the nodes allow. `draft`:
  // nothing placed yet, Free::kIgnore, all GPUs open. REQUIRES: the levels before
  // `first_open_level` can be served completely. Places nothing if the program is too big.
  void Fill(Draft& draft, int first_open_level, const std::function<bool()>& out_of_time) const;

 private:
  // Number of pods of a class in a group of nodes.
  struct PodColumn {
    int cls = 0, pool = 0;
    std::vector<std::pair<int, double>> rows;  // constraints, with the factor in each
  };
  // Number of GPUs of a group in a state that are partitioned for a set.
  struct SetColumn {
    int pool = 0;
    GpuStateId state = 0;
    const Counts* set = nullptr;  // null: a slice of shares (LimitShares)
  };

  void AddPods(int pool);
  void LimitPods(int pool);
  void LimitSlices(int pool);
  void LimitShares(int pool, GpuStateId state, double gpus, const std::vector<int>& slice_row);
  void AddSets(int pool, GpuStateId state, const std::vector<Counts>& sets, int gpu_row,
               double gpus, const std::vector<int>& slice_row);
  void LimitResource(int pool, size_t dimension);
  void LimitClasses();
  double MostAlone(const PodClass& cls, const NodeGroup& pool) const;
  void Set(int row, size_t pod_column, double factor);
  template <typename Worth>
  std::vector<double> Worths(const Worth& worth) const;
  std::vector<double> SolveByLevels(int first_open_level,
                                    const std::function<bool()>& out_of_time) const;
  Problem Partitioned(const std::vector<double>& columns) const;

  const Problem& problem_;
  GpuStates& states_;
  const std::vector<int>& candidates_;
  const std::vector<NodeGroup> pools_;
  IntegerProgram program_;
  std::vector<PodColumn> pods_;                // the first columns, grouped by pool
  std::vector<std::pair<size_t, size_t>> of_;  // by pool: range of its columns in pods_
  std::vector<SetColumn> sets_;                // the columns after pods_
};

}  // namespace nos::planning
