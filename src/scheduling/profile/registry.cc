#include "scheduling/registry.h"

#include "scheduling/plugins/capacity_scheduling/plugin.h"
#include "scheduling/plugins/dynamic_resources/plugin.h"
#include "scheduling/plugins/gpu_packing/plugin.h"
#include "scheduling/plugins/gpu_partitioning/plugin.h"
#include "scheduling/plugins/image_locality/plugin.h"
#include "scheduling/plugins/inter_pod_affinity/plugin.h"
#include "scheduling/plugins/node_name/plugin.h"
#include "scheduling/plugins/node_ports/plugin.h"
#include "scheduling/plugins/node_unschedulable/plugin.h"
#include "scheduling/plugins/node_volume_limits/plugin.h"
#include "scheduling/plugins/pod_topology_spread/plugin.h"
#include "scheduling/plugins/scheduling_gates/plugin.h"
#include "scheduling/plugins/taint_toleration/plugin.h"
#include "scheduling/plugins/volume_binding/plugin.h"
#include "scheduling/plugins/volume_restrictions/plugin.h"
#include "scheduling/plugins/volume_zone/plugin.h"
#include "scheduling/profile/arguments.h"

namespace nos::scheduling {
namespace {

using Made = std::unique_ptr<const Plugin>;

template <typename T>
Made Make(const ConfigValue&, const ProfileTraits&) {
  return std::make_unique<const T>();
}
template <typename T, auto ReadArguments>
Made MakeWith(const ConfigValue& args, const ProfileTraits&) {
  return std::make_unique<const T>(ReadArguments(args));
}
Made MakeDynamicResources(const ConfigValue& args, const ProfileTraits&) {
  return std::make_unique<const DynamicResources>(ReadDynamicResourcesArguments(args));
}
Made MakeFit(const ConfigValue& args, const ProfileTraits& traits) {
  FitOptions options = ReadFitArguments(args);
  options.leaves_gpus = traits.packs_gpus;
  options.leaves_slices = traits.partitions_gpus;
  return std::make_unique<const NodeResourcesFit>(options);
}
template <typename T, auto ReadArguments>
Made MakeBesideGpuPacking(const ConfigValue& args, const ProfileTraits& traits) {
  auto options = ReadArguments(args);
  options.leaves_gpus = traits.packs_gpus;
  return std::make_unique<const T>(options);
}

// Order and weights are those of kube-scheduler's default profile, except for GpuPacking and
// DynamicResources, which weighs losses of GPUs alike. With GpuPacking's weight, a preference with
// full score (affinity 2 x 100) outweighs the loss of one whole GPU (2 x 100 hundredths), but no
// more. With GpuPacking enabled, scores by free resources do not rank nodes with GPUs.
constexpr RegisteredPlugin kPlugins[] = {
    {"SchedulingGates", 0, &Make<SchedulingGates>},
    {"NodeUnschedulable", 0, &Make<NodeUnschedulable>},
    {"NodeName", 0, &Make<NodeName>},
    {"TaintToleration", 3, &Make<TaintToleration>},
    {"NodeAffinity", 2, &MakeWith<NodeAffinity, &ReadNodeAffinityArguments>, true},
    {"NodePorts", 0, &Make<NodePorts>},
    {"NodeResourcesFit", 1, &MakeFit, true},
    {"VolumeRestrictions", 0, &Make<VolumeRestrictions>},
    {"NodeVolumeLimits", 0, &Make<NodeVolumeLimits>},
    {"VolumeBinding", 0, &MakeWith<VolumeBinding, &ReadVolumeBindingArguments>, true},
    {"VolumeZone", 0, &Make<VolumeZone>},
    {"PodTopologySpread", 2, &MakeWith<PodTopologySpread, &ReadTopologySpreadArguments>, true},
    {"InterPodAffinity", 2, &MakeWith<InterPodAffinity, &ReadInterPodAffinityArguments>, true},
    {"DynamicResources", 2, &MakeDynamicResources, true},
    {"NodeResourcesBalancedAllocation", 1,
     &MakeBesideGpuPacking<NodeResourcesBalancedAllocation, &ReadBalanceArguments>, true},
    {"ImageLocality", 1, &Make<ImageLocality>},
    {"CapacityScheduling", 0, &MakeWith<CapacityScheduling, &ReadQuotaArguments>, true, true},
    {"GpuPacking", 2, &Make<GpuPacking>, false, true},
    {"GpuPartitioning", 0, &Make<GpuPartitioning>, false, true, true, "GpuCutting"},
};

}  // namespace

std::span<const RegisteredPlugin> RegisteredPlugins() { return kPlugins; }

}  // namespace nos::scheduling
