#include "telemetryserver/state/decisions.h"

#include <algorithm>
#include <utility>

namespace nos::telemetryserver {

// "made" comes from the reporter, or from an earlier report, or is the time of the first report.
const Json& DecisionLog::Add(const telemetry::Record& record, const std::string& id,
                             uint64_t version) {
  Json decision = record.body;
  telemetry::Millis made = telemetry::IntegerOr(decision, "made", 0);
  if (made <= 0 || made > record.at) {
    made = record.at;
    for (const auto& [other, known] : recent_) {
      if (FindString(known, "id") == id)
        made = std::min(made, telemetry::IntegerOr(known, "made", made));
    }
  }
  decision.get_object()["made"] = made;
  Remember(recent_, version, std::move(decision));
  return recent_.back().second;
}

}  // namespace nos::telemetryserver
