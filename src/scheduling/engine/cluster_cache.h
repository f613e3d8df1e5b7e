// The cluster as watches report it, plus pods that are assumed on a node before the watch shows
// them bound (kube-scheduler's cache).
//
//   ClusterCache cache(catalogue, charges, tables);
//   cache.SetNode(node);                     // from watches, in any order
//   cache.Assume(pod, "node-1");             // counts there at once
//   cache.SetPod(bound);                     // the watch confirms: no longer assumed
//   cache.snapshot().Find("node-1")->pods;
//
// A pod is unknown, assumed or bound. A pod on a node that is not in the snapshot counts for quotas
// and joins the node when that appears. Each change is passed on: to the charges of quotas, to the
// tables that cache verdicts, and to the callback of OnNodeChange.
//
// The constructor's arguments must outlive it. Owned by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "cluster/snapshot.h"
#include "dra/context.h"
#include "dra/device_index.h"
#include "scheduling/engine/kind_tables.h"
#include "scheduling/engine/quota_charges.h"
#include "scheduling/plugin.h"

namespace nos::scheduling {

class Framework;

// A bound or assumed pod and its node.
struct PlacedPod {
  std::shared_ptr<const cluster::Pod> pod;
  std::string node;
  bool assumed = false;
};

class ClusterCache {
 public:
  using Pod = std::shared_ptr<const cluster::Pod>;

  ClusterCache(const gpu::Catalogue& catalogue, QuotaCharges& charges, KindTables& tables);
  ClusterCache(const ClusterCache&) = delete;
  ClusterCache& operator=(const ClusterCache&) = delete;

  const cluster::ClusterSnapshot& snapshot() const { return snapshot_; }
  // `call` receives the name of each node that was replaced or whose pods changed. It must not call
  // the cache.
  void OnNodeChange(std::function<void(std::string_view)> call) { on_node_ = std::move(call); }

  // True: charges of pods on the node may differ from before.
  bool SetNode(std::shared_ptr<const cluster::Node> node);
  // True: the node existed. Keeps the node's pods, in case the node is added again.
  bool RemoveNode(const std::string& name);
  // Sets the GPUs of a node to their state after partitioning; see ClusterSnapshot::SetGpus.
  Status SetGpus(const std::string& node, cluster::NodeGpus gpus);
  // Applies a pod from the watch; see Engine::SetPod.
  void SetPod(const Pod& pod);
  void RemovePod(const std::string& key);
  void Assume(const Pod& pod, const std::string& node);
  // Takes the assumption back. No effect if the pod is no longer assumed.
  void Forget(const std::string& key);
  // Changes the cluster context with `change(ClusterContext&)`.
  template <typename Function>
  void ChangeContext(const Function& change) {
    cluster::ClusterContext& context = snapshot_.ChangeContext();
    change(context);
    context.devices = devices_;
    if (devices_ != nullptr) devices_->Reset(context);
    ++openings_;
    ++changes_;
    charges_.SetQuotas(snapshot_.context());
  }
  // The same for one object of this kind and key. Changes of devices and their claims concern only
  // the nodes that can use them.
  template <typename Function>
  void ChangeContext(const Function& change, std::string_view kind, const std::string& key) {
    if (devices_ == nullptr || !dra::IsDeviceKind(kind)) {
      change(snapshot_.ChangeContext());
      ++openings_;
      ++changes_;
      return charges_.SetQuotas(snapshot_.context());
    }
    change(snapshot_.ChangeContext(false));
    FollowDevices(kind, key);
  }
  // From now on devices and their claims are followed, and pods that claim devices served. What the
  // index knows already is compared with the next context.
  void FollowDevices(std::shared_ptr<dra::DeviceIndex> devices);
  // Runs the reserve plugins; see Engine::Reserve.
  Verdict Reserve(const Framework& framework, const cluster::Pod& pod, std::string_view node,
                  CycleState& state);
  void Unreserve(const Framework& framework, const cluster::Pod& pod, std::string_view node,
                 CycleState& state);

  // Null: the pod is neither bound nor assumed.
  const PlacedPod* FindPlaced(const std::string& key) const {
    const auto found = placed_.find(key);
    return found == placed_.end() ? nullptr : &found->second;
  }
  // Lowest priority of bound and assumed pods. Absent: there are none.
  std::optional<int32_t> LeastPriority() const;
  // Incremented by every change that may free capacity for a pod: everything except added pods.
  uint64_t openings() const { return openings_; }
  // Incremented by every change.
  uint64_t changes() const { return changes_; }

 private:
  // Charges the pods with a node that use the claim anew.
  void CountUsersOf(const std::string& claim);
  void FollowDevices(std::string_view kind, const std::string& key);
  void Bind(const Pod& pod, const std::string& node);
  void Unbind(const cluster::Pod& pod, const std::string& node);
  // The pod had a node, and has ended or vanished.
  void DoubtClaimsOf(const cluster::Pod& pod);
  void Touch(std::string_view node) const;
  // A pod was added to the node or removed from it (`came`). Null pod: something else on the node
  // changed; `came`: it only took capacity.
  void Note(std::string_view node, Pod pod, bool came);
  void Count(const Pod& pod, const std::string& node);
  void CountPriority(int32_t priority, int sign);

  QuotaCharges& charges_;
  KindTables& tables_;
  cluster::ClusterSnapshot snapshot_;
  std::shared_ptr<dra::DeviceIndex> devices_;
  std::function<void(std::string_view)> on_node_;
  // By pod key; includes pods on nodes that are not in the snapshot.
  std::unordered_map<std::string, PlacedPod> placed_;
  std::unordered_map<std::string, std::set<std::string>> homeless_;  // node -> pod keys
  std::map<int32_t, size_t> priorities_;  // number of pods in placed_ by priority
  uint64_t openings_ = 0, changes_ = 0;
};

}  // namespace nos::scheduling
