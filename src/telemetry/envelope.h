// An envelope: a numbered batch of records that one source sends together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "telemetry/records.h"

namespace nos::telemetry {

inline constexpr size_t kMaxEnvelopeBytes = size_t{32} << 20;  // of text
inline constexpr size_t kMaxRecords = 100'000;
inline constexpr size_t kMaxValues = 2'000'000;  // of JSON, in all records
// Maximum time by which a record may be ahead of this server's clock.
inline constexpr Millis kMaxAhead = Millis{5} * 60 * 1000;

struct Refused {
  size_t record = 0;
  std::string why;
};

struct Envelope {
  std::string cluster, source, boot;
  int64_t sequence = 0;
  Millis sent_at = 0;
  int64_t lost = 0;              // records that the source dropped before these
  std::vector<Record> records;   // the valid ones
  std::vector<Refused> refused;  // the invalid ones
};

// The node of a source "node/NAME"; "": another source.
std::string_view NodeOfSource(std::string_view source);

// Records of a source "node/NAME" are about this node: its layout, and readings and errors of GPUs.
// Others are refused, so that a stolen node does not report for the cluster.
//
// `now`: the server's time of arrival. If the source's clock is ahead, the difference is subtracted
// from the times of its records, so that none is later than `now`. Kubernetes Events keep their
// times, because other components set them. Error: kInvalid: the envelope as a whole is invalid.
Result<Envelope> ReadEnvelope(std::string_view text, Millis now);
// An envelope that this server wrote itself (see DerivedRecord).
Result<Envelope> ReadDerivedEnvelope(std::string_view text);

}  // namespace nos::telemetry
