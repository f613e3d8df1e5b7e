#include "planning/optimize/tidy.h"

#include <algorithm>
#include <numeric>

#include "planning/optimize/greedy.h"
#include "planning/optimize/realise.h"

namespace nos::planning {
namespace {

constexpr int kMaxTrials = 4;

// Largest first over all levels: every pod must be placed, so priorities do not matter.
bool PlaceSame(Draft& draft, const Draft& best, const std::function<bool()>& stop) {
  const Problem& problem = best.problem();
  std::vector<int> classes;
  for (size_t c = 0; c < problem.classes.size(); ++c) {
    if (best.PlacedOf(static_cast<int>(c)) > 0) classes.push_back(static_cast<int>(c));
  }
  Greedy greedy(draft);
  for (const int c : Ordered(problem, std::move(classes), Order::kLargestFirst)) {
    if (stop() || greedy.Place(c, best.PlacedOf(c)) < best.PlacedOf(c)) return false;
  }
  return true;
}

// Weights of slices for counting GPUs. Any weights give a valid lower limit; the maximum over
// several comes close to the number that packing needs.
std::vector<std::vector<int>> PriceLists(const Problem& problem) {
  std::vector<std::vector<int>> lists(2);
  for (const Slice& s : problem.slices) {
    lists[0].push_back(s.size);
    lists[1].push_back(s.compute);
  }
  for (const Slice& least : problem.slices) {
    std::vector<int>& list = lists.emplace_back();
    for (const Slice& s : problem.slices) list.push_back(s.size >= least.size ? 1 : 0);
  }
  return lists;
}

int64_t Worth(const std::vector<int>& prices, const Counts& counts) {
  return std::inner_product(prices.begin(), prices.end(), counts.begin(), int64_t{0});
}

int64_t MostWorth(const std::vector<int>& prices, Draft& draft, int gpu) {
  GpuStates& states = draft.states();
  const std::vector<Counts>* sets = states.sets().Of(draft.Original(gpu));
  if (sets == nullptr) return Worth(prices, states.sets().MostOn(draft.Original(gpu)).each);
  int64_t most = 0;
  for (const Counts& set : *sets) most = std::max(most, Worth(prices, set));
  return most;
}

// The GPUs that the draft repartitions, those with most capacity first.
std::vector<int> PartitionedGpus(Draft& draft) {
  std::vector<int> sizes;
  for (const Slice& s : draft.problem().slices) sizes.push_back(s.size);
  std::vector<std::pair<int64_t, int>> by_worth;
  for (size_t g = 0; g < draft.problem().gpus.size(); ++g) {
    const int gpu = static_cast<int>(g);
    if (draft.CreatedOn(gpu) > 0) by_worth.emplace_back(-MostWorth(sizes, draft, gpu), gpu);
  }
  std::sort(by_worth.begin(), by_worth.end());
  std::vector<int> gpus;
  gpus.reserve(by_worth.size());
  for (const auto& [room, gpu] : by_worth) gpus.push_back(gpu);
  return gpus;
}

// A lower limit for the number of these GPUs that the new instances need.
int LeastGpus(Draft& draft, const std::vector<int>& gpus) {
  const Problem& problem = draft.problem();
  std::vector<int64_t> created(problem.slices.size());
  for (const PlacedPod& pod : draft.pods()) {
    if (!pod.alive) continue;
    for (const Device& d : draft.DevicesOf(pod)) created[d.slice] += d.created;
  }
  int least = 1;
  for (const std::vector<int>& prices : PriceLists(problem)) {
    int64_t need = std::inner_product(prices.begin(), prices.end(), created.begin(), int64_t{0});
    std::vector<int64_t> gives;
    gives.reserve(gpus.size());
    for (const int gpu : gpus) gives.push_back(MostWorth(prices, draft, gpu));
    std::sort(gives.begin(), gives.end(), std::greater<>());
    int count = 0;
    while (need > 0 && count < static_cast<int>(gives.size())) need -= gives[count++];
    least = std::max(least, count);
  }
  return least;
}

// Placing pods GPU by GPU fills each GPU but may combine slices badly. Therefore all pods are
// placed again with a limited number of GPUs opened in advance, and each slice takes the place that
// loses least potential. The number of GPUs is searched between the lower limit and the current
// number.
Draft Consolidate(Draft tidy, const std::function<bool()>& out_of_time, bool* complete) {
  const std::vector<int> gpus = PartitionedGpus(tidy);
  int fewest = LeastGpus(tidy, gpus), enough = static_cast<int>(gpus.size());
  int guess = fewest;
  for (int trial = 0; trial < kMaxTrials && fewest < enough; ++trial) {
    if (out_of_time()) {
      *complete = false;
      break;
    }
    Draft draft(tidy.problem(), tidy.states(), Draft::Free::kKeep);
    for (int i = 0; i < guess; ++i) draft.Open(gpus[i]);
    const bool same = PlaceSame(draft, tidy, out_of_time);
    const int used = same ? draft.Cost().gpus : enough;
    if (same && draft.Cost() < tidy.Cost()) tidy = std::move(draft);
    if (used <= guess)
      enough = guess;
    else
      fewest = guess + 1;
    enough = std::min(enough, std::max(used, fewest));
    guess = (fewest + enough) / 2;
  }
  return tidy;
}

}  // namespace

Draft Tidy(const Draft& best, const std::function<bool()>& out_of_time,
           const std::function<bool()>& give_up, bool* complete) {
  Draft tidy(best.problem(), best.states(), Draft::Free::kKeep);
  if (PlaceSame(tidy, best, give_up)) return Consolidate(std::move(tidy), out_of_time, complete);
  return Realise(best);
}

}  // namespace nos::planning
