// Recent decisions of nos in one cluster, each with the time when it was made first.
//
//   decisions.Add(record, id, version.Next());
//   for (const auto& [version, decision] : decisions.recent()) ...  // "made": 1763760000000
//
// A decision is reported again while it lasts; "made" stays the same. Pure: no input or output.
// Bounded: the last kMaxRecent reports. Internal to this library.
#pragma once

#include <string>

#include "telemetryserver/state/objects.h"

namespace nos::telemetryserver {

class DecisionLog {
 public:
  // Returns the decision with "made". REQUIRES: `id` is the key of the record.
  const Json& Add(const telemetry::Record& record, const std::string& id, uint64_t version);
  const Recent<Json>& recent() const { return recent_; }

 private:
  Recent<Json> recent_;
};

}  // namespace nos::telemetryserver
