// Series that this server makes of a cluster's state: of the cluster, its nodes and its quotas.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "gpu/catalogue.h"
#include "telemetry/state.h"

namespace nos::telemetry {

inline constexpr Millis kDeriveEvery = 10'000;
// How the names of their subjects begin; no others' do.
inline constexpr std::array<std::string_view, 4> kDerivedSubjects = {"cluster", "node/", "quota/",
                                                                     "composite-quota/"};

// An envelope that ReadDerivedEnvelope reads.
std::string DerivedEnvelope(const std::string& cluster, const State& state,
                            const gpu::Catalogue& catalogue, Millis at, Millis stale);

}  // namespace nos::telemetry
