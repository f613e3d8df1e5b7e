// Checks whether a cluster of a fault simulation makes progress: while a pod could run, pods get
// nodes. It decides by satisfiable.h, without the planner and the scheduler that it checks.
//
//   ProgressChecker checker(options, world, {quotas, claims, pools});
//   checker.Expect("default/g", 3);           // a gang
//   checker.Begin();                          // the faults have stopped
//   while (!checker.AtRest()) {
//     world.RunFor(probe);
//     if (auto problem = checker.Check()) ...
//   }
//
// One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/chaos.h"
#include "sim/world.h"
#include "sim/world/checks/satisfiable.h"
#include "sim/world/run/chaos_claims.h"
#include "sim/world/run/chaos_pools.h"
#include "sim/world/run/chaos_quotas.h"

namespace nos::sim {

class ProgressChecker {
 public:
  using Pods = ChaosQuotas::Pods;
  struct Cluster {
    ChaosQuotas& quotas;
    ChaosClaims& claims;
    ChaosPools& pools;
  };

  // The references must outlive the object.
  ProgressChecker(const ChaosOptions& options, World& world, Cluster cluster)
      : options_(options), world_(world), cluster_(cluster), start_(world.Now()) {}

  // The number of pods of this gang that are scheduled together.
  void Expect(const std::string& gang, size_t least) { gangs_[gang] = least; }
  // Checks neither the node nor pods that tolerate its taints.
  void Exclude(std::string node, cluster::Toleration toleration) {
    excluded_ = std::move(node);
    tolerated_ = std::move(toleration);
  }
  // Progress counts from now.
  void Begin() { last_bind_ = world_.Now(); }
  // The problem, if a pod could run and none has been bound for too long.
  std::optional<std::string> Check();
  // True if all effects of faults are over, no running pod will end, and no pending pod could run.
  bool AtRest();
  // Reasons why the autoscaler is not done. Ignores gangs: they are scheduled as a whole, which
  // this does not cover.
  std::vector<std::string> Restless(const Pods& pods);
  // Keys of waiting pods of this namespace, higher priority first, then the oldest. Min covers them
  // together, and nodes could serve them together if the pods that borrow left. The search leaves
  // out nodes with a pod that need not leave, so there may be more. If the first pod has room only
  // beside such pods, it is the only one.
  std::vector<std::string> Entitled(std::string_view ns);
  // Number of gangs with enough scheduled members.
  int CountWhole(const Pods& pods) const;

  static bool Waits(const cluster::Pod& pod) { return pod.node_name.empty() && !pod.Finished(); }

 private:
  std::vector<CheckedNode> CheckedNodes(const Pods& pods);
  std::string Neglected(const Pods& pods);
  bool HavePlaces(const std::vector<const cluster::Pod*>& together,
                  const std::vector<CheckedNode>& nodes, const Pods& pods) const;
  std::vector<const cluster::Pod*> PlacedWith(const cluster::Pod& pod, const Pods& pods) const;
  static size_t CountPlaced(const std::string& gang, const Pods& pods);
  bool IsExcluded(const cluster::Pod& pod) const;
  bool GoesFirst(const cluster::Pod& other, const cluster::Pod& pod) const;

  const ChaosOptions& options_;
  World& world_;
  Cluster cluster_;
  const Time start_;
  std::map<std::string, size_t> gangs_;
  std::vector<std::shared_ptr<const cluster::Node>> nodes_;  // of the last CheckedNodes
  std::string excluded_;                                     // node; "": none
  cluster::Toleration tolerated_;
  std::set<std::string> bound_;  // uids
  Time last_bind_{};
};

}  // namespace nos::sim
