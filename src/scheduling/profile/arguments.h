// Reads the `args` of a pluginConfig, with kube-scheduler's defaults and validation. Problems are
// reported through `args`, which is an absent value if there are no arguments.
//
// Source: k8s.io/kube-scheduler config/v1, k8s.io/kubernetes pkg/scheduler/apis/config/validation.
#pragma once

#include "scheduling/framework/config_value.h"
#include "scheduling/plugins/capacity_scheduling/plugin.h"
#include "scheduling/plugins/inter_pod_affinity/plugin.h"
#include "scheduling/plugins/node_affinity/plugin.h"
#include "scheduling/plugins/node_resources_balanced_allocation/plugin.h"
#include "scheduling/plugins/node_resources_fit/plugin.h"
#include "scheduling/plugins/pod_topology_spread/plugin.h"
#include "scheduling/preemption.h"

namespace nos::scheduling {

FitOptions ReadFitArguments(const ConfigValue& args);
BalanceOptions ReadBalanceArguments(const ConfigValue& args);
NodeAffinityOptions ReadNodeAffinityArguments(const ConfigValue& args);
InterPodAffinityOptions ReadInterPodAffinityArguments(const ConfigValue& args);
PodTopologySpreadOptions ReadTopologySpreadArguments(const ConfigValue& args);
// Returns bindTimeoutSeconds. Rejects `shape`, like kube-scheduler without the feature gate
// StorageCapacityScoring.
Duration ReadVolumeBindingArguments(const ConfigValue& args);
// Validates filterTimeout, which has no effect because this plugin allocates nothing.
// The time for binding conditions. A filter's time is bounded by the number of its steps instead.
Duration ReadDynamicResourcesArguments(const ConfigValue& args);
PreemptionOptions ReadPreemptionArguments(const ConfigValue& args);
// nvidiaGpuResourceMemoryGB, as in the Go implementation of nos, and the rules of reclaim, which
// are nos's own.
QuotaOptions ReadQuotaArguments(const ConfigValue& args);

}  // namespace nos::scheduling
