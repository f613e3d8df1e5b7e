// What is told again as it is known, which is not written down for its own sake. Internal to this
// room.
#pragma once

#include <string>
#include <string_view>

#include "telemetryserver/state.h"

namespace nos::telemetryserver {

// REQUIRES: both are records.
bool SameButTime(const Json& a, const Json& b);
telemetry::Millis ToldAt(const Thing& thing);

void TellAgain(Pod& pod, telemetry::Millis at);
void TellAgain(Node& node, telemetry::Millis at);  // the record of the node
void TellAgain(Thing& thing, telemetry::Millis at);

// What a late record would otherwise replace in what is written down, though it was told again
// since: once more, with the time when it was told last.
void WriteAgain(std::string_view kind, const std::string& key, const Json& body, bool& retold,
                State::Effects& effects);
void WriteLayoutAgain(Node& node, State::Effects& effects);

}  // namespace nos::telemetryserver
