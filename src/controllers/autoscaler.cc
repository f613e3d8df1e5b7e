#include "controllers/autoscaler.h"

#include <algorithm>
#include <utility>

#include "controllers/autoscaler/consolidation.h"
#include "controllers/autoscaler/growth.h"
#include "controllers/autoscaler/moves.h"
#include "controllers/autoscaler/pending_pods.h"
#include "controllers/autoscaler/pod_conditions.h"
#include "controllers/autoscaler/pools/observer.h"
#include "controllers/autoscaler/removal_cancellation.h"
#include "controllers/autoscaler/removals.h"
#include "controllers/autoscaler/scaling_events.h"
#include "controllers/autoscaler/signal_publisher.h"
#include "controllers/metrics.h"

namespace nos::controllers {
namespace {

// Time limit of each API call, so that one slow call does not use up a whole reconciliation.
constexpr Duration kCallTimeout = std::chrono::seconds(15);

}  // namespace

// The loop. Each decision is a collaborator with its own state.
class Autoscaler::Impl {
 public:
  Impl(AutoscalerConfig config, scheduling::FrameworkChoice frameworks,
       const gpu::Catalogue& catalogue, PoolScaling scaling, Metrics* metrics)
      : config_(std::move(config)),
        frameworks_(std::move(frameworks)),
        scaling_(std::move(scaling)),
        metrics_(metrics),
        relocations_(config_.relocations),
        schedule_(config_.pool_sync_interval),
        events_(config_.remembered_decisions, metrics),
        conditions_(events_),
        counts_(config_, scaling_, events_),
        observer_(config_, catalogue, counts_, statuses_, events_, schedule_),
        removals_(config_, relocations_, scaling_, counts_, events_),
        pending_(config_, frameworks_, catalogue, relocations_, conditions_, schedule_),
        moves_(config_, frameworks_, relocations_, ids_, pending_, events_, conditions_, schedule_),
        growth_(config_, frameworks_, counts_, statuses_, events_, conditions_, schedule_),
        consolidation_(config_, frameworks_, relocations_, ids_, events_, schedule_),
        signals_(config_, events_, schedule_) {}

  reconcile::ReconcileResult Reconcile(const reconcile::Listers& view, kube::Client& client,
                                       const Clock& clock);
  const std::deque<ScalingDecision>& decisions() const { return events_.decisions(); }

 private:
  const cluster::ClusterContext& UpdateContext(const reconcile::Listers& view);
  void Decide(const ScalingCycle& cycle, const cluster::ClusterContext& context,
              ObservedCluster& cluster);
  void ReportRelocations(const ScalingCycle& cycle);
  Time NextCall(const ScalingCycle& cycle, const ObservedCluster& cluster) const;

  const AutoscalerConfig config_;
  const scheduling::FrameworkChoice frameworks_;
  PoolScaling scaling_;
  Metrics* const metrics_;
  Relocations relocations_;
  RelocationIds ids_;
  std::optional<cluster::ClusterContext> context_;  // absent until the first call
  DecisionSchedule schedule_;
  ScalingEvents events_;
  PodConditions conditions_;
  DesiredCounts counts_;
  PoolStatuses statuses_;
  PoolObserver observer_;
  NodeRemovals removals_;
  PendingPods pending_;
  PodMover moves_;
  Growth growth_;
  Consolidation consolidation_;
  SignalPublisher signals_;
};

reconcile::ReconcileResult Autoscaler::Impl::Reconcile(const reconcile::Listers& view,
                                                       kube::Client& client, const Clock& clock) {
  // 1. Bring the state up to date: cached objects, then the wanted and existing nodes of each pool.
  kube::Client hasty = client.Within(kCallTimeout);
  const ScalingCycle cycle{view, hasty, clock, clock.Now()};
  const cluster::ClusterContext& context = UpdateContext(view);
  ObservedCluster cluster;
  cluster.nodes = *view.nodes.Snapshot();
  cluster.removals = removals_.Observe(cluster.nodes, cycle.now);
  const Status error = observer_.Observe(cycle, context, cluster);
  // 2. Continue relocations and node removals. If a removal changes a pool, the counts above are
  //    out of date, so the next call decides.
  const reconcile::ReconcileResult moving = relocations_.Step(view, hasty, clock);
  ReportRelocations(cycle);
  removals_.ReportRemoved(view);
  const bool changed = removals_.Continue(cycle, cluster);
  // 3. Decide about pending pods and idle nodes, if anything changed or a deadline has passed.
  if (!changed && schedule_.IsDue(view, cycle.now)) {
    Decide(cycle, context, cluster);
    signals_.Publish(cycle, cluster);
  }
  // 4. Publish results last: they include what steps 1 to 3 decided.
  if (metrics_ != nullptr) SetPoolMetrics(cluster, *metrics_);
  conditions_.Forget(view);
  conditions_.Write(cycle);
  if (events_.Due() <= clock.Now()) events_.Publish(view, client, clock);
  // 5. Rest until something is due.
  const Time now = clock.Now();
  Time next = NextCall(cycle, cluster);
  if (moving.again) next = std::min(next, now + *moving.again);
  if (changed) next = now;
  reconcile::ReconcileResult outcome =
      reconcile::ReconcileResult::Again(std::max(next - now, Duration::zero()));
  outcome.error = moving.error.ok() ? error : moving.error;
  return outcome;
}

const cluster::ClusterContext& Autoscaler::Impl::UpdateContext(const reconcile::Listers& view) {
  if (!context_ || view.changes == nullptr || view.changes->everything) {
    return context_.emplace(view.context->Collect());
  }
  for (const reconcile::ContextChange& change : view.changes->context) change.apply(*context_);
  return *context_;
}

void Autoscaler::Impl::ReportRelocations(const ScalingCycle& cycle) {
  events_.OfRelocations(relocations_.TakeNotes(), cycle.view, cycle.now);
}

void Autoscaler::Impl::Decide(const ScalingCycle& cycle, const cluster::ClusterContext& context,
                              ObservedCluster& cluster) {
  const Time begin = cycle.clock.Now();
  schedule_.Begin(cycle.view, begin);
  // 1. Find the pending pods that existing nodes cannot run. The snapshot then contains the pods
  //    that they can run.
  const PendingDemand demand = pending_.Collect(cycle, context);
  planning::PlanOptions options;
  options.objective = config_.objective;
  options.now = begin;
  options.out_of_time = cycle.TimeLimit(config_.plan_timeout);
  cluster::ClusterSnapshot snapshot = pending_.BuildSnapshot(cluster, demand.all, context);
  NodeNames used;  // nodes on which plans place pending pods
  UnschedulablePods unschedulable =
      pending_.FindUnschedulable(cycle, context, demand, options, snapshot, used);
  if (metrics_ != nullptr) {
    metrics_->Set(kUnschedulablePods, {}, static_cast<double>(unschedulable.pods.size()));
  }
  // 2. Cancel removals first: a node that stays is available at once. Everything else is then
  //    decided again with this node.
  const bool stays = CancelRemovals(cycle, cluster, unschedulable, {snapshot, frameworks_, options},
                                    relocations_, removals_);
  ReportRelocations(cycle);
  if (stays) {
    schedule_.DecideBy(begin);
  } else {
    // 3. Move pods before requesting nodes: freed capacity is cheaper than a new node.
    moves_.Plan(cycle, cluster, demand, options, {unschedulable, snapshot, used});
    // 4. Request nodes for the remaining pods.
    const GrowthOutcome growth =
        growth_.Grow(cycle, cluster, unschedulable, options, snapshot, used);
    pending_.YieldQuota(unschedulable, growth.left_out);
    // 5. Drain idle nodes only if no pending pod could use them. Otherwise their stabilisation
    //    starts over. A pending placeholder is about to take capacity that drains could count on.
    if (!growth.all_served) consolidation_.Restart();
    if (growth.all_served && !demand.unsettled && !demand.placeholders_wait) {
      consolidation_.Drain(cycle, cluster, std::move(snapshot), used);
    }
  }
  // 6. Pause for a multiple of the time spent, so that decisions use a bounded share of the time.
  const Time end = cycle.clock.Now();
  if (metrics_ != nullptr) metrics_->Observe(kScalingPlan, {}, end - begin);
  schedule_.End(begin, end);
}

// When something is due that the autoscaler itself has started.
Time Autoscaler::Impl::NextCall(const ScalingCycle& cycle, const ObservedCluster& cluster) const {
  Time next = schedule_.Next(cycle.view);
  for (const ObservedPool& pool : cluster.pools) {
    next = std::min(next, pool.memory->pool_sync_interval);
    const PoolStatus& status = pool.state.status;
    // A closed_until in the past can remain in the status while the pool cannot be read.
    const bool opens = status.closed_until && *status.closed_until > cycle.now;
    if (opens) next = std::min(next, *status.closed_until);
  }
  next = std::min(next, events_.Due());
  if (const auto due = conditions_.NextDue()) next = std::min(next, *due);
  return next;
}

Autoscaler::Autoscaler(AutoscalerConfig config, scheduling::FrameworkChoice frameworks,
                       const gpu::Catalogue& catalogue, PoolScaling scaling, Metrics* metrics)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(frameworks), catalogue,
                                   std::move(scaling), metrics)) {}

Autoscaler::~Autoscaler() = default;

reconcile::ReconcileResult Autoscaler::Reconcile(const std::string&, const reconcile::Listers& view,
                                                 kube::Client& client, const Clock& clock) {
  return impl_->Reconcile(view, client, clock);
}

const std::deque<ScalingDecision>& Autoscaler::decisions() const { return impl_->decisions(); }

reconcile::RunnerOptions WatchingForAutoscaler(reconcile::RunnerOptions options) {
  options.watch_context = true;
  options.context_kinds.clear();
  return options;
}

}  // namespace nos::controllers
