// Asks the agents of nodes to create instances for pods that were placed where their instances do
// not exist yet (Pod::promised).
//
//   requests.Want("gpu-7", pod, now);                          // it is on gpu-7 in the snapshot
//   for (PartitionWrite& write : requests.Due(snapshot)) ...;  // send; then Written(write, answer)
//   switch (requests.Look(pod, node, now).kind) ...            // whenever the node has changed
//   requests.Drop("gpu-7", pod, End::kGivenUp);                // its request is withdrawn
//
// One patch requests the instances of all pods of a node. After a conflict a node is patched again
// only when its resource version has changed. A GPU that could not be partitioned as requested goes
// into back-off, longer each time, so that it is not tried with every pod.
//
// It makes no calls: the caller sends the patches. Owned by one thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/snapshot.h"
#include "reconcile/back_off_table.h"
#include "scheduling/plugin.h"

namespace nos::controllers {

struct PartitionWrite {
  std::string node, resource_version, plan;
  cluster::AnnotationPatch patch;
  std::set<std::string> pods;  // keys of the pods whose instances it requests
};

class PartitionRequests {
 public:
  struct Options {
    Duration deadline = std::chrono::seconds(60);  // from the request to the instance
    BackOff rests{std::chrono::seconds(60), std::chrono::minutes(10)};
  };
  enum class End { kServed, kGivenUp };

  // The catalogue must outlive it.
  PartitionRequests(const gpu::Catalogue& catalogue, Options options)
      : catalogue_(catalogue), options_(options), rests_(options.rests) {}

  void Want(const std::string& node, const cluster::Pod& pod, Time now);
  // Takes over a predecessor's plan under way that requests the pod's instances, as if it had been
  // requested now. `node` is the node as the watch shows it. False: the plan is not a
  // predecessor's.
  bool Adopt(const cluster::Node& node, const cluster::Pod& pod, Time now);
  void Drop(const std::string& node, const cluster::Pod& pod, End end);

  // Patches to send now. `find` returns the node as last seen, or null. The snapshot may hold an
  // older version that is equal for scheduling.
  using FindNode = std::function<std::shared_ptr<const cluster::Node>(const std::string& name)>;
  std::vector<PartitionWrite> Due(const cluster::ClusterSnapshot& snapshot, const FindNode& find);
  void Written(const PartitionWrite& write, const Status& answer);
  // True if a successor can read every request from the nodes.
  bool AreShown(const cluster::ClusterSnapshot& snapshot) const;

  // The state of the pod's instances. kReady: they exist, and the node's allocatable exceeds what
  // other pods hold.
  scheduling::Progress Look(const cluster::Pod& pod, const cluster::NodeInfo& node, Time now);

  // GPUs of the node that are in back-off and must not be partitioned.
  std::set<int> Resting(const std::string& node, Time now) const;
  // Nodes where the back-off of a GPU has begun or ended since the last call.
  std::vector<std::string> TakeRestChanges(Time now);
  // When the next back-off ends.
  std::optional<Time> NextRestEnd() const { return rests_.NextToTake(); }

 private:
  struct Wish {
    Time until{};
    std::string plan;  // the first plan that requests it; empty: none yet
    Status failed;     // why the patch was not accepted
  };
  struct Site {
    bool dirty = false, writing = false;
    int doubts = 0;         // consecutive writes that were not answered
    std::string refused;    // the resource version that was rejected with a conflict
    std::string last_plan;  // the last plan written here
    std::string adopted;    // a predecessor's plan that is carried on
    std::map<std::string, Wish> wishes;
    // The node's status annotations, parsed once per version.
    std::shared_ptr<const cluster::Node> seen;
    cluster::NodeGpus status;
  };
  std::optional<PartitionWrite> WriteFor(const cluster::NodeInfo& info, const cluster::Node& node,
                                         Site& site);
  void ReadStatus(const cluster::NodeInfo& node, Site& site) const;
  static bool IsAllocatable(const cluster::Pod& pod, const cluster::NodeInfo& node,
                            const Site& site);
  // Instances of the pod that the node's status does not show, by GPU.
  std::map<int, std::string> Missing(const cluster::Pod& pod, const cluster::NodeInfo& node,
                                     Site& site) const;
  scheduling::Progress ProgressOf(const cluster::NodeInfo& node, const Wish& wish,
                                  const std::map<int, std::string>& missing, Time now);
  void LetRest(const std::string& node, int gpu, Time now);

  const gpu::Catalogue& catalogue_;
  Options options_;
  std::map<std::string, Site> sites_;                           // by node
  reconcile::BackOffTable<std::pair<std::string, int>> rests_;  // by node and GPU
  std::set<std::string> rest_changes_;
};

}  // namespace nos::controllers
