// Records about several namespaces, for those who see some of them: made anew from what is known of
// their fields, so that nothing goes along that a reporter put beside. Pure.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "codec/json.h"
#include "telemetryserver/views.h"

namespace nos::telemetryserver {

// A decision with the pods of the scope alone; nothing: it has none. Its summary and its reason are
// told where they name neither `namespaces` beyond the scope nor pods in them.
std::optional<Json> NarrowedDecision(const Json& decision, const Scope& scope,
                                     const std::set<std::string>& namespaces);
// A quota that is the scope's (QuotaIsIn): of its namespaces those of the scope, and the totals of
// all, by which it is decided what theirs may use.
Json NarrowedQuota(const Json& quota, const Scope& scope);

}  // namespace nos::telemetryserver
