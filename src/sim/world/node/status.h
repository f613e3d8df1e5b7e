// The objects that a kubelet writes about its node, and values derived from pods. Internal to this
// folder.
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

// Counts of an extended resource: capacity is `all`, allocatable is `healthy`.
struct DeviceCount {
  int all = 0, healthy = 0;
};
// A merge patch for nodes/<name>/status. `devices`: by resource; zero for resources no longer
// offered. `ready_since`: start of the kubelet.
Json NodeStatusPatch(const NodeSpec& spec, const std::map<std::string, DeviceCount>& devices,
                     Time now, Time ready_since);

// Duration of a kubelet's Lease, and its renewal interval (kubernetes pkg/kubelet: a quarter).
inline constexpr Duration kLeaseDuration = std::chrono::seconds(40);
inline constexpr Duration kLeaseRenewal = kLeaseDuration / 4;
// The node's Lease in the namespace kube-node-lease, owned by the node with this uid.
Json NodeLease(const std::string& node, std::string_view node_uid, Time now);
// A merge patch that renews the Lease.
Json LeaseRenewal(Time now);

// An address 10.244.x.y.
std::string PodIp(uint32_t number);

// How long the pod runs (specs.h); nullopt: it never ends. An unreadable annotation counts as
// absent.
std::optional<Duration> RunTime(const cluster::Pod& pod);
// Value of kEnds; "": none.
std::string EndsOf(const cluster::Pod& pod);

// Init containers that end before the others start, and their total run time (specs.h).
std::vector<std::string> EndingContainers(const cluster::Pod& pod);
Duration InitTime(const cluster::Pod& pod);

// Assigns the devices to the containers that request the resource, in order. If ending init
// containers request more than that, the first of them gets the rest.
void AssignToContainers(const cluster::Pod& pod, const std::string& resource,
                        const std::vector<std::string>& device_ids,
                        std::vector<kubelet::DeviceAssignment>& assignments);

}  // namespace nos::sim
