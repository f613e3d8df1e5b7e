// What a kubelet writes about its node, and small facts it derives from pods. Not for use outside
// this folder.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cluster/objects.h"
#include "codec/json.h"
#include "kubelet/pod_resources.h"
#include "sim/specs.h"

namespace nos::sim {

// Of an extended resource: capacity counts all, allocatable those that can be used.
struct DeviceCount {
  int all = 0, healthy = 0;
};
// A merge patch for nodes/<name>/status. `devices`: by resource; none of one that is no longer
// offered. `ready_since`: when the kubelet came up.
Json NodeStatusPatch(const NodeSpec& spec, const std::map<std::string, DeviceCount>& devices,
                     Time now, Time ready_since);

// How long a kubelet's Lease holds, and how often it is renewed (kubernetes pkg/kubelet: a
// quarter).
inline constexpr Duration kLeaseDuration = std::chrono::seconds(40);
inline constexpr Duration kLeaseRenewal = kLeaseDuration / 4;
// The node's Lease in the namespace kube-node-lease, to go with the node of this uid.
Json NodeLease(const std::string& node, std::string_view node_uid, Time now);
// A merge patch that renews it.
Json LeaseRenewal(Time now);

// 10.244.x.y.
std::string PodIp(uint32_t number);

// How long the pod runs (specs.h); none: for ever. An unreadable annotation counts as none.
std::optional<Duration> RunTime(const cluster::Pod& pod);

// Init containers that end before the others start, and how long they run together (specs.h).
std::vector<std::string> EndingContainers(const cluster::Pod& pod);
Duration InitTime(const cluster::Pod& pod);

// Hands the devices to the containers that ask for the resource, in order; what init containers
// that end ask beyond that goes to the first of them.
void AssignToContainers(const cluster::Pod& pod, const std::string& resource,
                        const std::vector<std::string>& device_ids,
                        std::vector<kubelet::DeviceAssignment>& assignments);

}  // namespace nos::sim
