// What simulated GPUs measure: load follows who holds them. Pure: the same seed and turn give the
// same values.
#pragma once

#include <cstdint>
#include <string_view>

#include "device/backend/readings.h"

namespace nos::device {

// How busy something is that is held, as a share: near a level of its own, with waves and noise.
// `turn` counts the readings.
double SimLoad(std::string_view uuid, uint64_t turn);

// Utilization and memory of something of `memory_mib` that is busy to `load`; 0: nobody holds it.
Readings SimUse(double load, int64_t memory_mib);

// Adds what only a whole board measures, busy to `load`.
void AddSimBoard(double load, Readings& readings);

}  // namespace nos::device
