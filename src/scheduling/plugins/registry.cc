#include "scheduling/plugins/registry.h"

#include "scheduling/plugins/dynamic_resources/dynamic_resources.h"
#include "scheduling/plugins/gpu_packing/gpu_packing.h"
#include "scheduling/plugins/inter_pod_affinity/inter_pod_affinity.h"
#include "scheduling/plugins/node_affinity/node_affinity.h"
#include "scheduling/plugins/node_name/node_name.h"
#include "scheduling/plugins/node_resources_fit/node_resources_fit.h"
#include "scheduling/plugins/node_unschedulable/node_unschedulable.h"
#include "scheduling/plugins/node_volume_limits/node_volume_limits.h"
#include "scheduling/plugins/pod_topology_spread/pod_topology_spread.h"
#include "scheduling/plugins/taint_toleration/taint_toleration.h"
#include "scheduling/plugins/volume_binding/volume_binding.h"
#include "scheduling/plugins/volume_restrictions/volume_restrictions.h"
#include "scheduling/plugins/volume_zone/volume_zone.h"

namespace nos::scheduling {
namespace {

template <typename T>
std::unique_ptr<const Plugin> Make() {
  return std::make_unique<const T>();
}

// Order and weights are those of kube-scheduler's default profile, but for GpuPacking. With its
// weight a preference that somebody stated in full (affinity 2 x 100) outweighs a whole GPU's worth
// lost (2 x 100 hundredths), and no less. NodeResourcesFit has no say among nodes with GPUs.
constexpr RegisteredPlugin kPlugins[] = {
    {&Make<NodeUnschedulable>, 0}, {&Make<NodeName>, 0},         {&Make<TaintToleration>, 3},
    {&Make<NodeAffinity>, 2},      {&Make<NodeResourcesFit>, 1}, {&Make<VolumeRestrictions>, 0},
    {&Make<NodeVolumeLimits>, 0},  {&Make<VolumeBinding>, 0},    {&Make<VolumeZone>, 0},
    {&Make<PodTopologySpread>, 2}, {&Make<InterPodAffinity>, 2}, {&Make<DynamicResources>, 0},
    {&Make<GpuPacking>, 2},
};

}  // namespace

std::span<const RegisteredPlugin> RegisteredPlugins() { return kPlugins; }

}  // namespace nos::scheduling
