#include <fmt/format.h>

#include <algorithm>

#include "base/uuid.h"
#include "dra/allocation/search.h"
#include "dra/result/allocations.h"

namespace nos::dra {

AllocationOutcome Allocate(const Inventory& inventory, const PreparedClaims& claims,
                           const cluster::Node& node, const AllocationOptions& options) {
  AllocationOutcome outcome;
  if (claims.fault()) {
    outcome.kind = AllocationOutcome::Kind::kRefused;
    outcome.fault = *claims.fault();
    return outcome;
  }
  const NodeView& view = inventory.View(node, options.optional_node_operations);
  Screen screen(view, inventory.features(), inventory.expressions());
  Draft draft(screen, claims.claims());
  Search search(screen, draft, claims.claims(), options);
  const Search::Found found = search.Run();
  outcome.steps = search.steps();
  if (found == Search::Found::kStop) {
    outcome.kind = search.fault() ? AllocationOutcome::Kind::kRefused
                                  : AllocationOutcome::Kind::kStepsExhausted;
    outcome.fault = search.fault().value_or(AllocationFault());
  } else if (found == Search::Found::kYes) {
    outcome.kind = AllocationOutcome::Kind::kAllocated;
    outcome.allocations = ResultOf(view, draft.picks(), claims.claims(), inventory.features());
  } else {
    const auto invalid = std::find_if(view.pools.begin(), view.pools.end(),
                                      [](const PoolView& pool) { return !pool.problem.empty(); });
    if (invalid == view.pools.end()) return outcome;
    outcome.kind = AllocationOutcome::Kind::kRefused;
    outcome.fault = {
        Fault::kPoolInvalid,
        fmt::format("pool {} is invalid: {}", invalid->id.ToString(), invalid->problem), true};
  }
  return outcome;
}

}  // namespace nos::dra
