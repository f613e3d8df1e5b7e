// Which pod holds which device, while the kubelet does not list it. Pure functions.
//
//   holders = RestoreHolders(devices, holders, pods, departed, now);   // each observation
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "agent/node/devices.h"
#include "base/clock.h"
#include "cluster/objects.h"
#include "gpu/catalogue.h"

namespace nos::agent {

constexpr Duration kDefaultGracePeriod = std::chrono::seconds(30);  // the API server's default

struct Holder {
  std::string pod;  // "ns/name"
  std::string uid;  // of the pod; "" if unknown
  Time missing{};   // since when the kubelet does not list the device; {}: it lists it
  // terminationGracePeriodSeconds; the API server's default if the pod's object was never seen.
  Duration grace = kDefaultGracePeriod;
  std::string cgroup{};  // UID of the pod's cgroup: that of a static pod differs from `uid`
  // From the node's status. Another pod may have the name by now.
  bool reported = false;
  // Kubelets do not list devices of init containers: the pod's may have this one.
  bool assumed = false;
};
// By device UUID.
using Holders = std::map<std::string, Holder>;

// Facts about pods that the API server does not have any more.
struct DepartedPods {
  // uid -> "ns/name": the kubelet had reported their end before they were deleted.
  std::map<std::string, std::string> ended{};
  // The result of kubelet::PodCgroups::Read; none: the cgroups cannot be seen.
  std::optional<std::map<std::string, bool>> cgroups{};
};

// Completes the kubelet's list of holders with what was seen before. A kubelet that has just
// started reports for about a second that no pod holds a device (1.34.2: it answers before it has
// read its pods). A device that a pod was seen to hold therefore stays held until the kubelet lists
// all devices of the pod, or the pod has ended. If a pod is admitted and the kubelet does not list
// all its devices, all devices of that resource are doubtful. They also are while init containers
// run that request more than the other containers, because kubelets do not list devices of init
// containers (1.34, pkg/kubelet/apis/podresources/server_v1.go). If such a pod is deleted before it
// has ended, each device that it may have counts as its own.
//
// A pod that was deleted before it ended, with force for example, keeps its devices too: its
// containers run for up to its grace period, although the kubelet lists the devices as free at once
// (1.34.2, pkg/kubelet/kubelet_pods.go, GetActivePods). They stay held while a process is in the
// pod's cgroup, or until the grace period is over, and are free once the cgroup is gone. The same
// holds for a pod that was deleted before the API server's watch had shown it: only the kubelet
// named it.
// `seen`: the last result of RestoreHolders; `pods`: the pods bound to the node.
Holders RestoreHolders(NodeDevices& devices, const Holders& seen,
                       std::span<const std::shared_ptr<const cluster::Pod>> pods,
                       const DepartedPods& departed, Time now);

// The holders of devices that the node's status calls used: for an agent that has just started, in
// place of what it has seen.
Holders ReportedHolders(const cluster::Node& node, const NodeDevices& devices,
                        const gpu::Catalogue& catalogue);

// True if a pod that is not running according to `pods` may have devices.
bool HasDeparted(const Holders& seen, std::span<const std::shared_ptr<const cluster::Pod>> pods);

}  // namespace nos::agent
