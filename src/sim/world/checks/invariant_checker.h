// All invariant checkers of a virtual cluster. It follows the objects in the API server, and looks
// at a machine or at the controllers after each step; what they violate goes to
// Environment::violations.
//
//   InvariantChecker checks(env, view, {.annotations = true}, {scheduler, partitioner});
//   checks.AfterStep(&machine);
//
// One thread.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "controllers/partitioner.h"
#include "controllers/scheduler.h"
#include "sim/world/checks/device_checker.h"
#include "sim/world/checks/eviction_checker.h"
#include "sim/world/checks/gang_checker.h"
#include "sim/world/checks/move_checker.h"
#include "sim/world/checks/quota_checker.h"
#include "sim/world/model/cluster_view.h"
#include "sim/world/node/environment.h"

namespace nos::sim {

class Machine;

class InvariantChecker {
 public:
  struct Options {
    bool steps = true;         // check after each step
    bool annotations = false;  // check that nodes' annotations are readable
    bool moves = false;        // an autoscaler moves pods
  };
  // Return null while the process is down.
  struct Controllers {
    std::function<const controllers::Scheduler*()> scheduler;
    std::function<const controllers::Partitioner*()> partitioner;
  };

  // The references must outlive the object, which adds handlers to `view`.
  InvariantChecker(const Environment& env, ClusterView& view, Options options,
                   Controllers controllers);
  InvariantChecker(const InvariantChecker&) = delete;
  InvariantChecker& operator=(const InvariantChecker&) = delete;

  // `machine`: the one that has made the step; null if it was a controller.
  void AfterStep(const Machine* machine);
  // The scheduler requests a binding.
  void OnBinding(const Json& binding);
  // The autoscaler requests an eviction.
  void OnEviction(const kube::ApiRequest& request);
  // Excludes the objects of this node in the API server from the checks.
  void Distrust(const std::string& node) { distrusted_.insert(node); }
  // Another scheduler, which knows neither quotas nor reservations, binds a pod to the node.
  void OnRivalBinding(const std::string& node);

  // Register expected gangs here.
  GangChecker& gangs() { return gangs_; }
  // Register quotas here.
  QuotaChecker& quotas() { return quotas_; }
  MoveChecker& moves() { return moves_; }
  const MoveChecker& moves() const { return moves_; }
  const EvictionChecker& evictions() const { return evictions_; }
  const DeviceChecker& devices() const { return devices_; }

 private:
  using PodPtr = std::shared_ptr<const cluster::Pod>;
  using NodePtr = std::shared_ptr<const cluster::Node>;

  void OnPod(const PodPtr& before, const PodPtr& after);
  void OnNode(const std::string& name, const NodePtr& before, const NodePtr& after);
  std::vector<PodPtr> Reserved() const;
  void CheckBinding(const cluster::Pod& pod, bool scheduled);
  void CheckTaints(const cluster::Pod& pod);
  void CheckGangs();
  void CheckPartitioning();

  Environment env_;
  ClusterView& view_;
  Options options_;
  Controllers controllers_;
  GangChecker gangs_;
  QuotaChecker quotas_;
  EvictionChecker evictions_{quotas_};
  MoveChecker moves_;
  DeviceChecker devices_;
  std::map<std::string, std::string> places_;          // node by uid of the pod bound to it
  std::map<std::string, Time, std::less<>> rival_at_;  // the rival's last binding, by node
  std::map<std::string, Time, std::less<>> open_at_;   // last time without a taint, by node
  std::set<std::string, std::less<>> distrusted_;      // nodes
  uint64_t checked_decisions_ = 0;                     // of the partitioner
};

}  // namespace nos::sim
