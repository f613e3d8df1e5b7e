// A virtual cluster on one thread: API server, nodes with kubelet, GPUs and agent, partitioner and
// scheduler (the very controllers of production), a workload, and what goes wrong. It has its own
// time, which jumps from one event to the next; the same options give the same run, bit for bit.
//
//   World world({.seed = 7}, gpu::Catalogue::Builtin());
//   NOS_RETURN_IF_ERROR(world.AddNode({.name = "gpu-1", .gpus = {{"A100-40GB"}}}));
//   NOS_RETURN_IF_ERROR(world.Boot());
//   world.Submit({.name = "train", .containers = {{{"3g.20gb", 1}}}}, world.Now());
//   world.StartControllers();
//   world.RunFor(std::chrono::minutes(1));
//
// One thread, but for api() and clock(). A run repeats unless somebody outside takes part.
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
#include "scheduling/framework.h"
#include "sim/api_server.h"
#include "sim/world/checks/eviction_judge.h"
#include "sim/world/checks/gang_judge.h"
#include "sim/world/run/infrastructure.h"
#include "sim/world/node/machine.h"
#include "sim/world/checks/move_judge.h"
#include "sim/world/node/pod_keeper.h"
#include "sim/world/checks/quota_judge.h"
#include "sim/world/run/slice_webhook.h"

namespace nos::sim {

struct WorldOptions {
  uint64_t seed = 1;
  Time start = Time(std::chrono::seconds(1'767'225'600));  // 2026-01-01T00:00:00Z
  FaultRates faults;
  Duration faults_last{};  // from the start
  MachineTimes times;
  controllers::PartitionerConfig partitioner;
  controllers::SchedulerConfig scheduler;
  // By whom GPUs are cut for pods: the partitioner alone, or the scheduler in the first place.
  scheduling::GpusCut gpus_cut = scheduling::GpusCut::kElsewhere;
  std::optional<Duration> nodes_return;   // how long after they were deleted; none: never
  std::optional<Duration> keep_finished;  // how long finished pods stay; none: for ever
  // Who acts first among those that can is drawn anew each time. Else: always in the same order.
  bool shuffle = true;
  bool check_invariants = true;
  // That node annotations can be read, too: not where someone writes broken ones on purpose.
  bool check_annotations = false;
  // With an autoscaler; its placeholders' namespace is made, and their image is set if it is not.
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
  // Nodes of it come and go from now on, as its scaled object says; see infrastructure().
  // Error: kInvalid, kAlreadyExists.
  Status AddPool(const PoolSpec& spec);
  // Runs until every node is registered, its agent has reported, and pods hold the instances that
  // the specs call used. Error: kDeadline when that does not come about.
  Status Boot();
  // Creates the pod then.
  void Submit(const PodSpec& pod, Time when);
  // A whole object, namespace included. REQUIRES: a kind that WorkloadResource (workload.h) knows.
  void Submit(const Json& object, Time when);
  // They reach the API server through `api` instead of by direct calls, if given: it must lead to
  // this world's server (see lockstep_transport.h), and outlive the world.
  void StartControllers(kube::Transport* api = nullptr);

  Time Now() const { return clock_.Now(); }
  void RunUntil(Time end);
  void RunFor(Duration time) { RunUntil(Now() + time); }
  // As RunUntil, but coarser: what falls due on the way happens at `end`, and each controller acts
  // once; what is left is done next time. Their steps cost with the size of the cluster: above a
  // hundred nodes they rest for one call in between for each further hundred, as real ones would
  // be busy for longer; for nine at most.
  void SkipTo(Time end);
  // Does all there is to do at this moment.
  void Settle();
  // When something will happen next by itself.
  std::optional<Time> NextTime() const;
  void At(Time when, EventQueue::Action action) { queue_.At(when, std::move(action)); }

  const WorldOptions& options() const { return options_; }
  ApiServer& api() { return api_; }
  const WorldClock& clock() const { return clock_; }
  EventLog& log() { return log_; }
  Random& random() { return random_; }
  const gpu::Catalogue& catalogue() const { return catalogue_; }
  const scheduling::Framework& framework() const { return framework_; }

  // What the API server has now.
  std::vector<std::shared_ptr<const cluster::Pod>> Pods();
  std::vector<std::shared_ptr<const cluster::Node>> Nodes();
  // The latest pod submitted under this name (or its successor), or null.
  std::shared_ptr<const cluster::Pod> FindPod(std::string_view name);

  // By name; null: no such node.
  Machine* FindMachine(std::string_view name);
  const std::map<std::string, std::unique_ptr<Machine>, std::less<>>& machines() const {
    return machines_;
  }
  // "partitioner", "scheduler", "autoscaler", "agent NODE"; null: no such process.
  Process* FindProcess(std::string_view name);
  // Null before StartControllers and while they are dead.
  const controllers::Partitioner* partitioner() const;
  const controllers::Scheduler* scheduler() const;
  const controllers::Autoscaler* autoscaler() const;
  // What stands behind the pools; without any, it does nothing.
  Infrastructure& infrastructure() { return infrastructure_; }
  const MoveJudge& moves() const { return moves_; }
  int recreated() const { return keeper_.recreated(); }
  // To be told of the gangs that it is to judge the scheduler's treatment of.
  GangJudge& gangs() { return gangs_; }
  // To be told of the quotas that there are.
  QuotaJudge& quotas() { return quotas_; }

  // Promises broken so far, in words; at most kMaxViolations.
  const std::vector<std::string>& violations() const { return violations_; }
  // Steps taken by all actors.
  uint64_t steps() const { return steps_; }

 private:
  static constexpr size_t kMaxViolations = 20;

  struct Acting {
    Actor* actor;
    Machine* machine;  // it belongs to; null: to none
  };

  Environment Env();
  void ScheduleReboots(const std::string& node);
  void ScheduleLosses(const std::string& node);
  void ScheduleDaemonLosses(const std::string& node);
  // Of one GPU of a node, now and then.
  struct Outage {
    double per_hour;
    Duration longest;
    void (Machine::*begin)(int gpu);
    void (Machine::*end)(int gpu);
  };
  void ScheduleOutages(const std::string& node, const Outage& outage);
  void ScheduleRivals();
  void BindAsRival();
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
  void JudgeCuts();
  void Violation(std::string what);
  bool Registered();
  bool HoldersRun();
  void CreateHolders();
  void RemoveMachine(const std::string& name);
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
  scheduling::Framework framework_ = scheduling::Framework::Default();
  scheduling::Framework scheduler_framework_ = scheduling::Framework::Default(options_.gpus_cut);
  scheduling::Framework cutting_framework_ =
      scheduling::Framework::Default(scheduling::GpusCut::kHere);
  std::map<std::string, std::unique_ptr<Machine>, std::less<>> machines_;
  std::map<std::string, NodeSpec, std::less<>> specs_;  // of all nodes there have been
  std::map<std::string, std::string> places_;           // nodes by the uids of the pods bound there
  std::map<std::string, Time, std::less<>> rival_at_;   // nodes, and when it last bound a pod there
  std::map<std::string, Time, std::less<>> open_at_;    // nodes, and when they last had no taint
  GangJudge gangs_;
  uint64_t judged_decisions_ = 0;  // of the partitioner
  QuotaJudge quotas_;
  EvictionJudge evictions_{quotas_};
  MoveJudge moves_;
  Infrastructure infrastructure_;
  struct Controller;
  std::unique_ptr<Controller> partitioner_host_, scheduler_host_, autoscaler_host_;
  std::vector<std::string> violations_;
  uint64_t steps_ = 0, skips_ = 0;
  std::string busy_;  // who acted last
};

}  // namespace nos::sim
