// Series that this server makes of a cluster's state: of the cluster, its nodes and its quotas.
#pragma once

#include <string>

#include "gpu/catalogue.h"
#include "telemetry/state.h"

namespace nos::telemetry {

inline constexpr Millis kDeriveEvery = 10'000;

// An envelope that ReadDerivedEnvelope reads.
std::string DerivedEnvelope(const std::string& cluster, const State& state,
                            const gpu::Catalogue& catalogue, Millis at, Millis stale);

}  // namespace nos::telemetry
