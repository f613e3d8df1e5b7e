// Reads what a pluginConfig tells a plugin (its `args`), with kube-scheduler's defaults and rules.
// What is wrong is told through the value, which is absent when there are no arguments.
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
// bindTimeoutSeconds; `shape` is refused, as where the gate StorageCapacityScoring is off.
Duration ReadVolumeBindingArguments(const ConfigValue& args);
// filterTimeout is checked and has no effect: nothing is allocated here that could take time.
void ReadDynamicResourcesArguments(const ConfigValue& args);
PreemptionOptions ReadPreemptionArguments(const ConfigValue& args);
// nvidiaGpuResourceMemoryGB, as in the Go system, and reclaimFromPodsWithoutQuota.
QuotaOptions ReadQuotaArguments(const ConfigValue& args);

}  // namespace nos::scheduling
