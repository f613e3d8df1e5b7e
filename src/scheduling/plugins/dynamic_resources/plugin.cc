#include "scheduling/plugins/dynamic_resources/plugin.h"

namespace nos::scheduling {

Verdict DynamicResources::PreEnqueue(const cluster::Pod& pod) const {
  if (!pod.claims_devices) return Verdict::Fits();
  return Verdict::Unresolvable(
      codes::kResourceClaims,
      "nos scheduler does not allocate resource claims (spec.resourceClaims); set "
      "spec.schedulerName: default-scheduler, so that kube-scheduler places this pod");
}

}  // namespace nos::scheduling
