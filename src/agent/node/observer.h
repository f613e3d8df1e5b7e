// Reads the node: its object, its pods and its devices, each as fresh as the caller needs.
//
//   Observer observer(name, catalogue, backend, pod_resources, {.unreadable = seconds(5)});
//   const auto node = observer.CachedNode(view);           // never older than our own writes
//   observer.OnPods(*view.changes);
//   NOS_ASSIGN(NodeDevices devices, observer.ReadDevices(settings, *node, pods, true, now));
//   NOS_ASSIGN(const NodeAndPods fresh, observer.ReadUncached(client));
//
// It remembers what driver and kubelet reported before, because both forget for a moment: a GPU
// that cannot be read keeps its last state for a while, and a device stays held until its pod has
// ended. Owned by one thread; the references outlive it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/node/devices.h"
#include "agent/node/holders.h"
#include "cluster/objects.h"
#include "device/actuator.h"
#include "kube/client.h"
#include "kubelet/pod_cgroups.h"
#include "reconcile/read_your_writes.h"
#include "reconcile/reconciler.h"

namespace nos::agent {

struct NodeAndPods {
  std::shared_ptr<const cluster::Node> node;
  std::vector<std::shared_ptr<const cluster::Pod>> pods;  // bound to the node
};

class Observer {
 public:
  struct Options {
    // How long a GPU that cannot be read keeps its last known state.
    Duration unreadable{};
    const device::GpuHealth* health = nullptr;  // null: the driver reports no health
    kubelet::PodCgroups* cgroups = nullptr;     // null: they cannot be seen
    // A new agent takes holders from the node's status. False: another plugin names the devices.
    bool recalls = true;
  };

  Observer(std::string node, const gpu::Catalogue& catalogue, device::Backend& backend,
           kubelet::PodResources& pod_resources, Options options);

  // The node from the cache, or our own write where the cache still lags behind it. Null: no node.
  std::shared_ptr<const cluster::Node> CachedNode(const reconcile::Listers& view);
  // Reads the API server directly: the caches may not show a pod that was bound a moment ago.
  // Error: that of the client.
  Result<NodeAndPods> ReadUncached(kube::Client& client);
  // Records the node that this agent has just written.
  void Wrote(std::shared_ptr<const cluster::Node> node) { written_.Wrote(std::move(node)); }

  // Which pods had ended before they were deleted.
  void OnPods(const reconcile::Changes& changes);
  // Reads driver and kubelet. `pods`: bound to the node; they complete the kubelet's list of
  // holders. `withdraws`: the plugin may offer single devices as unhealthy or not at all; then GPUs
  // that cannot be read count as healthy until they are given up, and devices of departed pods as
  // unhealthy. Error: kUnavailable if one of them does not answer.
  Result<NodeDevices> ReadDevices(const SharingSettings& settings, const cluster::Node& node,
                                  std::span<const std::shared_ptr<const cluster::Pod>> pods,
                                  bool withdraws, Time now);
  // True if a GPU could not be read by the last ReadDevices but has not been given up yet:
  // operations there may still become possible.
  bool unreadable_may_return() const { return unreadable_may_return_; }
  // An operation is about to destroy this instance: if its GPU cannot be read afterwards, the last
  // known state must not contain it.
  void Forget(int gpu, const std::string& uuid);

 private:
  // The pods bound to the node, at least as new as the call.
  Result<kube::ObjectList> ListPodsUncached(kube::Client& client) const;
  void RestartGracePeriods(Time now);

  const std::string node_;
  const gpu::Catalogue& catalogue_;
  device::Backend& backend_;
  kubelet::PodResources& pod_resources_;
  const Options options_;
  reconcile::ReadYourWrites<cluster::Node> written_;
  std::optional<Holders> holders_;            // as last observed; none before the first time
  std::map<std::string, std::string> ended_;  // DepartedPods::ended, of pods in holders_
  bool failed_ = false;                       // the last reading
  LastRead last_read_;
  bool unreadable_may_return_ = false;
};

}  // namespace nos::agent
