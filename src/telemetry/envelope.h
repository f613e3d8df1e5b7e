// What a reporter sends at once: a numbered batch of records of one source.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "telemetry/records.h"

namespace nos::telemetry {

inline constexpr size_t kMostEnvelopeBytes = size_t{32} << 20;  // of text
inline constexpr size_t kMostRecords = 100'000;
// How far ahead of this server's clock a record's time may be.
inline constexpr Millis kMostAhead = Millis{5} * 60 * 1000;

struct Refused {
  size_t record = 0;
  std::string why;
};

struct Envelope {
  std::string cluster, source, boot;
  int64_t sequence = 0;
  Millis sent_at = 0;
  int64_t lost = 0;              // records that the source had to drop before these
  std::vector<Record> records;   // those that can be read
  std::vector<Refused> refused;  // the others
};

// `now`: this server's time when it came. What the source's clock is ahead of it is taken off the
// records' times (not off those of Events of Kubernetes, which others made): none is later than
// `now`. Error: kInvalid: it cannot be read as a whole.
Result<Envelope> ReadEnvelope(std::string_view text, Millis now);
// Of this server's own making (see DerivedRecord).
Result<Envelope> ReadDerivedEnvelope(std::string_view text);

}  // namespace nos::telemetry
