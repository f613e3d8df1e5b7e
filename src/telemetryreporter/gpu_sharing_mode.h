// Determines the sharing mode of a GPU, and possible other modes, from driver and agent settings.
#pragma once

#include <span>

#include "telemetryreporter/node_sample.h"

namespace nos::telemetry {

// Assigns slots of the GPU to time slices, and sets the GPU's number of slots. Instances that
// cannot be time slices are removed.
void PlaceTimeSlices(const gpu::Catalogue& catalogue, int time_slices, SampledGpu& gpu);
// Sets sharing mode and switches of the sample. `there`: all instances.
void SetSharingMode(std::span<const device::GpuInstance> there, const NodeSettings& settings,
                    SampledGpu& gpu, const gpu::Catalogue& catalogue);

}  // namespace nos::telemetry
