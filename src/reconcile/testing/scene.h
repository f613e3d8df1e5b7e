// What tests of controllers share: a runner before a fake API server, under a clock they turn.
#pragma once

#include <map>
#include <string>

#include "base/clock.h"
#include "reconcile/runner.h"
#include "kube/testing/fake_api.h"

namespace nos::reconcile::testing {

// Lets the runner do all it has to do for this long. False: it does not come to rest.
bool RunFor(Runner& runner, ManualClock& clock, Duration time);

// "Reason: message" of every Event, a line each.
std::string EventsOf(const kube::FakeApi& api);

// The value of the node's annotation "nos.nebuly.com/<key>", or "".
std::string NodeAnnotation(const kube::FakeApi& api, const std::string& node,
                           const std::string& key);

// A pod "ml/<name>" on the node that asks for one slice.
void PutBoundPod(kube::FakeApi& api, const std::string& name, const std::string& node,
                 const std::string& profile, std::string_view phase);

// The node counts so many of these resources, as its kubelet writes it.
void PutAllocatable(kube::FakeApi& api, const std::string& node,
                    const std::map<std::string, int>& counts);

}  // namespace nos::reconcile::testing
