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

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "controllers/autoscaler.h"
#include "controllers/partitioner.h"
#include "controllers/scheduler.h"
#include "scheduling/plugin.h"
#include "sim/api_server.h"
#include "sim/world/checks/device_checker.h"
#include "sim/world/checks/eviction_checker.h"
#include "sim/world/checks/gang_checker.h"
#include "sim/world/checks/move_checker.h"
#include "sim/world/checks/quota_checker.h"
#include "sim/world/manager/workload_keeper.h"
#include "sim/world/node/claim_keeper.h"
#include "sim/world/node/machine.h"
#include "sim/world/node/pod_keeper.h"
#include "sim/world/run/infrastructure.h"
#include "sim/world/run/slice_webhook.h"

namespace nos::scheduling {
class Framework;
}

namespace nos::sim {

struct WorldOptions {
  uint64_t seed = 1;
  Time start = Time(std::chrono::seconds(1'767'225'600));  // 2026-01-01T00:00:00Z
  FaultRates faults;
  Duration faults_last{};  // from the start
  MachineTimes times;
  controllers::PartitionerConfig partitioner;
  controllers::SchedulerConfig scheduler;
  // The component that repartitions GPUs for pods: the partitioner only, or primarily the
  // scheduler.
  scheduling::PartitionedBy partitioned_by = scheduling::PartitionedBy::kPartitioner;
  std::optional<Duration> nodes_return;   // time from a node's deletion to its return; nullopt: it
                                          // never returns
  std::optional<Duration> keep_finished;  // how long finished pods are kept; nullopt: for ever
  // Draws the order of the actors anew for each round; otherwise the order is fixed.
  bool shuffle = true;
  bool check_invariants = true;
  // Also check that node annotations are readable. Not for tests that write malformed ones on
  // purpose.
  bool check_annotations = false;
  // Runs an autoscaler. The namespace of its placeholders is created, and their image gets a
  // default.
  std::optional<controllers::AutoscalerConfig> autoscaler;
};

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
  // The time of the next internal event.
  std::optional<Time> NextTime() const;
  void At(Time when, EventQueue::Action action) { queue_.At(when, std::move(action)); }

  const WorldOptions& options() const { return options_; }
  ApiServer& api() { return api_; }
  const WorldClock& clock() const { return clock_; }
  EventLog& log() { return log_; }
  Random& random() { return random_; }
  const gpu::Catalogue& catalogue() const { return catalogue_; }
  const scheduling::Framework& framework() const { return *framework_; }

  // The current objects of the API server.
  std::vector<std::shared_ptr<const cluster::Pod>> Pods();
  std::vector<std::shared_ptr<const cluster::Node>> Nodes();
  // The latest pod submitted under this name, or its successor; null if there is none.
  std::shared_ptr<const cluster::Pod> FindPod(std::string_view name);

  // The machine of this node; null if there is none.
  Machine* FindMachine(std::string_view name);
  const std::map<std::string, std::unique_ptr<Machine>, std::less<>>& machines() const {
    return machines_;
  }
  // "partitioner", "scheduler", "autoscaler", "agent NODE"; null if there is no such process.
  Process* FindProcess(std::string_view name);
  // Null before StartControllers and while the process is down.
  const controllers::Partitioner* partitioner() const;
  const controllers::Scheduler* scheduler() const;
  const controllers::Autoscaler* autoscaler() const;
  // The infrastructure behind the pools; without pools it does nothing.
  Infrastructure& infrastructure() { return infrastructure_; }
  const MoveChecker& moves() const { return moves_; }
  int recreated() const { return keeper_.recreated(); }
  // Number of pods that the scheduler has evicted.
  int preempted() const { return evictions_.evictions(); }
  const std::deque<EvictionChecker::Eviction>& evictions() const { return evictions_.last(); }
  // The invariant checker for gangs; register expected gangs with it.
  GangChecker& gangs() { return gangs_; }
  // The invariant checker for quotas; register quotas with it.
  QuotaChecker& quotas() { return quotas_; }
  // The invariant checker for devices of claims.
  const DeviceChecker& devices() const { return devices_; }

  // Violated invariants so far, as text; at most kMaxViolations.
  const std::vector<std::string>& violations() const { return violations_; }
  // Number of steps of all actors.
  uint64_t steps() const { return steps_; }

 private:
  static constexpr size_t kMaxViolations = 20;

  struct Acting {
    Actor* actor;
    Machine* machine;  // the actor's machine; null if it has none
  };

  Environment Env();
  void ScheduleReboots(const std::string& node);
  void ScheduleLosses(const std::string& node);
  void ScheduleDaemonLosses(const std::string& node);
  // A recurring fault of one GPU of a node.
  struct Outage {
    double per_hour;
    Duration longest;
    void (Machine::*begin)(int gpu);
    void (Machine::*end)(int gpu);
  };
  void ScheduleOutages(const std::string& node, const Outage& outage);
  void ScheduleRivals();
  void BindAsRival();
  // The pods for which the scheduler keeps a place while it is prepared.
  std::vector<QuotaChecker::Pod> Reserved() const;
  void CheckBinding(const cluster::Pod& pod, bool scheduled);
  void CheckTaints(const cluster::Pod& pod);
  void SettleMachines();
  void UntilNothingIsDone(const std::function<bool()>& act);
  std::vector<Acting> OnNodes() const;
  std::vector<Acting> Controllers();
  bool Round(std::vector<Acting> actors);
  bool Step(const Acting& acting);
  void AfterStep(Machine* machine);
  void JudgeGangs();
  void CheckPartitioning();
  void Violation(std::string what);
  bool Registered();
  bool HoldersRun();
  void CreateHolders();
  void RemoveMachine(const std::string& name);
  void RemoveSlices(const std::string& node);
  void RemoveForGood(const std::string& node);
  void StartAutoscaler(kube::Transport& way);
  std::optional<kube::ApiResponse> InterceptAutoscaler(const kube::ApiRequest& request);
  void JudgeMoves();

  WorldOptions options_;
  const gpu::Catalogue& catalogue_;
  WorldClock clock_;
  Random random_;
  EventQueue queue_;
  EventLog log_;
  Faults faults_, kubelet_faults_;
  ApiServer api_;
  SliceWebhook slices_;
  kube::Client client_;
  kube::Cache<cluster::Pod> pods_;
  kube::Cache<cluster::Node> nodes_;
  PodKeeper keeper_;
  ClaimKeeper claim_keeper_;
  WorkloadKeeper workload_keeper_;
  // The partitioner uses the first, the scheduler the second. The third partitions GPUs if needed.
  const std::unique_ptr<const scheduling::Framework> framework_, scheduler_framework_,
      partitioning_framework_;
  std::map<std::string, std::unique_ptr<Machine>, std::less<>> machines_;
  std::map<std::string, NodeSpec, std::less<>> specs_;  // of all nodes that ever existed
  std::map<std::string, std::string> places_;           // node by uid of the pod bound to it
  std::map<std::string, Time, std::less<>> rival_at_;   // time of the rival's last binding, by node
  std::map<std::string, Time, std::less<>> open_at_;    // time when the node last had no taint, by
                                                        // node
  GangChecker gangs_;
  uint64_t judged_decisions_ = 0;  // of the partitioner
  QuotaChecker quotas_;
  EvictionChecker evictions_{quotas_};
  MoveChecker moves_;
  DeviceChecker devices_;
  Infrastructure infrastructure_;
  struct Controller;
  std::unique_ptr<Controller> partitioner_host_, scheduler_host_, autoscaler_host_;
  // A node has a driver of Dynamic Resource Allocation. Otherwise controllers do not watch its
  // kinds: each watch takes part in the draws of faults, which stay those of earlier versions.
  bool serves_devices_ = false;
  std::vector<std::string> violations_;
  uint64_t steps_ = 0, skips_ = 0;
  std::string busy_;  // the actor of the last step
};

}  // namespace nos::sim
