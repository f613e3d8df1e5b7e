// Readings of simulated GPUs: the load depends on who holds them. Pure: the same seed and turn give
// the same values.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/backend/readings.h"

namespace nos::device {

// The load of a held device, as a share: around its own level, with waves and noise. `turn` counts
// the readings.
double SimLoad(std::string_view uuid, uint64_t turn);

// Utilization and memory of a device with `memory_mib` at this load; 0: not held.
Readings SimUse(double load, int64_t memory_mib);

// Adds the metrics that exist only for a whole GPU, at this load.
void AddSimBoard(double load, Readings& readings);

}  // namespace nos::device
