#include "planning/optimize/group_bound.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "planning/optimize/greedy.h"

namespace nos::planning {
namespace {

constexpr size_t kMaxIntegers = 600;  // columns; larger programs use the rounded relaxation
constexpr int kMaxTreeNodes = 300;
constexpr size_t kMaxShareSets = 100;  // per GPU, modelled one by one
constexpr double kGap = 0.99;          // in units of value
constexpr double kPodItself = 1e-4;    // value of a pod in addition to its class's value
constexpr int kMaxLevels = 8;          // solved one by one; all further levels are solved together
constexpr size_t kMaxAlone = 4'000'000;  // classes times nodes

double Floor(double value) { return std::floor(value + 1e-6 * (1 + std::abs(value))); }

}  // namespace

PooledProgram::PooledProgram(const Problem& problem, GpuStates& states,
                             const std::vector<int>& candidates)
    : problem_(problem),
      states_(states),
      candidates_(candidates),
      pools_(MakePools(problem, states, candidates)) {
  const int pools = static_cast<int>(pools_.size());
  for (int p = 0; p < pools; ++p) AddPods(p);
  for (int p = 0; p < pools; ++p) {
    LimitPods(p);
    for (size_t r = 0; r < problem.dimensions; ++r) LimitResource(p, r);
    if (!pools_[p].slices_as_resources) LimitSlices(p);
  }
  LimitClasses();
}

// Limit from resources if no other pods existed.
double PooledProgram::MostAlone(const PodClass& cls, const NodeGroup& pool) const {
  int64_t most = 0;
  if (candidates_.size() * pool.nodes.size() > kMaxAlone) return cls.count;
  for (const int n : pool.nodes) {
    if (!problem_.allowed[cls.allowed][n]) continue;
    int64_t here = cls.count;
    for (size_t r = 0; r < problem_.dimensions; ++r) {
      if (cls.requests[r] <= 0) continue;
      here = std::min(here, std::max<int64_t>(0, problem_.FreeOf(n)[r]) / cls.requests[r]);
    }
    most += here;
    if (most >= cls.count) break;
  }
  return static_cast<double>(std::min<int64_t>(most, cls.count));
}

void PooledProgram::AddPods(int pool) {
  const size_t first = pods_.size();
  for (const int c : candidates_) {
    const double most = MostAlone(problem_.classes[c], pools_[pool]);
    if (most <= 0) continue;
    program_.AddColumn(most);
    pods_.push_back({c, pool, {}});
  }
  of_.emplace_back(first, pods_.size());
}

void PooledProgram::Set(int row, size_t pod_column, double factor) {
  program_.Set(row, static_cast<int>(pod_column), factor);
  pods_[pod_column].rows.emplace_back(row, factor);
}

// For every node: no more pods than the scarcest resource admits if all pods requested the smallest
// amount.
void PooledProgram::LimitPods(int pool) {
  const auto [first, end] = of_[pool];
  std::vector<int64_t> least(problem_.dimensions, kPlenty);
  int64_t wanted = 0;
  for (size_t i = first; i < end; ++i) {
    const PodClass& cls = problem_.classes[pods_[i].cls];
    wanted += cls.count;
    for (size_t r = 0; r < least.size(); ++r) least[r] = std::min(least[r], cls.requests[r]);
  }
  int64_t sum = 0;
  for (const int n : pools_[pool].nodes) {
    int64_t here = wanted;
    for (size_t r = 0; r < least.size(); ++r) {
      if (least[r] <= 0) continue;
      here = std::min(here, std::max<int64_t>(0, problem_.FreeOf(n)[r]) / least[r]);
    }
    sum += here;
  }
  if (sum >= wanted) return;
  const int row = program_.AddRow(static_cast<double>(sum));
  for (size_t i = first; i < end; ++i) Set(row, i, 1);
}

// In units of the largest request, because cpu and bytes differ by nine orders of magnitude.
void PooledProgram::LimitResource(int pool, size_t dimension) {
  const auto [first, end] = of_[pool];
  double free = 0, wanted = 0, unit = 0;
  for (const int n : pools_[pool].nodes) {
    free += static_cast<double>(std::max<int64_t>(0, problem_.FreeOf(n)[dimension]));
  }
  for (size_t i = first; i < end; ++i) {
    const PodClass& cls = problem_.classes[pods_[i].cls];
    const auto request = static_cast<double>(cls.requests[dimension]);
    wanted += request * cls.count;
    unit = std::max(unit, request);
  }
  if (wanted <= free) return;  // not scarce
  const int row = program_.AddRow(free / unit);
  for (size_t i = first; i < end; ++i) {
    const int64_t request = problem_.classes[pods_[i].cls].requests[dimension];
    if (request > 0) Set(row, i, static_cast<double>(request) / unit);
  }
}

// No more slices than the sets contain, no more sets than GPUs.
void PooledProgram::LimitSlices(int pool) {
  std::vector<int> slice_row(problem_.slices.size(), -1);
  const auto [first, end] = of_[pool];
  for (size_t i = first; i < end; ++i) {
    for (const SliceCount& s : problem_.classes[pods_[i].cls].slices) {
      if (slice_row[s.slice] < 0) slice_row[s.slice] = program_.AddRow(0);
      Set(slice_row[s.slice], i, s.count);
    }
  }
  for (const auto& [state, gpus] : pools_[pool].gpus) {
    const auto count = static_cast<double>(gpus.size());
    const std::vector<Counts>* sets = states_.sets().Of(state);
    if (sets == nullptr || (states_.MayBeShared(state) && sets->size() > kMaxShareSets)) {
      LimitShares(pool, state, count, slice_row);
      continue;
    }
    AddSets(pool, state, *sets, program_.AddRow(count), count, slice_row);
  }
}

void PooledProgram::AddSets(int pool, GpuStateId state, const std::vector<Counts>& sets,
                            int gpu_row, double gpus, const std::vector<int>& slice_row) {
  for (const Counts& set : sets) {
    const int column = program_.AddColumn(gpus);
    program_.Set(gpu_row, column, 1);
    for (size_t s = 0; s < set.size(); ++s) {
      if (set[s] > 0 && slice_row[s] >= 0) program_.Set(slice_row[s], column, -double{1} * set[s]);
    }
    sets_.push_back({pool, state, &set});
  }
}

// For GPUs with too many sets of shares: limits the total memory and the total number of shares of
// the GPUs in shared mode.
void PooledProgram::LimitShares(int pool, GpuStateId state, double gpus,
                                const std::vector<int>& slice_row) {
  const int gpu_row = program_.AddRow(gpus);
  for (const GpuState& way : states_.table().SharingModesOf(GpuState(states_.Get(state)))) {
    if (!states_.IsCounted(way.model)) {
      const std::vector<Counts>* sets = states_.sets().Of(states_.Intern(way));
      AddSets(pool, state, *sets, gpu_row, gpus, slice_row);
      continue;
    }
    const gpu::Model& model = *problem_.models[way.model];
    const Taken taken = Taken::Of(way.occupied);
    const Open open = Open::Of(way.usable);
    const int left = std::max(0, model.slots() - taken.slots - open.kept);
    const int sharing = program_.AddColumn(gpus);
    sets_.push_back({pool, state, nullptr});
    const int memory = program_.AddRow(0), number = program_.AddRow(0);
    program_.Set(gpu_row, sharing, 1);
    program_.Set(memory, sharing, -double{1} * left);
    program_.Set(number, sharing, -double{1} * open.Numbers(model, taken));
    for (size_t s = 0; s < slice_row.size(); ++s) {
      const gpu::ProfileId profile = problem_.slices[s].profile[way.model];
      if (slice_row[s] < 0 || profile == kNoProfile) continue;
      const int most = CopiesOfShare(model, taken, open, profile);
      if (most == 0) continue;
      const int column = program_.AddColumn(gpus * most);
      program_.Set(memory, column, model.profile(profile).slots);
      program_.Set(number, column, 1);
      program_.Set(slice_row[s], column, -1);
      sets_.push_back({pool, state, nullptr});
    }
  }
}

// No more pods of a class in all groups than exist.
void PooledProgram::LimitClasses() {
  std::vector<int> row(problem_.classes.size(), -1);
  if (pools_.size() < 2) return;
  for (size_t i = 0; i < pods_.size(); ++i) {
    const int c = pods_[i].cls;
    if (row[c] < 0) row[c] = program_.AddRow(problem_.classes[c].count);
    Set(row[c], i, 1);
  }
}

template <typename Worth>
std::vector<double> PooledProgram::Worths(const Worth& worth) const {
  std::vector<double> worths(program_.columns());
  for (size_t i = 0; i < pods_.size(); ++i) worths[i] = worth(problem_.classes[pods_[i].cls]);
  return worths;
}

Bound PooledProgram::UpperBound() const {
  Bound bound{0, std::vector<double>(problem_.classes.size())};
  if (pods_.empty()) return bound;
  const Relaxation relaxed = program_.Relax(Worths([](const PodClass&) { return 1.0; }));
  bound.pods = static_cast<int>(Floor(relaxed.best));
  std::vector<double> cheapest(problem_.classes.size(), -1);
  for (const PodColumn& column : pods_) {
    double price = 0;
    for (const auto& [row, factor] : column.rows) price += factor * relaxed.prices[row];
    double& best = cheapest[column.cls];
    if (best < 0 || price < best) best = price;
  }
  for (const int c : candidates_) bound.prices[c] = std::max(0.0, cheapest[c]);
  return bound;
}

double PooledProgram::MostValue(int last_level) const {
  if (pods_.empty()) return 0;
  return Floor(program_
                   .Relax(Worths([&](const PodClass& cls) {
                     return cls.level <= last_level ? static_cast<double>(cls.value) : 0.0;
                   }))
                   .best);
}

namespace {

// By column. Exact if the program is small, else the relaxation rounded down.
std::vector<double> Solve(const IntegerProgram& program, const std::vector<double>& worth,
                          const std::function<bool()>& out_of_time) {
  if (program.columns() <= kMaxIntegers) {
    std::vector<double> columns =
        program.Maximise(worth, {.nodes = kMaxTreeNodes, .gap = kGap, .out_of_time = out_of_time});
    if (!columns.empty()) return columns;
  }
  std::vector<double> columns = program.Relax(worth).columns;
  for (double& count : columns) count = Floor(count);
  return columns;
}

}  // namespace

// By column; empty if there was no time to solve.
std::vector<double> PooledProgram::SolveByLevels(int first_open_level,
                                                 const std::function<bool()>& out_of_time) const {
  IntegerProgram program = program_;
  const auto keep = [&](const std::vector<double>& worth, double least) {
    const int row = program.AddRow(1e-6 - least);
    for (size_t i = 0; i < pods_.size(); ++i) {
      if (worth[i] > 0) program.Set(row, static_cast<int>(i), -worth[i]);
    }
  };
  if (first_open_level > 0) {
    double all = 0;
    for (const int c : candidates_) {
      if (problem_.classes[c].level < first_open_level) all += problem_.classes[c].count;
    }
    keep(Worths([&](const PodClass& cls) { return cls.level < first_open_level ? 1.0 : 0.0; }),
         all);
  }
  std::vector<double> columns;
  for (int level = first_open_level; level < problem_.levels && !out_of_time(); ++level) {
    const bool last = level == first_open_level + kMaxLevels;
    const std::vector<double> worth = Worths([&](const PodClass& cls) {
      if (last ? cls.level < level : cls.level != level) return 0.0;
      return static_cast<double>(cls.value) + kPodItself;
    });
    columns = Solve(program, worth, out_of_time);
    if (last) break;
    keep(worth, std::inner_product(worth.begin(), worth.end(), columns.begin(), 0.0));
  }
  return columns;
}

// The problem with its GPUs partitioned as in the solution.
Problem PooledProgram::Partitioned(const std::vector<double>& columns) const {
  Problem partitioned = problem_;
  std::map<std::pair<int, GpuStateId>, size_t> taken;
  for (size_t i = 0; i < sets_.size(); ++i) {
    const SetColumn& column = sets_[i];
    if (column.set == nullptr) continue;
    const std::vector<int>& gpus = pools_[column.pool].gpus.at(column.state);
    const auto& arranged = states_.Arrange(column.state, *column.set);
    size_t& next = taken[{column.pool, column.state}];
    for (auto n = static_cast<int64_t>(columns[pods_.size() + i]); n > 0 && arranged; --n) {
      ProblemGpu& gpu = partitioned.gpus[gpus[next++]];
      if (!gpu.may_repartition) continue;
      gpu.may_repartition = false;
      gpu.free = 0;
      gpu.free_shares.clear();
      if (!arranged->takings.empty()) {
        gpu.model =
            states_.table().ModelFor(states_.Get(column.state), arranged->takings.front().slice);
      }
      for (const Taking& taking : arranged->takings) {
        if (states_.IsCounted(gpu.model)) {
          gpu.free_shares.push_back(taking.placement);
        } else {
          gpu.free |= uint64_t{1} << taking.placement;
        }
      }
    }
  }
  return partitioned;
}

void PooledProgram::Fill(Draft& draft, int first_open_level,
                         const std::function<bool()>& out_of_time) const {
  const std::vector<double> columns = SolveByLevels(first_open_level, out_of_time);
  if (columns.empty()) return;
  const Problem partitioned = Partitioned(columns);
  Draft fitted(partitioned, states_, Draft::Free::kKeep);
  Greedy greedy(fitted);
  std::vector<std::vector<size_t>> of_class(problem_.classes.size());
  for (size_t i = 0; i < pods_.size(); ++i) of_class[pods_[i].cls].push_back(i);
  for (const int c : Ordered(problem_, candidates_, Order::kLargestFirst)) {
    if (out_of_time()) break;
    int elsewhere = 0;
    for (const size_t i : of_class[c]) {
      const std::vector<int>& nodes = pools_[pods_[i].pool].nodes;
      auto count = static_cast<int>(columns[i]);
      // A group with one node determines the node.
      while (nodes.size() == 1 && count > 0 && greedy.PlaceOn(c, nodes[0])) --count;
      elsewhere += count;
    }
    greedy.Place(c, elsewhere);
  }
  for (const PlacedPod& pod : fitted.pods()) {
    const auto from = fitted.DevicesOf(pod);
    std::vector<Device> devices(from.begin(), from.end());
    for (Device& d : devices) d.created = problem_.gpus[d.gpu].may_repartition;
    draft.Place(pod.cls, pod.node, devices);
  }
}

}  // namespace nos::planning
