// The summary of a pod (scheduling/summary.h) from what reporters said of it.
//
// Pure functions. Internal to this library.
#pragma once

#include "codec/json_text.h"
#include "telemetryserver/state.h"

namespace nos::telemetryserver {

// Appends {"headline", "cause", "in_the_way", "actions", "eta", "eta_reason", "evictable_by"};
// "eta" in ms, or null. A pod of another namespace that evicts this one is not named.
void AppendExplanation(const State& state, const Pod& pod, JsonText& json);

}  // namespace nos::telemetryserver
