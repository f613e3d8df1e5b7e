// What a scheduler asks of nodes' agents: to cut GPUs for pods that it has placed where their
// instances are not there yet (Pod::promised).
//
//   cuts.Want("gpu-7", pod, now);                       // the pod is on gpu-7 in the snapshot
//   for (CutWrite& write : cuts.Due(snapshot)) ...;     // send; then Written(write, answer)
//   switch (cuts.Look(pod, node, now).kind) ...         // whenever the node has changed
//   cuts.Drop("gpu-7", pod, Cuts::End::kGivenUp, now);  // what was asked for it is taken back
//
// One patch asks for what all pods of a node need. A node is asked anew when its version has moved
// on after a conflict. A GPU that could not be cut as asked rests, longer each time, and so is not
// tried with every pod.
//
// It decides and remembers; it calls nobody. One owner thread.
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
#include "kube/work_queue.h"
#include "scheduling/plugin.h"

namespace nos::controllers {

struct CutWrite {
  std::string node, resource_version, plan;
  cluster::AnnotationPatch patch;
  std::set<std::string> pods;  // keys of those whose instances it asks for
};

class Cuts {
 public:
  struct Options {
    Duration deadline = std::chrono::seconds(60);  // from the wish to the instance
    kube::BackOff rests{std::chrono::seconds(60), std::chrono::minutes(10)};
  };
  enum class End { kServed, kGivenUp };

  // The catalogue must outlive it.
  Cuts(const gpu::Catalogue& catalogue, Options options)
      : catalogue_(catalogue), options_(options) {}

  void Want(const std::string& node, const cluster::Pod& pod, Time now);
  // The node, as the watch shows it, has a plan under way by which a predecessor asked for the
  // pod's instances: it is as if it had been asked now. False: the plan is not one of a
  // predecessor.
  bool Adopt(const cluster::Node& node, const cluster::Pod& pod, Time now);
  void Drop(const std::string& node, const cluster::Pod& pod, End end);

  // Nodes to be asked now. `find` gives a node as it was seen last, or null: the snapshot may have
  // an older version that is the same to scheduling.
  using FindNode = std::function<std::shared_ptr<const cluster::Node>(const std::string& name)>;
  std::vector<CutWrite> Due(const cluster::ClusterSnapshot& snapshot, const FindNode& find);
  void Written(const CutWrite& write, const Status& answer);
  // A successor sees in the nodes all that was asked for.
  bool AreShown(const cluster::ClusterSnapshot& snapshot) const;

  // How far the pod's instances are: there, and more of them allocatable than others hold.
  scheduling::Progress Look(const cluster::Pod& pod, const cluster::NodeInfo& node, Time now);

  // GPUs of the node that are not to be cut for now.
  std::set<int> Resting(const std::string& node, Time now) const;
  // Nodes of which a GPU has begun or ceased to rest since the last call.
  std::vector<std::string> TakeRestChanges(Time now);
  // When one ceases.
  std::optional<Time> NextRestEnd() const;

 private:
  struct Wish {
    Time until{};
    std::string plan;  // the first that asks for it; empty: none yet
    Status failed;     // it was not taken
  };
  struct Site {
    bool dirty = false, writing = false;
    int doubts = 0;         // writes in a row of which no answer has come
    std::string refused;    // the version that a conflict says is gone
    std::string last_plan;  // of ours
    std::string adopted;    // the plan of a predecessor that is carried on
    std::map<std::string, Wish> wishes;
    // What the node's status says, read once for each version.
    std::shared_ptr<const cluster::Node> seen;
    cluster::NodeGpus status;
  };
  struct Rest {
    int failures = 0;
    Time until{};
    bool over = false;
  };

  std::optional<CutWrite> WriteFor(const cluster::NodeInfo& info, const cluster::Node& node,
                                   Site& site);
  void ReadStatus(const cluster::NodeInfo& node, Site& site) const;
  static bool IsAllocatable(const cluster::Pod& pod, const cluster::NodeInfo& node,
                            const Site& site);
  // Those of the pod's instances that the status does not show, by GPU.
  std::map<int, std::string> Missing(const cluster::Pod& pod, const cluster::NodeInfo& node,
                                     Site& site) const;
  scheduling::Progress Judge(const cluster::NodeInfo& node, const Wish& wish,
                             const std::map<int, std::string>& missing, Time now);
  void LetRest(const std::string& node, int gpu, Time now);

  const gpu::Catalogue& catalogue_;
  Options options_;
  std::map<std::string, Site> sites_;  // by node
  std::map<std::pair<std::string, int>, Rest> rests_;
  std::set<std::string> rest_changes_;
};

}  // namespace nos::controllers
