// What an agent finds on its node, put together from driver, kubelet and pods. The pure half of the
// agent.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cluster/annotations.h"
#include "cluster/objects.h"
#include "agent/node_modes.h"
#include "device/actuator.h"
#include "device/backend.h"
#include "device/health.h"
#include "gpu/catalogue.h"
#include "gpu/modes.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"

namespace nos::agent {

// What a pod asks for that wants a GPU without MIG.
inline constexpr const char* kWholeGpu = "nvidia.com/gpu";

struct NodeDevices {
  std::vector<device::GpuInfo> infos;     // all that the driver tells of
  std::vector<device::ObservedGpu> gpus;  // those whose model is known and which can be read
  // Others, which cannot be read now: as they were last read, if ever (KeepUnreadable). Nothing is
  // known of them but that they are there.
  std::vector<device::ObservedGpu> unreadable;
  // Device UUID -> "ns/name" of the pod. A GPU without MIG is a device, too.
  std::map<std::string, std::string> holders;
  std::vector<std::string> problems;  // GPUs left out, and why
  std::map<int, std::string> broken;  // GPU index -> what is wrong with it as a whole
  std::set<std::string> unhealthy;    // UUIDs: nobody new may get them
  // How many devices the kubelet says a pod ("ns/name") holds of a resource, those of GPUs that
  // cannot be read included.
  std::map<std::pair<std::string, std::string>, int64_t> told;
  // UUIDs that some pod may hold: the kubelet does not say which.
  std::set<std::string> doubtful;
  // Pods hold shares of which nobody tells, and that no list has: a former agent has made them, and
  // they take memory of some GPU.
  bool unseen_shares = false;
  // UUIDs of GPUs that are not divided and may be devices as a whole, those of boards without MIG
  // included. None on hybrid nodes, where such are instances.
  std::set<std::string> undivided{};

  // Held for sure or in doubt.
  std::set<std::string> Held() const;
  int64_t Told(const std::string& pod, const std::string& resource) const;
};

struct Holder {
  std::string pod;  // "ns/name"
  std::string uid;  // of the pod; "" when it was not known
};
// By device UUID.
using Holders = std::map<std::string, Holder>;

// How the GPUs of a node are used.
struct Division {
  bool hybrid = false;     // each in its own way
  int time_slices = 0;     // there; 0: none
  std::set<int> no_mig{};  // indexes of GPUs whose MIG mode cannot be switched on
  ResetRule resets = ResetRule::kNever;
  std::set<int> not_reset{};               // and of those that cannot be reset at the moment
  std::vector<gpu::InstancePart> parts{};  // into which instances may be divided there
  // Whether a MIG mode that waits for a reset is taken back when the present one is asked for.
  bool takes_back = false;
};

// Error: kUnavailable when driver or kubelet do not answer. One bad GPU is only a problem.
Result<NodeDevices> Observe(device::Backend& backend, kubelet::PodResources& pod_resources,
                            const gpu::Catalogue& catalogue, const Division& division = {});

// A kubelet that has just started says for a second that nobody holds anything (1.34.2: it answers
// before it has read its pods). So what a pod was seen to hold is held until it is told to hold all
// that it needs, or has ended; and where a pod was admitted and is not told to hold what it asks
// for, all devices of that kind are in doubt. So they are while init containers run that ask for
// more than the others: kubelets do not tell of their devices (1.34,
// pkg/kubelet/apis/podresources/server_v1.go). `seen`: what Recall returned last time; `pods`:
// those bound to the node.
Holders Recall(NodeDevices& devices, const Holders& seen,
               std::span<const std::shared_ptr<const cluster::Pod>> pods);

// GPUs by index as they were last read, and when.
using LastRead = std::map<int, std::pair<device::ObservedGpu, Time>>;

// That a GPU cannot be read does not mean that its instances are gone: fills in what they were.
// They are unhealthy, if they pass for `healthy` not before `patience` has run out. Returns whether
// it has not for some GPU: what cannot be done there may still be done. Takes what is read into
// `last`.
bool KeepUnreadable(NodeDevices& devices, LastRead& last, bool healthy, Duration patience,
                    Time now);

// Notes what the driver has reported of GPUs and instances.
void Mark(NodeDevices& devices, const std::vector<device::HealthCondition>& conditions);

// The instances as the node's status tells them; incomplete ones, those of a profile that the model
// does not have, and broken GPUs are left out. Unhealthy and doubtful ones count as used.
std::vector<cluster::Gpu> ToGpus(const NodeDevices& devices);

// GPUs without MIG that are held as a whole, or may be: indices.
std::set<int> HeldWhole(const NodeDevices& devices);

// "nvidia.com/mig-1g.5gb"; "" for a profile that the model does not have.
std::string ResourceOf(const device::ObservedGpu& gpu, const device::GpuInstance& instance);

// Free instances that must stay because pods bound to the node have not got their devices yet:
// beyond the ones that the targets keep anyway, as many as those pods ask for.
std::set<std::string> NeededByBoundPods(const NodeDevices& devices,
                                        std::span<const device::Target> targets,
                                        std::span<const std::shared_ptr<const cluster::Pod>> pods);

// Bound pods that the kubelet has not admitted yet, "ns/name uid" by the resources they ask for: it
// may give them any free device, or have chosen one and not told so yet.
std::map<std::string, std::set<std::string>> OnTheirWay(
    std::span<const std::shared_ptr<const cluster::Pod>> pods);

// Whether the kubelet counts devices to pods that have ended or are gone.
bool HeldByNobody(const NodeDevices& devices,
                  std::span<const std::shared_ptr<const cluster::Pod>> pods);

// All complete instances but `withdrawn`, in order, unhealthy ones as such.
std::vector<kubelet::OfferedDevice> OfferOf(const NodeDevices& devices,
                                            const std::set<std::string>& withdrawn);

}  // namespace nos::agent
