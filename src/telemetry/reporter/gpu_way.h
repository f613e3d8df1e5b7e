// In which way a GPU is used, and in which others it may be, by what driver and agent tell of it.
#pragma once

#include <span>

#include "telemetry/node_sample.h"

namespace nos::telemetry {

// Gives time slices the slots that they take of the GPU, and the GPU so many. What cannot be such a
// slice is left out.
void PlaceTimeSlices(const gpu::Catalogue& catalogue, int time_slices, SampledGpu& gpu);
// Fills in way and switches of what the sample has. `there`: all instances.
void TellWay(std::span<const device::GpuInstance> there, const Sharing& sharing, SampledGpu& gpu,
             const gpu::Catalogue& catalogue);

}  // namespace nos::telemetry
