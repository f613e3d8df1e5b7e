// What a reporter sends: records, and around them where they come from and which in the row they
// are. docs/telemetry.md describes the format. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace nos::telemetry {

struct EnvelopeHead {
  std::string cluster;
  std::string source;     // "node/NAME" or "cluster"
  std::string boot;       // the UUID of the spool: what `sequence` counts in
  uint64_t sequence = 0;  // from 1, up; missing ones never come
  Time sent_at{};
  uint64_t lost = 0;  // records that were dropped since the envelope before
};

// The schema that WriteEnvelope writes.
inline constexpr int kEnvelopeSchema = 1;

// `records`: JSON objects, separated by commas.
std::string WriteEnvelope(const EnvelopeHead& head, std::string_view records);

}  // namespace nos::telemetry
