// Rules of history that all tables of a state share: records repeated without a change, which are
// normally not written, and records that arrive after their object was removed. Internal to this
// library.
#pragma once

#include <string>
#include <string_view>

#include "telemetryserver/state/objects.h"
#include "telemetryserver/state/tombstones.h"

namespace nos::telemetryserver {

// REQUIRES: both are records.
bool SameButTime(const Json& a, const Json& b);
telemetry::Millis ReportedAt(const Thing& thing);

void Refresh(Pod& pod, telemetry::Millis at);
void Refresh(Node& node, telemetry::Millis at);  // the record of the node
void Refresh(Thing& thing, telemetry::Millis at);

// Writes the current record again with its last report time, because a late record would otherwise
// replace it in history.
void WriteAgain(std::string_view kind, const std::string& key, const Json& body, bool& repeated,
                Effects& effects);
void WriteLayoutAgain(Node& node, Effects& effects);

// The record of a removal.
Json RemovedAt(telemetry::Millis at, const std::string& what, const std::string& key);
// True if a record of an unknown object is older than the object's removal. It is then written for
// history only, together with the removal.
bool IsOver(const Tombstones& gone, const telemetry::Record& record, const std::string& key,
            Effects& effects);

}  // namespace nos::telemetryserver
