// Checks the rule for messages of Events (CONTRIBUTING.md, "Prose"): they begin with a verb.
#pragma once

#include <string>

#include "kube/testing/fake_api.h"

namespace nos::reconcile::testing {

// "Reason: message" of the Events that break the rule, one per line. "Evicting Pod ml/a" and
// "Failed to patch Node gpu-7" keep it.
std::string EventsWithoutVerb(const kube::FakeApi& api);

}  // namespace nos::reconcile::testing
