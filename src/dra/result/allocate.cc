#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dra/allocation/search.h"
#include "dra/result/allocations.h"

namespace nos::dra {
namespace {

using Kind = AllocationOutcome::Kind;

// A ranked search may take this part of the steps. Its order finds good devices, but takes longer
// to prove that there are none, because it does not consider combinations in one order only.
constexpr int64_t kRankedPart = 8;

std::vector<DeviceChoice> ChoicesOf(const std::vector<Pick>& picks) {
  std::vector<DeviceChoice> choices;
  for (const Pick& pick : picks) choices.push_back({pick.device});
  return choices;
}

// For each request with devices, how many alternatives are tried before the one that was allocated.
int AlternativesOf(const std::vector<Pick>& picks, const std::vector<PreparedClaim>& claims,
                   const AllocationOptions& options) {
  int sum = 0;
  const PreparedRequest* last = nullptr;
  for (const Pick& pick : picks) {
    if (std::exchange(last, pick.request) == pick.request) continue;
    for (const auto& alternatives : claims[pick.claim].requests) {
      const auto found =
          std::ranges::find(alternatives, pick.request, [](const auto& each) { return &each; });
      if (found == alternatives.end()) continue;
      const auto index = static_cast<size_t>(found - alternatives.begin());
      const size_t first = FirstTried(alternatives.size(), options);
      sum += static_cast<int>((index + alternatives.size() - first) % alternatives.size());
    }
  }
  return sum;
}

// `measures` computes the loss; null: no caller needs it.
AllocationOutcome Run(const Inventory& inventory, const std::vector<PreparedClaim>& claims,
                      const NodeView& view, const AllocationOptions& options,
                      const DeviceRanking* measures) {
  AllocationOutcome outcome;
  Screen screen(view, inventory.features(), inventory.expressions(), options.max_steps);
  Draft draft(screen, claims);
  Search search(screen, draft, claims, options);
  const Search::Found found = search.Run();
  outcome.steps = search.steps();
  if (found == Search::Found::kStop) {
    outcome.kind = search.fault() ? Kind::kRefused : Kind::kStepsExhausted;
    outcome.fault = search.fault().value_or(AllocationFault());
  } else if (found == Search::Found::kYes) {
    outcome.kind = Kind::kAllocated;
    outcome.allocations = ResultOf(view, draft.picks(), claims, inventory.features());
    outcome.alternatives = AlternativesOf(draft.picks(), claims, options);
    outcome.ranked = options.ranking != nullptr;
    if (measures != nullptr) outcome.loss = measures->LossOf(view, ChoicesOf(draft.picks()));
  } else {
    const auto invalid = std::find_if(view.pools.begin(), view.pools.end(),
                                      [](const PoolView& pool) { return !pool.problem.empty(); });
    if (invalid == view.pools.end()) return outcome;
    outcome.kind = Kind::kRefused;
    outcome.fault = {
        Fault::kPoolInvalid,
        fmt::format("pool {} is invalid: {}", invalid->id.ToString(), invalid->problem), true};
  }
  return outcome;
}

}  // namespace

AllocationOutcome Allocate(const Inventory& inventory, const PreparedClaims& claims,
                           const cluster::Node& node, const AllocationOptions& options) {
  if (const std::optional<AllocationFault>& fault = claims.fault(); fault) {
    AllocationOutcome outcome;
    outcome.kind = Kind::kRefused;
    outcome.fault = *fault;
    return outcome;
  }
  const NodeView& view = inventory.View(node, options.optional_node_operations);
  if (options.ranking == nullptr) return Run(inventory, claims.claims(), view, options, nullptr);
  AllocationOptions part = options;
  part.max_steps = options.max_steps / kRankedPart;
  AllocationOutcome outcome = Run(inventory, claims.claims(), view, part, options.ranking);
  if (outcome.kind != Kind::kStepsExhausted) return outcome;
  const int64_t steps = outcome.steps;
  part.max_steps = options.max_steps - part.max_steps;
  part.ranking = nullptr;
  outcome = Run(inventory, claims.claims(), view, part, options.ranking);
  outcome.steps += steps;
  return outcome;
}

}  // namespace nos::dra
