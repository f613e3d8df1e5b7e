// The devices of a cluster and the claims that hold them, followed change by change, for deciding
// on pods one after the other.
//
//   DeviceIndex index(Features::Of(37), expressions);
//   index.Reset(context);                                  // the cluster context
//   index.SetClaim("ml/a", claim);                        // from the watch
//   const AllocationOutcome outcome = index.Allocate(prepared, node, classes);
//   index.Assume("ml/a", outcome.allocations[0]);         // until the watch shows it
//
// An assumed allocation counts like one that the API server has stored. The watch ends it: when the
// claim is allocated, replaced or deleted, but not when it only changes otherwise.
//
// The index describes one cluster snapshot, its base. It also answers for nodes of a copy from
// which pods were taken or to which pods were added: claims of pods that left count as released,
// claims of pods that came are allocated first.
//
// Owned by one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "cluster/snapshot.h"
#include "dra/allocator.h"
#include "dra/device_counts.h"
#include "dra/extended_resources.h"
#include "dra/index/last_answer.h"
#include "dra/inventory.h"
#include "dra/least_loss.h"
#include "dra/objects.h"
#include "dra/suspect_devices.h"

namespace nos::dra {

// "ns/name" of the pod's claims that exist by its status, without repetition.
std::vector<std::string> ClaimKeysOf(const cluster::Pod& pod);
// The same without the claim for extended resources, which only the status names.
std::vector<std::string> SpecClaimKeysOf(const cluster::Pod& pod);
// True if the pod is one of the claim's users, or its PodGroup is.
bool IsReservedFor(const ResourceClaim& claim, const cluster::Pod& pod);
// True if the PodGroup of the pod (scheduling.k8s.io) is a user of the claim.
bool IsReservedForGroupOf(const ResourceClaim& claim, const cluster::Pod& pod);
// ClaimConsumer::resource of a pod.
inline constexpr const char* kPodConsumer = "pods";
// The user that has to be entered for the pod: its PodGroup if that names the claim as the pod
// does.
ClaimConsumer ConsumerFor(const ResourceClaim& claim, const cluster::Pod& pod,
                          const cluster::ClusterContext& context);

// The name of the only node from which the allocation can be used; "" if there are several.
const std::string& NodeOf(const Allocation& allocation);

class DeviceIndex {
 public:
  using Claim = std::shared_ptr<const ResourceClaim>;

  // Ranks devices by `catalogue`, which must outlive the index.
  DeviceIndex(const Features& features, std::shared_ptr<const DeviceExpressions> expressions,
              const gpu::Catalogue& catalogue = gpu::Catalogue::Builtin());

  // The snapshot that the claims belong to; it must outlive the index, or be null.
  void SetBase(const cluster::ClusterSnapshot* base) { base_ = base; }
  bool IsBase(const cluster::ClusterSnapshot& snapshot) const { return base_ == &snapshot; }
  // To be called after a node of the base came, left, or changed its labels: it may use other
  // devices than before.
  void OnNodes() { most_.clear(); }

  // A pod with a node came (1) or left (-1), whether the base has the node or not.
  void CountPlaced(const cluster::Pod& pod, int change);
  // True if a pod of the same PodGroup has a node.
  bool HasPlacedMember(const cluster::Pod& pod) const;

  // Nodes for which decisions may differ after a change.
  struct Affected {
    bool all = false;
    std::vector<std::string> nodes;
  };
  // Takes over all tables of the context.
  void Reset(const cluster::ClusterContext& context);
  // Takes over the object of this kind and key from the context.
  Affected Follow(std::string_view kind, const std::string& key,
                  const cluster::ClusterContext& context);
  // A null object: it is gone.
  Affected SetSlice(const std::string& name, std::shared_ptr<const ResourceSlice> slice);
  Affected SetClaim(const std::string& key, const Claim& claim);

  // An allocation that a scheduler has chosen for a pod.
  struct Assumption {
    Allocation allocation;
    std::string pod_uid;
    std::string gang;       // whose other pods may use it, too (cluster/gangs.h); "": none
    bool doubtful = false;  // its write has an unknown result, so any successor must adopt it
  };
  // REQUIRES: the claim is known, not allocated and not assumed.
  void Assume(const std::string& key, const Allocation& allocation, const std::string& pod_uid,
              const std::string& gang = "");
  // The same for a claim that is about to be created (extended_resources.h).
  // REQUIRES: there is no claim of this key.
  void AssumeNew(const Claim& claim, const Allocation& allocation, const std::string& pod_uid);
  // Takes the assumption back; no effect if there is none.
  void Withdraw(const std::string& key);
  // Null: nothing is assumed.
  const Assumption* FindAssumed(const std::string& key) const;
  // No effect if nothing is assumed.
  void SetDoubtful(const std::string& key);
  // The devices of the claim were not prepared in time. Until they are released they serve no
  // further pod, unless the claim says that they are prepared.
  void SetExpired(const std::string& key);
  bool IsExpired(const std::string& key) const;
  SuspectDevices& suspects() { return suspects_; }
  const SuspectDevices& suspects() const { return suspects_; }

  const Features& features() const { return inventory_.features(); }
  // By the classes of the cluster.
  const ExtendedResources& extended() const { return extended_; }
  // For options of Allocate.
  const LeastLoss& ranking() const { return ranking_; }
  // AllocationOptions::first_alternative of the pods that are being placed.
  size_t first_alternative() const { return first_alternative_; }
  void SetFirstAlternative(size_t index) { first_alternative_ = index; }
  // True if the ranking chooses among the node's devices: it has GPUs of NVIDIA's driver.
  bool Ranks(const cluster::Node& node) const { return ranking_.Ranks(inventory_.View(node)); }
  // Null: there is no such claim.
  const Claim& FindClaim(const std::string& key) const;

  // The most that a claim without an allocation may count for (device_counts.h): by the largest of
  // all devices that can serve each request, in use or not. Remembered until slices, classes or
  // nodes change. The claim may be one that the index does not have.
  const DeviceCounts& MostOf(const ResourceClaim& claim, const FindClass& find_class);

  // Does what the first Allocate of such claims on the node would do besides choosing devices: puts
  // the node's devices together, and evaluates expressions for them.
  void Prefetch(const cluster::Node& node, const std::vector<PreparedClaims>& claims);

  // Devices for the claims on this node of the base, or of a changed copy of it. REQUIRES: the
  // claims are not allocated.
  AllocationOutcome Allocate(const PreparedClaims& claims, const cluster::NodeInfo& node,
                             const FindClass& find_class, const AllocationOptions& options = {});
  // Changes with every change of devices or their use.
  uint64_t version() const { return inventory_.version(); }

 private:
  class Supposition;

  struct Held {
    Claim claim;
    std::optional<Assumption> assumed;
    bool is_new = false;   // the watch has not shown it yet
    bool expired = false;  // see SetExpired
    // In the inventory.
    const Allocation* allocation() const {
      const std::optional<Allocation>& stored = claim->allocation;
      if (stored) return &*stored;
      return assumed ? &assumed->allocation : nullptr;
    }
  };

  std::shared_ptr<const DeviceExpressions> expressions_;
  Inventory inventory_;
  LeastLoss ranking_;
  ExtendedResources extended_;
  std::vector<std::shared_ptr<const DeviceTaintRule>> rules_;  // of the inventory
  const cluster::ClusterSnapshot* base_ = nullptr;
  size_t first_alternative_ = 0;
  std::unordered_map<std::string, Held> claims_;
  std::unordered_map<std::string, std::shared_ptr<const ResourceSlice>> slices_;
  std::unordered_map<Name, DeviceCounts> most_;  // by the claim's spec
  SuspectDevices suspects_;
  LastAnswer last_;
  std::unordered_map<std::string, int> placed_members_;  // number of them by "ns/name" of PodGroup
};

}  // namespace nos::dra
