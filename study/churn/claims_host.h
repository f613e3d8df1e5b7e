// GPUs as NVIDIA's driver publishes them for Dynamic Resource Allocation, and requests as claims.
#pragma once

#include <memory>

#include "study/churn/host.h"

namespace nos::study {

// Nodes of options.node_gpus GPUs, each with a device for every placement and one for itself.
// Policies: kFirstFit takes the first node that fits, and there the devices in kube-scheduler's
// order; kNos ranks devices and scores nodes as the scheduler's DynamicResources does.
std::unique_ptr<Host> MakeClaimsHost(const ChurnOptions& options, const Mix& mix);

}  // namespace nos::study
