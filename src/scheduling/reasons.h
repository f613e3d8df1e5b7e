// The vocabulary of reasons: why a pod has no node, as a code to search for and a sentence.
//
//   return Verdict::Unresolvable(codes::kTainted, "node(s) had untolerated taint(s)");
//   reasons.push_back(GangIncomplete("pod group ml/train", 2, 3));
//
// All codes are here (script/codes checks it). A code names a kind of situation: its sentence is in
// the one place that finds the situation, or here if several components do. Messages of filters are
// kube-scheduler's.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cluster/objects.h"
#include "cluster/resources.h"
#include "gpu/catalogue.h"

namespace nos::scheduling {

struct Reason {
  std::string code;     // one of `codes`
  std::string message;  // one sentence for a person
  int nodes = 0;        // number of nodes it applies to; 0: not about nodes, or not counted
};

namespace codes {

// Filters, about one node.
inline constexpr const char *kInsufficientResource = "InsufficientResource",
                            *kTooManyPods = "TooManyPods", *kTainted = "Tainted",
                            *kNodeUnschedulable = "NodeUnschedulable",
                            *kNodeNameMismatch = "NodeNameMismatch",
                            *kNodeAffinityMismatch = "NodeAffinityMismatch",
                            *kAddedAffinityMismatch = "AddedAffinityMismatch",
                            *kPodAffinityMismatch = "PodAffinityMismatch",
                            *kPodAntiAffinity = "PodAntiAffinity",
                            *kExistingPodsAntiAffinity = "ExistingPodsAntiAffinity",
                            *kTopologySpread = "TopologySpread",
                            *kTopologyLabelMissing = "TopologyLabelMissing",
                            *kPortTaken = "PortTaken",
                            *kGpusBeingPartitioned = "GpusBeingPartitioned",
                            *kNodeNotFound = "NodeNotFound", *kNodeUnknown = "NodeUnknown";
// Filters, about volumes.
inline constexpr const char *kClaimUnbound = "ClaimUnbound", *kClaimNotFound = "ClaimNotFound",
                            *kClaimLost = "ClaimLost", *kClaimDeleted = "ClaimDeleted",
                            *kClaimOfAnother = "ClaimOfAnother",
                            *kStorageClassNotFound = "StorageClassNotFound",
                            *kNoVolumeToBind = "NoVolumeToBind",
                            *kNotEnoughStorage = "NotEnoughStorage",
                            *kVolumeOutOfReach = "VolumeOutOfReach",
                            *kVolumeNotFound = "VolumeNotFound",
                            *kVolumeZoneConflict = "VolumeZoneConflict",
                            *kTooManyVolumes = "TooManyVolumes", *kDiskConflict = "DiskConflict",
                            *kReadWriteOncePodConflict = "ReadWriteOncePodConflict",
                            *kWaitsForVolumes = "WaitsForVolumes",
                            *kVolumeBindingFailed = "VolumeBindingFailed",
                            *kVolumeBindingTimeout = "VolumeBindingTimeout";
// Filters, about devices that the pod claims (resource.k8s.io).
inline constexpr const char *kResourceClaimNotCreated = "ResourceClaimNotCreated",
                            *kResourceClaimNotFound = "ResourceClaimNotFound",
                            *kResourceClaimDeleted = "ResourceClaimDeleted",
                            *kResourceClaimInUse = "ResourceClaimInUse",
                            *kResourceClaimOfAnother = "ResourceClaimOfAnother",
                            *kInsufficientDevices = "InsufficientDevices",
                            *kDevicesElsewhere = "DevicesElsewhere",
                            *kDevicesRefused = "DevicesRefused", *kDevicesFailed = "DevicesFailed",
                            *kWaitsForDevices = "WaitsForDevices",
                            *kDeviceBindingTimeout = "DeviceBindingTimeout";
// The scheduler, while the GPUs of the chosen node are being partitioned.
inline constexpr const char *kPartitioningGpus = "PartitioningGpus",
                            *kPartitioningFailed = "PartitioningFailed";
// Any component, about the pod whatever the node.
inline constexpr const char *kSchedulingGated = "SchedulingGated", *kNotPending = "NotPending",
                            *kSeveralShares = "SeveralShares",
                            *kNoModelHasProfile = "NoModelHasProfile", *kQuota = "Quota";
// Too few pods of its gang exist; there is capacity for too few of them, on all nodes together; a
// node has room for one of them that does not help.
inline constexpr const char *kGangIncomplete = "GangIncomplete", *kGangNotWhole = "GangNotWhole",
                            *kNoRoomForGang = "NoRoomForGang";
// The planner. Slots are kept for this pod, or for others. Its search may end before it finds a
// place (kSearchEnded), or before it knows why there is none (kNotLookedAt).
inline constexpr const char *kNoNodes = "NoNodes", *kNotPartitioned = "NotPartitioned",
                            *kGpuProblem = "GpuProblem", *kNoGpuForProfile = "NoGpuForProfile",
                            *kNoRoomForSlices = "NoRoomForSlices",
                            *kTakenByPendingPods = "TakenByPendingPods", *kSlotsKept = "SlotsKept",
                            *kSlotsKeptForOthers = "SlotsKeptForOthers",
                            *kSearchEnded = "SearchEnded", *kNotLookedAt = "NotLookedAt",
                            *kOtherReasons = "OtherReasons",  // if there are more than a handful
                                *kNotPlaced = "NotPlaced";    // no reason was found
// Plans of moves, about a pending pod.
inline constexpr const char *kTooManyMoves = "TooManyMoves", *kNothingMovable = "NothingMovable",
                            *kNoRoomElsewhere = "NoRoomElsewhere", *kBudget = "Budget";
// Removals, about a node that is kept. Also kBudget, and kNotLookedAt if enough others go.
inline constexpr const char *kAtMinimum = "AtMinimum", *kNodeStays = "NodeStays",
                            *kNotNow = "NotNow", *kInUse = "InUse", *kPodStays = "PodStays",
                            *kTakesMovedPods = "TakesMovedPods", *kNoRoom = "NoRoom";
// The autoscaler.
inline constexpr const char *kNoPools = "NoPools", *kNoPoolFits = "NoPoolFits",
                            *kPoolClosed = "PoolClosed", *kPoolsAtMaximum = "PoolsAtMaximum";

}  // namespace codes

// "500m cpu", "2Gi memory". In thousandths of a core, or whole units; from 2^59 on "more than".
std::string AmountText(const std::string& resource, int64_t amount);
// In kube-scheduler's words: "Insufficient cpu", "Too many pods".
Reason Insufficient(cluster::ResourceId id);
Reason Insufficient(const std::string& resource);
// The node was removed after it was chosen.
Reason NodeNotFound(std::string_view node);
// "3g.20gb" of "nvidia.com/mig-3g.20gb".
std::string ProfileText(const std::string& resource);
// True if GPUs of the model have a profile of exactly this name that the catalogue allows.
bool CanBePartitionedInto(const gpu::Model& model, const std::string& resource);
// "its GPUs cannot be partitioned into 3g.20gb", with "its GPUs cannot" or the like as subject.
std::string NotPartitionable(std::string_view subject, const std::string& resource);

Reason SchedulingGated(const cluster::Pod& pod);
Reason SeveralShares();
Reason GangIncomplete(const std::string& gang, size_t existing, size_t least);
// `placed`: members that have a node or would get one.
Reason GangNotWhole(const std::string& gang, size_t placed, size_t least);

}  // namespace nos::scheduling
