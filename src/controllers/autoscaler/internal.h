// Shared by the parts of the autoscaler. Internal.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/context.h"
#include "cluster/snapshot.h"
#include "controllers/autoscaler.h"
#include "controllers/autoscaler/pool_state.h"
#include "controllers/pending/event_queue.h"
#include "controllers/pending/planned_quotas.h"
#include "controllers/planned_gangs.h"
#include "kube/work_queue.h"
#include "planning/moves.h"
#include "planning/shrink.h"
#include "reconcile/condition.h"

namespace nos::controllers {

inline constexpr MetricFamily kPoolNodeCounts{
    MetricFamily::Kind::kGauge, "nos_pool_nodes",
    "Number of nodes of each NodePool by state: there, coming (requested or not ready yet), going "
    "(the pool was asked to remove it)."};
inline constexpr MetricFamily kPoolPrice{MetricFamily::Kind::kGauge, "nos_pool_price_per_hour",
                                         "Price per hour of the existing nodes of each NodePool."};
inline constexpr MetricFamily kScalingDecisions{
    MetricFamily::Kind::kCounter, "nos_autoscaler_decisions_total",
    "Total number of autoscaler decisions by action: grow, shrink, move, call-off, close, keep."};
inline constexpr MetricFamily kUnservedPods{MetricFamily::Kind::kGauge,
                                            "nos_autoscaler_unschedulable_pods",
                                            "Number of pending pods within their quotas that no "
                                            "repartitioning of existing GPUs can place.",
                                            "nos_autoscaler_unserved_pods"};
inline constexpr MetricFamily kScalingPlan{
    MetricFamily::Kind::kDuration, "nos_autoscaler_plan_duration_seconds",
    "Duration of one scaling decision.", "nos_autoscaler_plan_seconds"};

// Value of a removal mark for a node whose removal has certainly been requested from its pool: the
// request is never repeated, whatever the pool wants later. Before that, the mark holds the node
// count that the pool should want.
inline constexpr int32_t kTold = cluster::kMaxPoolNodes;

const kube::Resource& PoolResource();  // NodePools
kube::ObjectReference ReferenceTo(const cluster::NodePool& pool);
kube::ObjectReference ReferenceToNode(const std::string& name);
kube::ObjectReference ReferenceTo(const cluster::Pod& pod);

// Pending pods that no plan for the existing nodes places, and their gangs. Gang members are
// indices into `pods`.
struct Unserved {
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  std::vector<planning::Gang> gangs;
};
// Removes the pods with these indices. A gang that has enough members placed without its remaining
// pods is dropped.
Unserved Without(const Unserved& all, const std::set<int>& gone);

class Autoscaler::Impl {
 public:
  Impl(AutoscalerConfig config, scheduling::FrameworkChoice frameworks,
       const gpu::Catalogue& catalogue, PoolScaling scaling, Metrics* metrics);

  reconcile::ReconcileResult Reconcile(const reconcile::Listers& view, kube::Client& client,
                                       const Clock& clock);
  const std::deque<ScalingDecision>& decisions() const { return decisions_; }

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Node = std::shared_ptr<const cluster::Node>;
  using PoolPtr = std::shared_ptr<const cluster::NodePool>;

  // State of a pool that is kept between reconciliations.
  struct Known {
    std::string target;              // identifies the object or webhook that `scale` was read from
    std::optional<PoolScale> scale;  // as last read or written
    bool fresh = false;              // read since the last write, so a write may be based on it
    Time read_again{};
    Status read_error, write_error;
    Time write_again{};  // no write before this time after write_error
    Time grown{};        // time of the last scale-up
    int unanswered = 0;  // consecutive writes without a definite answer
    int silent = 0;      // consecutive reads that the webhook did not answer
    Time silent_since{};
    std::optional<cluster::NodeTemplate> learnt;  // recorded from the pool's nodes, for its status
    Time learn_again{};
    uint64_t learnt_from = 0;         // version of the node cache
    PoolPtr described, described_of;  // the pool with its template, and the pool as read
    const Status& error() const { return read_error.ok() ? write_error : read_error; }
    bool MayWrite() const { return fresh && write_error.ok(); }
  };
  struct Pool {
    PoolPtr pool;  // with the recorded template
    Known* known = nullptr;
    PoolNodes nodes{};
    PoolState state{};
    PoolPtr told{};  // as read
  };
  struct Look {
    const reconcile::Listers& view;
    kube::Client& client;
    const Clock& clock;
    Time now;
    std::vector<Node> nodes{};
    std::vector<int> pool_of{};                     // index into `pools` for each node; -1: no pool
    std::vector<Pool> pools{};                      // by name
    std::map<std::string, Removal> removals{};      // by node
    std::set<std::string, std::less<>> starting{};  // nodes
    std::set<std::string, std::less<>> filled{};    // nodes on which the plan places pending pods
    bool waited = false;                            // a webhook already timed out in this call
    Pool* Find(const std::string& name);
  };
  struct Demand {
    std::vector<Pod> all;  // all pods except demand pods
    GangedPods waiting;    // unschedulable for at least `settle`
    bool unsettled = false, placeholders_wait = false;
    std::set<std::string, std::less<>> busy;
    // Nodes with placeholders for pods that will move there.
    std::set<std::string, std::less<>> held;
  };

  // autoscaler/pools.cc
  void TakeIn(const reconcile::Listers& view);
  std::vector<PoolPtr> PoolsNow();
  Status LookAtPools(Look& look);
  void ReadScale(Look& look, Pool& pool);
  void NoteAnswer(Look& look, Known& known, Time now);
  void LearnTemplates(Look& look);
  static PoolPtr WithLearnt(const Pool& pool);
  bool IsStarting(const cluster::Node& node, const cluster::NodePool& pool, const NodeLacks& lacks,
                  Time now) const;
  void CountNodes(Look& look);
  std::optional<Removal> RemovalNow(const cluster::Node& node, Time now);
  static bool IsTold(const Removal& removal, const Known& known);
  Status WriteStatus(Look& look, Pool& pool);
  Status WriteScale(Look& look, Pool& pool, int32_t wanted, const std::vector<std::string>& remove);
  void NoteShown(const Look& look, const Pool& pool, int missing, const Status& shown);
  void ShowSignals(Look& look);

  // autoscaler/removals.cc
  bool FinishRemovals(Look& look);
  bool FinishRemoval(Look& look, const Node& node, const Removal& removal);
  bool TellPool(Look& look, Pool& pool, const Node& node, const Removal& removal);
  void NameToWebhook(Look& look, const cluster::NodePool& pool, const PoolScale& scale,
                     const std::string& node);
  bool Confirm(Look& look, Pool& pool, const Node& node);
  bool Overdue(Look& look, Pool& pool, const Node& node);
  bool MarkAsked(Look& look, const Node& node, int32_t wanted);
  Status Keep(Look& look, const PoolPtr& pool, const Node& node, const std::string& why);
  void NoteRemoved(Look& look);

  // autoscaler/growth.cc
  void Decide(Look& look);
  // Returns a function that is true once the time limit of a plan that starts now has passed.
  std::function<bool()> TimeLimit(const Look& look) const;
  Demand DemandOf(Look& look);
  Time WaitingSince(const cluster::Pod& pod, Time now);
  cluster::ClusterSnapshot Picture(const Look& look, const Demand& demand) const;
  Unserved FindUnserved(Look& look, const Demand& demand, const planning::PlanOptions& options,
                        cluster::ClusterSnapshot& picture);
  bool CallOffFor(Look& look, const Unserved& unserved, planning::PlanOptions options,
                  const cluster::ClusterSnapshot& picture);
  bool Grow(Look& look, const Unserved& unserved, planning::PlanOptions options,
            const cluster::ClusterSnapshot& picture);
  void TellServed(Look& look, const Unserved& unserved, const planning::GrowthPlan& plan,
                  const std::set<int>& failed);
  bool AskFor(Look& look, Pool& pool, int count, const std::vector<std::string>& pods);
  void AskBySignal(Look& look, Pool& pool, int used, int count,
                   const std::vector<std::string>& pods);
  void NoteInVain(const Unserved& unserved, const planning::GrowthPlan& plan);

  // autoscaler/moves.cc
  void PlanMovesFor(Look& look, const Demand& demand, planning::PlanOptions options,
                    Unserved& unserved, cluster::ClusterSnapshot& picture);
  void CountMoved(const Look& look);
  bool AwaitsMoves(const cluster::Pod& pod, Time now);
  Unserved WithoutThoseWithMoves(const Look& look, const Unserved& unserved);
  std::set<int> StartReliefs(Look& look, const Unserved& unserved, const planning::MovePlan& plan);
  bool StartMoves(Look& look, const cluster::Pod& pod, const planning::PodMoves& relief);
  // autoscaler/shrink.cc
  void Shrink(Look& look, const Demand& demand, const cluster::ClusterSnapshot& picture);
  bool MayGo(const Look& look, const cluster::NodeInfo& node) const;
  void StartEmptying(Look& look, const planning::EmptiedNode& node);

  // autoscaler/tell.cc
  void TakeNotes(Look& look);
  void NoteUnreadable(const Look& look);
  bool TellInvalid(const Look& look, const std::string& pool, const std::string& why);
  void Record(ScalingDecision decision, Time now);
  void Judge(const cluster::Pod& pod, reconcile::WantedCondition condition, Time now);
  void ForgetVerdicts(const reconcile::Listers& view);
  void TellPods(Look& look);
  void ShowPools(const Look& look) const;
  void DecideBy(Time time) { decide_by_ = std::min(decide_by_, time); }
  reconcile::ReconcileResult Rest(const Look& look, bool news, const Status& error,
                                  const reconcile::ReconcileResult& moving) const;
  bool HasNews(const reconcile::Listers& view) const;

  const AutoscalerConfig config_;
  const scheduling::FrameworkChoice frameworks_;
  const gpu::Catalogue& catalogue_;
  PoolScaling scaling_;
  Metrics* const metrics_;
  Relocations relocations_;
  ScalingSignal signal_;

  bool looked_ = false;
  KnownLacks lacks_;
  cluster::ClusterContext around_;
  std::map<std::string, Known> known_;      // by pool
  std::map<std::string, PoolPtr> written_;  // pools that we wrote, newer than the cache
  // Removal marks that we wrote and the cache may not show yet, by node UID. The value is the node
  // count that its pool keeps; no value: the mark was removed.
  std::map<std::string, std::optional<int32_t>> marked_;
  // By node: the pool that was asked to remove it, as it was then.
  std::map<std::string, PoolPtr> leaving_;
  std::set<std::string> late_told_;  // UIDs of nodes whose overdue removal was reported
  uint64_t relocations_made_ = 0;

  // The next decision is made not before rest_until_, and at decide_by_ even if nothing changes.
  Time rest_until_{}, decide_by_{};
  // Cache versions of the last decision.
  uint64_t pods_version_ = 0, nodes_version_ = 0, around_version_ = 0;
  std::map<std::string, Time> first_seen_;  // by key and UID
  std::set<std::string> in_vain_;           // keys of pods that no plan could help
  RefusedByQuota refused_;                  // in the last decision
  std::map<std::string, Time> could_go_;    // by node: the time since it has been removable
  // By key and UID: the time since moves are planned and not started.
  std::map<std::string, Time> moves_planned_;
  // Pods moved in the last hour, by relocation and the node that they were moved from.
  std::map<std::pair<std::string, std::string>, Moved> moved_;

  EventQueue telling_{kAutoscalerName, 50};
  struct Verdict {
    reconcile::WantedCondition condition;
    Time written{};
  };
  std::map<std::string, Verdict> verdicts_;  // by pod key
  kube::WorkQueue untold_;                   // keys of pods whose condition is still to be written
  reconcile::Pace pods_pace_;
  struct Unreadable {
    std::string why;
    bool told = false;  // published in its status
    Time again{};       // if publishing failed: no attempt before this time
  };
  std::map<std::string, Unreadable> unreadable_;  // by pool
  std::deque<ScalingDecision> decisions_;
  uint64_t last_sequence_ = 0;
};

}  // namespace nos::controllers
