// The devices of a node, merged from driver, kubelet and pods. Apart from Observe, the functions
// are pure.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/node_modes.h"
#include "base/clock.h"
#include "cluster/annotations.h"
#include "cluster/objects.h"
#include "device/actuator.h"
#include "device/backend.h"
#include "device/health.h"
#include "gpu/catalogue.h"
#include "gpu/modes.h"
#include "kubelet/device_plugin.h"
#include "kubelet/pod_resources.h"

namespace nos::agent {

// Resource that pods request to get a GPU without MIG.
inline constexpr const char* kWholeGpu = "nvidia.com/gpu";

struct NodeDevices {
  std::vector<device::GpuInfo> infos;     // all GPUs that the driver reports
  std::vector<device::ObservedGpu> gpus;  // GPUs with a known model that can be read
  // The other GPUs, which currently cannot be read, in their last known state if any
  // (KeepUnreadable). It is only known that they exist.
  std::vector<device::ObservedGpu> unreadable;
  // Device UUID -> "ns/name" of the pod. A GPU without MIG is a device, too.
  std::map<std::string, std::string> holders;
  std::vector<std::string> problems;  // GPUs that were left out, with the reason
  std::map<int, std::string> broken;  // GPU index -> problem of the whole GPU
  std::set<std::string> unhealthy;    // UUIDs that no new pod may get
  // Number of devices of a resource that a pod ("ns/name") holds according to the kubelet,
  // including those of GPUs that cannot be read.
  std::map<std::pair<std::string, std::string>, int64_t> listed;
  // UUIDs that a pod may hold although the kubelet does not list them.
  std::set<std::string> doubtful;
  // True if pods hold shares that neither the kubelet nor the agent lists: an earlier agent created
  // them, and they use memory of some GPU.
  bool unseen_shares = false;
  // UUIDs of GPUs that are not partitioned and may be devices as a whole, including products
  // without MIG. Empty on hybrid nodes, where whole GPUs are instances.
  std::set<std::string> undivided{};
  // UUIDs of GPUs without instances that could be given as a whole, and count in the node's
  // capacity (SharingSettings::shows_unused).
  std::set<std::string> unused{};
  // Device UUID -> UID of the cgroup of the pod that holds it; "": not known.
  std::map<std::string, std::string> users{};
  // UUIDs of devices whose pod was deleted before it had ended. The kubelet takes them for free.
  std::set<std::string> departed{};

  // Devices that are held, or doubtful.
  std::set<std::string> Held() const;
  int64_t Listed(const std::string& pod, const std::string& resource) const;
};

// How the GPUs of a node are partitioned.
struct SharingSettings {
  bool hybrid = false;  // each GPU has its own sharing mode
  bool shares = true;   // if hybrid: that may be MPS
  // If hybrid: GPUs without instances count in the node's capacity, as whole GPUs.
  bool shows_unused = false;
  int time_slices = 0;     // number per GPU; 0: none
  std::set<int> no_mig{};  // indices of GPUs on which MIG mode cannot be enabled
  ResetRule resets = ResetRule::kNever;
  std::set<int> not_reset{};               // indices of GPUs that currently cannot be reset
  std::vector<gpu::InstancePart> parts{};  // parts into which instances may be divided
  // True if a pending MIG mode is cancelled when the present mode is requested.
  bool takes_back = false;
  std::string reset_program{};  // resets GPUs: a path, or a name in $PATH
};

// Error: kUnavailable if driver or kubelet do not answer. A single bad GPU only adds a problem.
// `also`: ids of devices in memory that may be in use, beside those that the kubelet lists.
Result<NodeDevices> Observe(device::Backend& backend, kubelet::PodResources& pod_resources,
                            const gpu::Catalogue& catalogue, const SharingSettings& settings = {},
                            std::span<const std::string> also = {});

// Includes GPUs that currently cannot be read.
std::vector<const device::ObservedGpu*> AllGpus(const NodeDevices& devices);

// By UUID: complete instances, and GPUs without MIG.
std::map<std::string, std::string> ResourcesOf(const NodeDevices& devices);

// Pods may request any number. Larger numbers than a node can have are clamped.
int64_t CountOf(const Quantity& amount);

// True if a kubelet has admitted the pod and given it its devices: only kubelets write this
// condition, and they write it with the first status.
bool IsAdmitted(const cluster::Pod& pod);

// GPUs by index as last read, and the time.
using LastRead = std::map<int, std::pair<device::ObservedGpu, Time>>;

// A GPU that cannot be read still has its instances: fills in its last known ones. They count as
// unhealthy, but if `healthy` is true only after `patience` has passed. Returns true if `patience`
// has not passed for a GPU: operations there may still become possible. Records what was read in
// `last`.
bool KeepUnreadable(NodeDevices& devices, LastRead& last, bool healthy, Duration patience,
                    Time now);

// Applies the health conditions that the driver has reported for GPUs and instances.
void Mark(NodeDevices& devices, const std::vector<device::HealthCondition>& conditions);

// The instances as the node's status lists them. Leaves out incomplete instances, profiles that the
// model does not have, and broken GPUs. Unhealthy and doubtful instances count as used.
std::vector<cluster::Gpu> ToGpus(const NodeDevices& devices);

// Indices of GPUs without MIG that are held as a whole, or may be.
std::set<int> HeldWhole(const NodeDevices& devices);

// "nvidia.com/mig-1g.5gb"; "" if the model does not have the profile.
std::string ResourceOf(const device::ObservedGpu& gpu, const device::GpuInstance& instance);

// Free instances that must stay because pods bound to the node have not got their devices yet: as
// many as these pods request, beyond the instances that the targets keep.
std::set<std::string> NeededByBoundPods(const NodeDevices& devices,
                                        std::span<const device::Target> targets,
                                        std::span<const std::shared_ptr<const cluster::Pod>> pods);

// Bound pods that the kubelet has not admitted yet ("ns/name uid"), by requested resource. The
// kubelet may give them any free device, or has already chosen one and does not list it yet.
std::map<std::string, std::set<std::string>> PodsPendingAdmission(
    std::span<const std::shared_ptr<const cluster::Pod>> pods);

// True if the kubelet still assigns devices to pods that have ended or do not exist.
bool HeldByNobody(const NodeDevices& devices,
                  std::span<const std::shared_ptr<const cluster::Pod>> pods);

// All complete instances except `withdrawn`, sorted; unhealthy ones are marked as such, and unused
// GPUs too: the kubelet counts them, but gives them to no pod.
std::vector<kubelet::OfferedDevice> OfferOf(const NodeDevices& devices,
                                            const std::set<std::string>& withdrawn);

}  // namespace nos::agent
