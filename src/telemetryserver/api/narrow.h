// Narrows records about several namespaces to the scope of a reader. The result is built from known
// fields only, so that no other field of a reporter's record leaks. Pure functions.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "codec/json.h"
#include "telemetryserver/views.h"

namespace nos::telemetryserver {

// A decision with only the pods of the scope; nullopt: it has none. Summary and reason are included
// only if they name neither `namespaces` outside the scope nor pods in them. kHiddenPods and
// kHiddenVictims (stories.h) are true where pods are left out, which are not counted.
std::optional<Json> NarrowedDecision(const Json& decision, const Scope& scope,
                                     const std::set<std::string>& namespaces);
// A quota in the scope (QuotaIsIn): its namespaces limited to the scope, and the totals of all
// namespaces, because they limit what the namespaces of the scope may use.
Json NarrowedQuota(const Json& quota, const Scope& scope);

}  // namespace nos::telemetryserver
