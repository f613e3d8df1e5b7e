// Claims of scenarios: operations on objects of resource.k8s.io, and what is observed of them.
// Internal to this folder.
#pragma once

#include <string>
#include <vector>

#include "kube/client.h"
#include "sim/scenarios/steps.h"
#include "sim/world.h"

namespace nos::sim {

// Error: that of the API server.
Status Perform(kube::Client& client, const OnClaims& operation);

// Empty if the expectation holds; else the state of the claims.
std::string WhyNot(World& world, kube::Client& client, const ExpectClaim& expect);

}  // namespace nos::sim
