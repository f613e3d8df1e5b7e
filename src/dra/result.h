// status.allocation of a ResourceClaim as JSON.
#pragma once

#include "codec/json.h"
#include "dra/objects.h"

namespace nos::dra {

// In the form of resource.k8s.io/v1; empty fields are left out.
Json WriteAllocation(const Allocation& allocation);

}  // namespace nos::dra
