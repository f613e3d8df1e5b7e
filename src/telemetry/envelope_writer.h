// Writes envelopes: records with their source and sequence number. docs/telemetry.md describes the
// format. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace nos::telemetry {

struct EnvelopeHead {
  std::string cluster;
  std::string source;     // "node/NAME" or "cluster"
  std::string boot;       // UUID of the spool; `sequence` counts within it
  uint64_t sequence = 0;  // starts at 1 and increases; a missing number never arrives
  Time sent_at{};
  uint64_t lost = 0;  // records dropped since the previous envelope
};

// Schema version that WriteEnvelope writes.
inline constexpr int kEnvelopeSchema = 1;

// `records`: JSON objects, separated by commas.
std::string WriteEnvelope(const EnvelopeHead& head, std::string_view records);

}  // namespace nos::telemetry
