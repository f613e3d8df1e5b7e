// What was measured at a moment of the past, for a state that has been read for it. Internal to
// this room.
#pragma once

#include "telemetryserver/recorder.h"

namespace nos::telemetryserver {

// Subjects of whom that is looked for: GPUs first, then instances.
inline constexpr size_t kMostMeasured = 20'000;

// `state`: as Archive::StateAt left it, of `at`. Errors: as Archive.
Status AddMeasured(Recorder& recorder, const std::string& cluster, telemetry::Millis at, State& state);

}  // namespace nos::telemetryserver
