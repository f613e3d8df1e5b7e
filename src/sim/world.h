// A virtual cluster on one thread: API server, nodes with kubelet, GPUs and agent, partitioner and
// scheduler (the controllers of production), the controllers of Deployments and Jobs, a workload,
// and faults. Its virtual time jumps from event to event. The same options give the same run, bit
// for bit.
//
//   World world({.seed = 7}, gpu::Catalogue::Builtin());
//   NOS_RETURN_IF_ERROR(world.AddNode({.name = "gpu-1", .gpus = {{"A100-40GB"}}}));
//   NOS_RETURN_IF_ERROR(world.Boot());
//   world.Submit({.name = "train", .containers = {{{"3g.20gb", 1}}}}, world.Now());
//   world.StartControllers();
//   world.RunFor(std::chrono::minutes(1));
//
// One thread, except for api() and clock(). Runs are reproducible only without requests from
// outside.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/api_server.h"
#include "sim/world/checks/invariant_checker.h"
#include "sim/world/events/violations.h"
#include "sim/world/model/cluster_view.h"
#include "sim/world/run/controller_processes.h"
#include "sim/world/run/infrastructure.h"
#include "sim/world/run/keepers.h"
#include "sim/world/run/machines.h"
#include "sim/world/run/options.h"
#include "sim/world/run/rival.h"
#include "sim/world/run/rounds.h"
#include "sim/world/run/slice_webhook.h"

namespace nos::sim {

class World {
 public:
  // `catalogue` must outlive the world.
  World(WorldOptions options, const gpu::Catalogue& catalogue);
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  ~World();

  // Error: kInvalid, kAlreadyExists.
  Status AddNode(const NodeSpec& spec);
  // Adds a pool: its nodes join and leave as the scaled object requests; see infrastructure().
  // Error: kInvalid, kAlreadyExists.
  Status AddPool(const PoolSpec& spec);
  // Runs until every node is registered, its agent has reported, and pods hold the instances that
  // the specs declare used. Error: kDeadline if that does not happen in time.
  Status Boot();
  // Creates the pod at `when`.
  void Submit(const PodSpec& pod, Time when);
  // The same for a complete object, including its namespace. REQUIRES: a kind that WorkloadResource
  // (workload.h) accepts.
  void Submit(const Json& object, Time when);
  // The controllers reach the API server through `api`, or by direct calls if it is null. `api`
  // must lead to this world's server (see lockstep_transport.h) and outlive the world.
  void StartControllers(kube::Transport* api = nullptr);

  Time Now() const { return clock_.Now(); }
  void RunUntil(Time end);
  void RunFor(Duration time) { RunUntil(Now() + time); }
  // Like RunUntil, but coarser: all events up to `end` happen at `end`, and each controller acts
  // once; remaining work is left to the next call. Controller steps cost time in proportion to the
  // size of the cluster, so in a cluster of n nodes controllers act only in every (n/100)-th call,
  // but at least in every tenth. Real controllers would be busy longer, too.
  void SkipTo(Time end);
  // Does all pending work at the current time.
  void Settle();
  // The time of the next internal event; not later than now if one is due.
  std::optional<Time> NextTime() const;
  void At(Time when, EventQueue::Action action) { queue_.At(when, std::move(action)); }

  const WorldOptions& options() const { return options_; }
  ApiServer& api() { return api_; }
  const WorldClock& clock() const { return clock_; }
  EventLog& log() { return log_; }
  const gpu::Catalogue& catalogue() const { return catalogue_; }

  // The current objects of the API server.
  std::vector<std::shared_ptr<const cluster::Pod>> Pods() { return view_.Pods(); }
  std::vector<std::shared_ptr<const cluster::Node>> Nodes() { return view_.Nodes(); }
  // The latest pod submitted under this name, or its successor; null if there is none.
  std::shared_ptr<const cluster::Pod> FindPod(std::string_view name) { return view_.FindPod(name); }

  // The machine of this node; null if there is none.
  Machine* FindMachine(std::string_view name) { return machines_.Find(name); }
  const Machines::ByName& machines() const { return machines_.all(); }
  // "partitioner", "scheduler", "autoscaler", "agent NODE"; null if there is no such process.
  Process* FindProcess(std::string_view name);
  const ControllerProcesses& controllers() const { return controllers_; }
  // The infrastructure behind the pools; without pools it does nothing.
  Infrastructure& infrastructure() { return infrastructure_; }
  // Number of pods that got a successor so far.
  int recreated() const { return keepers_.recreated(); }
  InvariantChecker& checks() { return checks_; }
  const InvariantChecker& checks() const { return checks_; }

  // Violated invariants so far, as text; the first of them.
  const std::vector<std::string>& violations() const { return violations_.texts(); }
  // Number of steps of all actors.
  uint64_t steps() const { return rounds_.steps(); }

 private:
  Environment Env();
  InvariantChecker::Controllers CheckedControllers() const;
  std::optional<kube::ApiResponse> InterceptAutoscaler(const kube::ApiRequest& request);
  bool Round(std::vector<Acting> actors);
  void SettleMachines();
  std::vector<Acting> Controllers() const;

  WorldOptions options_;
  const gpu::Catalogue& catalogue_;
  WorldClock clock_;
  Random random_;
  EventQueue queue_;
  EventLog log_;
  Violations violations_;
  Faults faults_, kubelet_faults_;
  ApiServer api_;
  SliceWebhook slices_;
  ClusterView view_;
  Keepers keepers_;
  ControllerProcesses controllers_;
  InvariantChecker checks_;
  Infrastructure infrastructure_;
  Machines machines_;
  Rival rival_;
  Rounds rounds_;
  uint64_t skips_ = 0;
};

}  // namespace nos::sim
