// What the parts of the autoscaler share. Internal to it.
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

#include "cluster/snapshot.h"
#include "cluster/surroundings.h"
#include "controllers/autoscaler.h"
#include "reconcile/condition.h"
#include "controllers/planned_gangs.h"
#include "controllers/pending/planned_quotas.h"
#include "controllers/autoscaler/pool_state.h"
#include "controllers/pending/telling.h"
#include "kube/work_queue.h"
#include "planning/moves.h"
#include "planning/shrink.h"

namespace nos::controllers {

inline constexpr MetricFamily kPoolNodeCounts{
    MetricFamily::Kind::kGauge, "nos_pool_nodes",
    "Nodes of each pool by state: there, coming (asked for, or not ready yet), going (the pool is "
    "told to take it away)."};
inline constexpr MetricFamily kPoolPrice{MetricFamily::Kind::kGauge, "nos_pool_price_per_hour",
                                         "What the nodes that each pool has cost for an hour."};
inline constexpr MetricFamily kScalingDecisions{
    MetricFamily::Kind::kCounter, "nos_autoscaler_decisions_total",
    "What the autoscaler decided, by action: grow, shrink, move, call-off, close, keep."};
inline constexpr MetricFamily kUnservedPods{
    MetricFamily::Kind::kGauge, "nos_autoscaler_unserved_pods",
    "Pods that wait and that no cutting of the GPUs there are can place, within their quotas."};
inline constexpr MetricFamily kScalingPlan{MetricFamily::Kind::kDuration,
                                           "nos_autoscaler_plan_seconds",
                                           "How long it took to decide what to do for pods."};

// On a node that its pool has been told of, for sure: whatever the pool wants later, it is not told
// again. Until that is known the mark says what the pool was to want.
inline constexpr int32_t kTold = cluster::kMostPoolNodes;

const kube::Resource& PoolResource();  // NodePools
kube::ObjectReference ReferenceTo(const cluster::NodePool& pool);
kube::ObjectReference ReferenceToNode(const std::string& name);
kube::ObjectReference ReferenceTo(const cluster::Pod& pod);

// Pods that no plan for the nodes there are places, and their gangs, by their place among them.
struct Unserved {
  std::vector<std::shared_ptr<const cluster::Pod>> pods;
  std::vector<planning::Gang> gangs;
};
// Without those, by their place. Gangs that have enough then are none any more.
Unserved Without(const Unserved& all, const std::set<int>& gone);

class Autoscaler::Impl {
 public:
  Impl(AutoscalerConfig config, scheduling::FrameworkChoice frameworks,
       const gpu::Catalogue& catalogue, PoolScaling scaling, Metrics* metrics);

  reconcile::Outcome Reconcile(const reconcile::View& view, kube::Client& client, const Clock& clock);
  const std::deque<ScalingDecision>& decisions() const { return decisions_; }

 private:
  using Pod = std::shared_ptr<const cluster::Pod>;
  using Node = std::shared_ptr<const cluster::Node>;
  using PoolPtr = std::shared_ptr<const cluster::NodePool>;

  // What is remembered of a pool between two looks.
  struct Known {
    std::string target;              // what `scale` is of
    std::optional<PoolScale> scale;  // as read last, or as written
    bool fresh = false;              // it may be written upon
    Time read_again{};
    Status read_error, write_error;
    Time write_again{};  // after write_error
    Time grown{};        // when it was last asked for more
    int unanswered = 0;  // in a row: writes of which it is not known what came of them
    int silent = 0;      // in a row: reads that its webhook did not answer
    Time silent_since{};
    std::optional<cluster::NodeTemplate> learnt;  // of its nodes, as its status is to say
    Time learn_again{};
    uint64_t learnt_from = 0;         // the version of the nodes
    PoolPtr described, described_of;  // the pool with what was learnt, and as it was read
    const Status& error() const { return read_error.ok() ? write_error : read_error; }
    bool MayWrite() const { return fresh && write_error.ok(); }
  };
  struct Pool {
    PoolPtr pool;  // with what was learnt
    Known* known = nullptr;
    PoolNodes nodes{};
    PoolState state{};
    PoolPtr told{};  // as it was read
  };
  struct Look {
    const reconcile::View& view;
    kube::Client& client;
    const Clock& clock;
    Time now;
    std::vector<Node> nodes{};
    std::vector<int> pool_of{};                     // by node, of `pools`; -1: of none
    std::vector<Pool> pools{};                      // by name
    std::map<std::string, Removal> removals{};      // by node
    std::set<std::string, std::less<>> starting{};  // nodes
    std::set<std::string, std::less<>> filled{};    // nodes that waiting pods have a place on
    bool waited = false;                            // in vain, for the answer of a webhook
    Pool* Find(const std::string& name);
  };
  struct Demand {
    std::vector<Pod> all;  // that count: no demand pods
    GangedPods waiting;    // for long enough
    bool unsettled = false, placeholders_wait = false;
    std::set<std::string, std::less<>> busy;
    std::set<std::string, std::less<>> held;  // nodes where places are, for pods that move there
  };

  // autoscaler_pools.cc
  void TakeIn(const reconcile::View& view);
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

  // autoscaler_removals.cc
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

  // autoscaler_growth.cc
  void Decide(Look& look);
  // Says when what begins now has taken as long as it may.
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

  // autoscaler_moves.cc
  void Relieve(Look& look, const Demand& demand, planning::PlanOptions options, Unserved& unserved,
               cluster::ClusterSnapshot& picture);
  void CountMoved(const Look& look);
  bool AwaitsMoves(const cluster::Pod& pod, Time now);
  Unserved WithoutThoseWithMoves(const Look& look, const Unserved& unserved);
  std::set<int> StartReliefs(Look& look, const Unserved& unserved, const planning::MovePlan& plan);
  bool StartMoves(Look& look, const cluster::Pod& pod, const planning::Relief& relief);
  // autoscaler_shrink.cc
  void Shrink(Look& look, const Demand& demand, const cluster::ClusterSnapshot& picture);
  bool MayGo(const Look& look, const cluster::NodeInfo& node) const;
  void StartEmptying(Look& look, const planning::EmptiedNode& node);

  // autoscaler_tell.cc
  void TakeNotes(Look& look);
  void NoteUnreadable(const Look& look);
  bool TellInvalid(const Look& look, const std::string& pool, const std::string& why);
  void Record(ScalingDecision decision, Time now);
  void Judge(const cluster::Pod& pod, reconcile::WantedCondition condition, Time now);
  void ForgetVerdicts(const reconcile::View& view);
  void TellPods(Look& look);
  void ShowPools(const Look& look) const;
  void DecideBy(Time time) { decide_by_ = std::min(decide_by_, time); }
  reconcile::Outcome Rest(const Look& look, bool news, const Status& error, const reconcile::Outcome& moving) const;
  bool HasNews(const reconcile::View& view) const;

  const AutoscalerConfig config_;
  const scheduling::FrameworkChoice frameworks_;
  const gpu::Catalogue& catalogue_;
  PoolScaling scaling_;
  Metrics* const metrics_;
  Relocations relocations_;
  ScalingSignal signal_;

  bool looked_ = false;
  KnownLacks lacks_;
  cluster::Surroundings around_;
  std::map<std::string, Known> known_;      // by pool
  std::map<std::string, PoolPtr> written_;  // newer than what the cache shows
  // Marks that the cache may not show yet, by the node's uid: nodes that its pool is left with;
  // none: it is kept.
  std::map<std::string, std::optional<int32_t>> marked_;
  std::map<std::string, PoolPtr> leaving_;  // nodes that pools are told of, as those were then
  std::set<std::string> late_told_;         // uids of nodes
  uint64_t relocations_made_ = 0;

  // When to decide next: not before, and even if nothing changes.
  Time rest_until_{}, decide_by_{};
  uint64_t pods_version_ = 0, nodes_version_ = 0, around_version_ = 0;  // that were decided on
  std::map<std::string, Time> first_seen_;                              // by key and uid
  std::set<std::string> in_vain_;              // keys of pods that nothing was found for
  RefusedByQuota refused_;                     // at the last decision
  std::map<std::string, Time> could_go_;       // since when, by node
  std::map<std::string, Time> moves_planned_;  // and not begun: since when, by key and uid
  // Of the last hour, by relocation and the node that pods were moved away from.
  std::map<std::pair<std::string, std::string>, Moved> moved_;

  Telling telling_{kAutoscalerName, 50};
  struct Verdict {
    reconcile::WantedCondition condition;
    Time written{};
  };
  std::map<std::string, Verdict> verdicts_;  // by pod key
  kube::WorkQueue untold_;                   // pod keys
  reconcile::Pace pods_pace_;
  struct Unreadable {
    std::string why;
    bool told = false;  // in its status
    Time again{};       // not before, where that was refused
  };
  std::map<std::string, Unreadable> unreadable_;  // by pool
  std::deque<ScalingDecision> decisions_;
  uint64_t last_sequence_ = 0;
};

}  // namespace nos::controllers
