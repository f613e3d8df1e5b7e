// Shared by the tests of controllers: a runner with a fake API server and a manual clock.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "kube/testing/fake_api.h"
#include "reconcile/runner.h"

namespace nos::reconcile::testing {

// Runs the runner for this time. Returns false if it never becomes idle.
bool RunFor(Runner& runner, ManualClock& clock, Duration time);

// "Reason: message" of every Event, one per line.
std::string EventsOf(const kube::FakeApi& api);

// The number of Events with this reason.
int CountEvents(const kube::FakeApi& api, std::string_view reason);

// The value of the node's annotation "nos.nebuly.com/<key>", or "".
std::string NodeAnnotation(const kube::FakeApi& api, const std::string& node,
                           const std::string& key);

// Creates a pod "ml/<name>" on the node that requests one slice.
void PutBoundPod(kube::FakeApi& api, const std::string& name, const std::string& node,
                 const std::string& profile, std::string_view phase);

// Sets the node's allocatable for these resources, as its kubelet does.
void PutAllocatable(kube::FakeApi& api, const std::string& node,
                    const std::map<std::string, int>& counts);

}  // namespace nos::reconcile::testing
