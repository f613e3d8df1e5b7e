// Records repeated without a change, which are normally not written. Internal to this library.
#pragma once

#include <string>
#include <string_view>

#include "telemetryserver/state.h"

namespace nos::telemetryserver {

// REQUIRES: both are records.
bool SameButTime(const Json& a, const Json& b);
telemetry::Millis ToldAt(const Thing& thing);

void Refresh(Pod& pod, telemetry::Millis at);
void Refresh(Node& node, telemetry::Millis at);  // the record of the node
void Refresh(Thing& thing, telemetry::Millis at);

// Writes the current record again with its last report time, because a late record would otherwise
// replace it in history.
void WriteAgain(std::string_view kind, const std::string& key, const Json& body, bool& retold,
                State::Effects& effects);
void WriteLayoutAgain(Node& node, State::Effects& effects);

}  // namespace nos::telemetryserver
