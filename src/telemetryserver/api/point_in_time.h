// Adds measurements of a past moment to a state read for that moment. Internal to this library.
#pragma once

#include "telemetryserver/recorder.h"

namespace nos::telemetryserver {

// Maximum number of subjects that are read: GPUs first, then instances.
inline constexpr size_t kMaxMeasured = 20'000;

// `state`: result of Archive::StateAt for `at`. Errors: see Archive.
Status AddMeasured(Recorder& recorder, const std::string& cluster, telemetry::Millis at,
                   State& state);

}  // namespace nos::telemetryserver
