// Facts about a class of pods on a node of the problem, for explanations.
//
// Pure functions.
#pragma once

#include <optional>

#include "planning/optimize/stages.h"
#include "planning/translation/translate.h"
#include "scheduling/remedies.h"

namespace nos::planning {

// For a class that asks for more than any node has, whatever its hardware; nullopt: some node could
// serve it.
std::optional<scheduling::Remedy> ForImpossible(const Translation& t, const PodClass& cls,
                                                const scheduling::SliceDemand& demand);

bool NodeHasProfile(const Problem& problem, int node, uint16_t slice);
// The node's slices count by what it advertises, and it advertises one that the class requests.
bool AdvertisesSlices(const Translation& t, const PodClass& cls, int node);
// True if the node has GPUs for slices that the class requests, and no component partitions them.
bool NeedsOptIn(const Translation& t, const PodClass& cls, int node);
// The first dimension of which the node has too little free; -1 if none.
int LackingDimension(const Draft& draft, int cls, int node);

}  // namespace nos::planning
