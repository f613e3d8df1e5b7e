// Finds the smallest change that would let a pending pod run.
#pragma once

#include <optional>
#include <vector>

#include "planning/explanation/allowance.h"
#include "planning/explanation/holding_pods.h"
#include "planning/optimize/stages.h"
#include "planning/translation/translate.h"
#include "scheduling/remedies.h"

namespace nos::planning {

struct RemedyInput {
  const Translation& translation;
  const StagedResult& result;
  const cluster::ClusterSnapshot& snapshot;  // before the plan
  // By node: all objections of the filters.
  const std::vector<std::vector<scheduling::Verdict>>& obstacles;
  // By node: true if the GPUs have capacity for the class's slices; nullopt: unknown, counts as no.
  const std::vector<std::optional<bool>>& has_room;
  HoldingPods& holding;  // kept from one class to the next
};

// Checks every node: which obstacles remain after the planned pods are placed, and how many changes
// would remove them. If the numbers are equal, waiting for other pods to end is preferred to
// changes by people. The sentence names every obstacle of the chosen node. Without a text if the
// allowance did not suffice for all nodes.
scheduling::Remedy FindRemedy(const RemedyInput& input, int cls, Allowance& allowance);

// For a class that asks for more than any node has, whatever its hardware; nullopt: some node could
// serve it.
std::optional<scheduling::Remedy> ForImpossible(const Translation& t, const PodClass& cls,
                                                const scheduling::SliceDemand& demand);

bool NodeHasProfile(const Problem& problem, int node, uint16_t slice);
// The node's slices count by what it advertises, and it advertises one that the class requests.
bool AdvertisesSlices(const Translation& t, const PodClass& cls, int node);
// Nobody partitions the node's GPUs into slices that the class requests.
bool NeedsOptIn(const Translation& t, const PodClass& cls, int node);
// The first dimension of which the node has too little free; -1 if none.
int LackingDimension(const Draft& draft, int cls, int node);

}  // namespace nos::planning
