// Kinds of objects by which demand is published (scaling_signal.h), besides pods.
#pragma once

#include "kube/client.h"

namespace nos::controllers {

// Source: cluster-autoscaler, apis/provisioningrequest autoscaling.x-k8s.io/v1.
inline const kube::Resource kProvisioningRequests{"autoscaling.x-k8s.io", "v1",
                                                  "provisioningrequests", "ProvisioningRequest"};
inline const kube::Resource kPodTemplates{"", "v1", "podtemplates", "PodTemplate"};

}  // namespace nos::controllers
