// The problem with alike nodes pooled, as an integer program: an upper bound, and a plan for when
// not all pods fit.
//
//   PooledProgram pooled(problem, states, candidates);
//   const Bound bound = pooled.UpperBound();
//   pooled.Fill(draft, first_open_level, out_of_time);
//
// Unknowns: how many pods of each class each pool takes, and how many of its GPUs in each state are
// cut to which largest set of slices. The GPUs and resources of a pool count as if they were one
// node's, so the program allows all that a plan can do, and sometimes more. Deterministic.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "planning/model/draft.h"
#include "planning/model/integer_program.h"
#include "planning/model/pools.h"

namespace nos::planning {

struct Bound {
  int pods = 0;  // no plan places more
  // By class: what share of the scarce slots and resources a pod takes, as the proof values them. A
  // plan for many pods takes cheap ones.
  std::vector<double> prices;
};

class PooledProgram {
 public:
  // `candidates`: the classes of which a pod could be placed if it were alone; others count
  // nothing.
  PooledProgram(const Problem& problem, GpuStates& states, const std::vector<int>& candidates);

  Bound UpperBound() const;
  // No plan serves more value to the pods of levels up to this one.
  double MostValue(int last_level) const;
  // Places as much of the program's best plan, level by level, as the nodes themselves allow.
  // `draft`: nothing placed yet, Free::kIgnore, all GPUs open. The levels before `first_open_level`
  // can be served wholly. Places nothing when the program is too big.
  void Fill(Draft& draft, int first_open_level, const std::function<bool()>& out_of_time) const;

 private:
  // Pods of a class on a pool.
  struct PodColumn {
    int cls = 0, pool = 0;
    std::vector<std::pair<int, double>> rows;  // where it stands, with which factor
  };
  // GPUs of a pool in a state that are cut to a set.
  struct SetColumn {
    int pool = 0;
    GpuStateId state = 0;
    const Counts* set = nullptr;  // null: of a slice of shares (LimitShares)
  };

  void AddPods(int pool);
  void LimitPods(int pool);
  void LimitSlices(int pool);
  void LimitShares(int pool, GpuStateId state, double gpus, const std::vector<int>& slice_row);
  void AddSets(int pool, GpuStateId state, const std::vector<Counts>& sets, int gpu_row,
               double gpus, const std::vector<int>& slice_row);
  void LimitResource(int pool, size_t dimension);
  void LimitClasses();
  double MostAlone(const PodClass& cls, const Pool& pool) const;
  void Set(int row, size_t pod_column, double factor);
  template <typename Worth>
  std::vector<double> Worths(const Worth& worth) const;
  std::vector<double> SolveByLevels(int first_open_level,
                                    const std::function<bool()>& out_of_time) const;
  Problem Cut(const std::vector<double>& columns) const;

  const Problem& problem_;
  GpuStates& states_;
  const std::vector<int>& candidates_;
  const std::vector<Pool> pools_;
  IntegerProgram program_;
  std::vector<PodColumn> pods_;                // the first columns, pool by pool
  std::vector<std::pair<size_t, size_t>> of_;  // by pool: its columns in pods_
  std::vector<SetColumn> sets_;                // the columns after pods_
};

}  // namespace nos::planning
