// Series that this server computes from a cluster's state: for the cluster, its nodes and its
// quotas.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "gpu/catalogue.h"
#include "telemetryserver/state.h"

namespace nos::telemetryserver {

inline constexpr telemetry::Millis kDeriveEvery = 10'000;
// Prefixes of their subjects; no other subjects have them.
inline constexpr std::array<std::string_view, 4> kDerivedSubjects = {"cluster", "node/", "quota/",
                                                                     "composite-quota/"};

// An envelope that ReadDerivedEnvelope accepts.
std::string DerivedEnvelope(const std::string& cluster, const State& state,
                            const gpu::Catalogue& catalogue, telemetry::Millis at,
                            telemetry::Millis stale);

}  // namespace nos::telemetryserver
