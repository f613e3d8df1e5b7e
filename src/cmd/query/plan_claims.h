// Finds the nodes on which the schedulers would place pending pods with ResourceClaims, one after
// the other, for nos plan. The planner partitions no GPU for them, as their driver creates what is
// allocated.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cmd/telemetry/read_cluster.h"
#include "codec/json.h"
#include "gpu/catalogue.h"
#include "planning/plan.h"
#include "scheduling/reasons.h"

namespace nos::cmd {

struct ClaimedPod {
  std::shared_ptr<const cluster::Pod> pod;
  std::string node;  // "": none
  struct Device {
    std::string driver, pool, device;
  };
  std::vector<Device> devices;  // of all its claims; empty without a node
  // Without a node.
  std::vector<scheduling::Reason> reasons;
  std::string remedy_code, remedy;
};

// The pods with claims among those that schedulers would try now, by priority and age. The first
// pods without a node have a remedy. `out_of_time`: then the other pods are not tried.
//
// The pods that `plan` places have their nodes already. Pods that it leaves without a node and that
// ask for a resource which a DeviceClass serves are tried on the nodes that serve it by a claim,
// but for members of gangs; those that get a node there are moved from the plan into the result.
std::vector<ClaimedPod> PlaceClaims(const ClusterObjects& input, const gpu::Catalogue& catalogue,
                                    const std::function<bool()>& out_of_time, planning::Plan& plan);

JsonArray ClaimsToJson(const std::vector<ClaimedPod>& pods);
// "": there are none.
std::string ClaimsToText(const std::vector<ClaimedPod>& pods, size_t width);

}  // namespace nos::cmd
