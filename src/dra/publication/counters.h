// Counters that exclude exactly the sets of instances that a GPU cannot have.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "gpu/catalogue.h"

namespace nos::dra {

using CounterAmounts = std::map<std::string, int64_t>;  // by the counter's name

// The counters of a whole GPU, and those that one instance uses. Counters for which no limit of the
// model can be reached are left out. Geometries that an administrator allows or forbids are no
// counters: an instance outside them fails when it is created.
CounterAmounts CountersOfGpu(const gpu::Model& model);
CounterAmounts CountersOf(const gpu::Model& model, gpu::Placement placement);

// False if the API has too few counters for the model, or placements are not its rule.
bool HasCounters(const gpu::Model& model);

}  // namespace nos::dra
