#include "controllers/scheduler.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "cluster/gpu_signs.h"
#include "cluster/pod_end.h"
#include "controllers/events.h"
#include "controllers/scheduler/pods.h"
#include "dra/cel_expressions.h"
#include "scheduling/explain_promises.h"
#include "scheduling/framework.h"
#include "scheduling/lost_node.h"
#include "scheduling/pod_state.h"

namespace nos::controllers {
namespace {

using scheduling::ClusterEvent;

// Compares only what filters and scores read: conditions change all the time.
bool SameToScheduling(const cluster::Node& a, const cluster::Node& b) {
  const auto same_taint = [](const cluster::Taint& left, const cluster::Taint& right) {
    return left.key == right.key && left.value == right.value && left.effect == right.effect;
  };
  const auto same_image = [](const cluster::NodeImage& left, const cluster::NodeImage& right) {
    return left.name == right.name && left.bytes == right.bytes;
  };
  return a.unschedulable == b.unschedulable && a.allocatable == b.allocatable &&
         a.meta.labels == b.meta.labels && cluster::HaveSameGpuSigns(a, b) &&
         std::ranges::equal(a.taints, b.taints, same_taint) &&
         std::ranges::equal(a.images, b.images, same_image);
}

// The node with the GPUs that the engine must not partition for now.
std::shared_ptr<const cluster::Node> Rested(const std::shared_ptr<const cluster::Node>& node,
                                            std::set<int> gpus) {
  if (gpus == node->resting_gpus) return node;
  auto rested = std::make_shared<cluster::Node>(*node);
  rested->resting_gpus = std::move(gpus);
  return rested;
}

}  // namespace

Scheduler::Scheduler(SchedulerConfig config, std::vector<SchedulerProfile> profiles,
                     const gpu::Catalogue& catalogue, const SchedulerThreads& threads,
                     Metrics* metrics, std::shared_ptr<dra::DeviceIndex> devices)
    : config_(config),
      profiles_(std::move(profiles)),
      engine_(catalogue),
      queue_(config_.queue),
      partition_requests_(catalogue, config_.partition_requests),
      metrics_(metrics),
      bindings_(engine_, partition_requests_, threads.binders, threads.wake,
                {config_.asks, config_.max_preparing, config_.partition_requests.deadline,
                 config_.report_partitioning_after},
                BindingCallbacks()),
      terminating_(engine_, gangs_),
      departed_(engine_, terminating_, config_.agent_timeout),
      waits_(engine_, config_.agent_timeout),
      nominations_(engine_, queue_, bindings_, terminating_, waits_, profiles_, threads.binders),
      foreign_(engine_, nominations_, terminating_),
      preemptor_(engine_, profiles_, gangs_, bindings_, terminating_, foreign_, nominations_,
                 waits_, metrics_, threads.binders, threads.wake),
      status_(engine_, profiles_, threads.reporter, threads.wake,
              {config_.reports_per_call, config_.reports_beside_bindings, config_.remedies_per_call,
               config_.remedies_beside_bindings_every, config_.max_reports, config_.warn_after,
               config_.refresh_remedies_after}),
      placer_(engine_, bindings_, nominations_, profiles_, threads.binders,
              config_.takeover_timeout),
      gang_placer_(engine_, queue_, gangs_, bindings_, placer_, profiles_, nominations_, preemptor_,
                   status_, metrics_),
      gang_bindings_(gangs_, bindings_) {
  for (const auto& [name, profile] : profiles_.all()) {
    const auto* quotas =
        profile.framework->quotas();  // in all profiles the same charge rules and grace
    if (quotas == nullptr) continue;
    engine_.SetChargeRules(quotas->options().charges);
    terminating_.SetMaxGrace(quotas->options().max_grace);
  }
  if (devices == nullptr) {
    devices = std::make_shared<dra::DeviceIndex>(
        dra::Features::All(), std::make_shared<dra::CelExpressions>(), catalogue);
  }
  engine_.FollowDevices(std::move(devices));
  engine_.OnNodeChange([this](std::string_view node) { bindings_.OnNodeChange(node); });
}

BindingCycle::Callbacks Scheduler::BindingCallbacks() {
  return {
      .bound =
          [this](const BindingCycle::Binding& binding, Time now) {
            metrics_.End(*binding.pod, SchedulerMetrics::Result::kScheduled);
            status_.Report(
                {.pod = binding.pod, .event = events::Scheduled(*binding.pod, binding.node)}, now);
          },
      .rolled_back = [this](const BindingCycle::Rollback& rollback,
                            Time now) { OnRollback(rollback, now); },
      .waits_for_instances =
          [this](const BindingCycle::Binding& binding, const std::string& message, Time now) {
            status_.Report({binding.pod, std::string(kPartitioningGpus),
                            fmt::format("waits for node {}: {}", binding.node, message)},
                           now);
          },
      .gang_member_waits = [this](const std::string& gang) { gang_bindings_.MarkDirty(gang, ""); },
  };
}

// Zeroes the pending-pods gauge: a scraper would otherwise keep the last value of a retired
// replica.
Scheduler::~Scheduler() { metrics_.Pending(scheduling::SchedulingQueue()); }

reconcile::ReconcileResult Scheduler::Reconcile(const std::string&, const reconcile::Listers& view,
                                                kube::Client& client, const Clock& clock) {
  const Time now = clock.Now();

  // 1. Bring the engine up to date: watch events, then results of our own calls, then timeouts of
  //    bindings. Watch events come first, because they may already show what a call has done.
  ApplyWatchEvents(view, now);
  placer_.Begin(now);
  CollectResults(now);
  bindings_.ExpireTimeouts(client, now);
  if (retired_) return Rest(now);  // a successor schedules from here on

  // 2. Finish what was decided earlier: these pods hold reservations, and a binding that fails
  //    releases capacity for the pods below. Gangs come after single pods, which may complete a
  //    gang.
  bindings_.Step(client, now);
  gang_bindings_.Step(client, now);

  // 3. Expire timeouts that change where pods may be scheduled, because no watch event announces
  //    them. Refresh precomputed inputs of scores if many pods have changed.
  ExpireTimeouts(now);
  placer_.GiveBackDevices(client, now);
  PrecomputeIfDue();

  // 4. Schedule pods, highest priority first, as far as bindings in flight allow.
  for (size_t i = 0; i < config_.decisions_per_call && HasRoomForDecisions(); ++i) {
    const auto pod = queue_.Take(now);
    if (!pod) break;
    ScheduleOne(*pod, client, now);
  }

  // 5. Carry out the decisions. Gangs that are complete now are bound. One patch per node requests
  //    the instances of all pods placed there, so it follows all decisions.
  gang_bindings_.Step(client, now);
  nominations_.WriteRemovals(client);
  bindings_.RequestInstances([&](const std::string& name) { return view.nodes.Get(name); }, client);
  CollectResults(now);  // results of calls made on this thread
  // A member whose write failed takes the places of the others along.
  gang_bindings_.Step(client, now);

  // 6. Publish conditions, Events and metrics last: they must not delay bindings.
  status_.Publish(client, Load(), now);
  metrics_.Pending(queue_);
  return Rest(now);
}

void Scheduler::ApplyWatchEvents(const reconcile::Listers& view, Time now) {
  const reconcile::Changes& changes = *view.changes;
  if (changes.everything) return ApplyEverything(view, now);
  if (!changes.context.empty()) bindings_.OnContextChange();
  for (const reconcile::ContextChange& change : changes.context) {
    engine_.ChangeContext(change.apply, change.kind, change.key);
    queue_.OnClusterEvent(
        {ClusterEvent::Kind::kContext, {}, {}, {}, {}, change.kind, change.before, change.after},
        now);
  }
  // A pod that waits for the devices of a pod that left goes first, as in RetryNominated.
  if (!changes.context.empty()) {
    const std::vector<Pod> released = departed_.OnClaims();
    Released(released, now);
    for (const Pod& pod : released) RetryNominated(pod->node_name);
  }
  for (const auto& change : changes.nodes) ApplyNode(change.before, change.after, now);
  if (!changes.context.empty() || !changes.nodes.empty()) foreign_.OnClusterChange(now);
  for (const auto& change : changes.pods) ApplyPod(change.before, change.after, now);
}

// Running pods come first: nodes refer to them, and they determine which part of a nominated pod's
// request is guaranteed by its quota.
void Scheduler::ApplyEverything(const reconcile::Listers& view, Time now) {
  if (view.context != nullptr) {
    engine_.ChangeContext(
        [&](cluster::ClusterContext& context) { context = view.context->Collect(); });
  }
  const auto pods = view.pods.Snapshot();
  const auto apply = [&](bool running) {
    for (const Pod& pod : *pods) {
      if (RunsSomewhere(pod) == running) ApplyPod(nullptr, pod, now);
    }
  };
  apply(true);
  for (const Node& node : *view.nodes.Snapshot()) ApplyNode(nullptr, node, now);
  apply(false);
}

void Scheduler::ApplyNode(const Node& before, const Node& after, Time now) {
  // Pods nominated to a lost node do not have to wait for victims there.
  if (before != nullptr && (after == nullptr || scheduling::IsLost(*after)) &&
      !scheduling::IsLost(*before)) {
    RetryNominated(before->meta.name);
  }
  if (after == nullptr) {
    engine_.RemoveNode(before->meta.name);
    queue_.OnClusterEvent({ClusterEvent::Kind::kNodeRemoved, before, {}, {}, {}, {}}, now);
    return Released(departed_.OnNodeRemoved(before->meta.name), now);
  }
  if (before != nullptr && SameToScheduling(*before, *after)) return;
  engine_.SetNode(Rested(after, partition_requests_.Resting(after->meta.name, now)));
  const auto kind =
      before == nullptr ? ClusterEvent::Kind::kNodeAdded : ClusterEvent::Kind::kNodeChanged;
  queue_.OnClusterEvent({kind, before, after, {}, {}, {}}, now);
  Released(departed_.OnNode(before, after, now), now);
  if (before != nullptr && !cluster::ReportTheSame(*before, *after)) {
    RetryNominated(after->meta.name);
  }
}

void Scheduler::ApplyPod(const Pod& before, const Pod& after, Time now) {
  const Pod& known = after != nullptr ? after : before;
  const std::string key = known->Key();
  const bool successor =
      before != nullptr && after != nullptr && before->meta.uid != after->meta.uid;
  const bool gone = after == nullptr || successor;
  const bool pending = after != nullptr && scheduling::IsPending(*after);

  // 1. Settle what the scheduler has under way for the pod.
  if (gone || !pending) OnNotPending(known, gone, now);
  terminating_.OnPod(key, after, successor, now);
  gangs_.Set(before, after);
  gang_bindings_.OnPod(before, after, now);

  // 2. Bring the engine and the queue up to date.
  after == nullptr ? engine_.RemovePod(key) : engine_.SetPod(after);
  if (before != nullptr && (gone || cluster::HasEnded(*after))) placer_.OnGone(before, gone, now);
  const bool ends = RunsSomewhere(before) && (gone || !RunsSomewhere(after));
  if (ends) departed_.Add(*before, gone || !cluster::HasEnded(*after), now);
  const SchedulerProfile* profile = profiles_.Find(*known);
  if (pending && profile != nullptr) Enqueue(before, after, *profile, now);
  if (pending && profile == nullptr) foreign_.OnPod(after, now);

  // 3. Wake pods that the change may help. A pod's requests are the same whether it is pending or
  //    running, so a binding is no churn.
  const bool ended = RunsSomewhere(before) && !RunsSomewhere(after);
  churn_.changes += before == nullptr || after == nullptr || ended ? 1 : 0;
  churn_.pods += (after != nullptr ? 1 : 0);
  churn_.pods -= (before != nullptr ? 1 : 0);
  NotifyQueue(before, after, now);
}

void Scheduler::OnNotPending(const Pod& pod, bool gone, Time now) {
  const std::string key = pod->Key();
  bindings_.OnPodUpdate(pod, now);
  queue_.Remove(key);
  status_.OnNotPending(key);
  if (gone) status_.OnDeleted(key);
  metrics_.Forget(key);
  nominations_.Set(pod, "", now);
  waits_.End(key);
  nominations_.UnmarkEvicting(key);
  preemptor_.Forget(key);
  foreign_.Forget(key);
}

void Scheduler::Enqueue(const Pod& before, const Pod& pod, const SchedulerProfile& profile,
                        Time now) {
  scheduling::Verdict gate = scheduling::Verdict::Fits();
  for (const scheduling::PreEnqueuePlugin* plugin : profile.framework->gates()) {
    if (gate.fits()) gate = plugin->PreEnqueue(*pod);
  }
  if (gate.fits() && scheduling::IsGated(*pod)) {
    gate = scheduling::Verdict::Unresolvable(scheduling::SchedulingGated(*pod));
  }
  const bool nominated = !pod->nominated_node.empty();
  if (nominated || (before != nullptr && !before->nominated_node.empty())) {
    nominations_.Set(pod, pod->nominated_node, now);
  }
  queue_.Set(pod, gate, now);
}

void Scheduler::NotifyQueue(const Pod& before, const Pod& after, Time now) {
  const bool ran = RunsSomewhere(before), runs = RunsSomewhere(after);
  if (ran && !runs) {
    queue_.OnClusterEvent({ClusterEvent::Kind::kPodLeft, {}, {}, before, after, {}}, now);
    // With an agent its report comes first.
    const cluster::NodeInfo* node = engine_.snapshot().Find(before->node_name);
    if (node != nullptr && !scheduling::IsBehind(*node)) RetryNominated(before->node_name);
  } else if (!ran && runs) {
    queue_.OnClusterEvent({ClusterEvent::Kind::kPodBound, {}, {}, before, after, {}}, now);
  } else if (ran && runs &&
             (before->meta.labels != after->meta.labels ||
              before->meta.deleted.has_value() != after->meta.deleted.has_value() ||
              cluster::RequestsOf(*before) != cluster::RequestsOf(*after))) {
    queue_.OnClusterEvent({ClusterEvent::Kind::kPodChanged, {}, {}, before, after, {}}, now);
  }
}

void Scheduler::CollectResults(Time now) {
  bindings_.CollectResults(now);
  Evictor::Outcome evictions = preemptor_.CollectResults();
  for (const std::string& preemptor : evictions.failed) {
    if (bindings_.Find(preemptor) != nullptr) continue;
    if (const auto pod = queue_.TakeThis(preemptor)) queue_.Failed(*pod, now);
  }
  for (PodNotice& event : evictions.events) status_.Report(std::move(event), now);
  status_.CollectResults(now);
}

void Scheduler::OnRollback(const BindingCycle::Rollback& rollback, Time now) {
  const Pod& pod = rollback.pod;
  const std::string key = pod->Key();
  const bool failed = rollback.reason.has_value();
  if (failed) {
    metrics_.End(*pod, SchedulerMetrics::Result::kError);
    status_.Report({pod, "SchedulerError", fmt::format("{}: {}", rollback.node, *rollback.reason)},
                   now);
    if (!pod->promised.empty() && !rollback.keeps_nomination) nominations_.RemoveLater(pod);
  } else {
    queue_.Remove(key);
  }
  queue_.OnClusterEvent({ClusterEvent::Kind::kPodLeft, {}, {}, pod, {}, {}}, now);
  if (!rollback.gang.empty()) {
    gang_bindings_.MarkDirty(rollback.gang, fmt::format("{} lost its place", key));
  }
  if (!failed) return;
  if (!rollback.keeps_nomination) nominations_.Set(pod, "", now);
  queue_.Failed(pod, now);
}

// GPUs in back-off, agents that do not report in time, victims that do not end in time, nominations
// by other schedulers.
void Scheduler::ExpireTimeouts(Time now) {
  ExpireNodeBackoff(now);
  for (const std::string& key : waits_.TakeExpired(now)) TryAgain(key, now);
  for (const std::string& key : placer_.TakeHeld(now)) TryAgain(key, now);
  foreign_.ExpireUnconfirmed(now);
  RetryForOverdue(now);
  Released(departed_.TakeExpired(now), now);
}

// The preemptors choose other victims.
void Scheduler::RetryForOverdue(Time now) {
  const std::vector<Pod> overdue = terminating_.TakeOverdue(now);
  for (const Pod& pod : overdue) {
    Log(LogLevel::kWarn, "waiting no longer for the end of Pod",
        {{"pod", pod->Key()}, {"node", pod->node_name}});
  }
  if (overdue.empty()) return;
  for (const std::string& key : std::set(nominations_.evicting())) TryAgain(key, now);
}

// Wakes pods that wait for GPUs or quota of deleted pods.
void Scheduler::Released(const std::vector<Pod>& departed, Time now) {
  for (const Pod& pod : departed) {
    queue_.OnClusterEvent({ClusterEvent::Kind::kPodLeft, {}, {}, pod, {}, {}}, now);
  }
}

void Scheduler::ExpireNodeBackoff(Time now) {
  for (const std::string& name : partition_requests_.TakeRestChanges(now)) {
    const cluster::NodeInfo* info = engine_.snapshot().Find(name);
    if (info == nullptr) continue;
    const Node before = info->node;
    const Node after = Rested(before, partition_requests_.Resting(name, now));
    if (after == before) continue;
    engine_.SetNode(after);
    queue_.OnClusterEvent({ClusterEvent::Kind::kNodeChanged, before, after, {}, {}, {}}, now);
  }
}

// Recomputes after so many changes that 2 % of the known pods differ.
void Scheduler::PrecomputeIfDue() {
  if (churn_.changes * 50 < churn_.pods || churn_.changes == 0) return;
  churn_.changes = 0;
  const std::vector<Pod> waiting = queue_.All();
  std::set<const scheduling::Framework*> precomputed;
  for (const auto& [name, profile] : profiles_.all()) {
    const bool precomputes =
        std::ranges::any_of(profile.framework->scorers(),
                            [](const auto& scorer) { return scorer.plugin->Precomputes(); });
    if (precomputes && precomputed.insert(profile.framework).second) {
      engine_.Precompute(*profile.framework, waiting);
    }
  }
}

bool Scheduler::HasRoomForDecisions() const {
  return bindings_.size() - bindings_.preparing() < config_.max_bindings;
}

void Scheduler::ScheduleOne(const Pod& pod, kube::Client& client, Time now) {
  if (const auto placed = gang_placer_.Place(pod, client, now)) {
    for (const auto& [member, diagnosis] : placed->refusals) Refuse(member, diagnosis, client, now);
    for (const std::string& key : placed->chosen) placer_.StartBinding(key, client, now);
    return;
  }
  metrics_.Begin(*pod);
  scheduling::Diagnosis diagnosis;
  if (!placer_.Place(pod, diagnosis, now)) return Refuse(pod, diagnosis, client, now);
  placer_.StartBinding(pod->Key(), client, now);
}

void Scheduler::Refuse(const Pod& pod, const scheduling::Diagnosis& diagnosis, kube::Client& client,
                       Time now) {
  const SchedulerProfile& profile = profiles_.Of(*pod);
  auto by = diagnosis.by;  // empty: all may help
  const bool reclaims = profile.reclaims && profile.framework->quotas() != nullptr;
  if (reclaims && !by.empty()) by.push_back(&preemptor_.quota_terms());
  // Must precede Preempt, whose evictions may wake the pod.
  queue_.Refused(pod, std::move(by), now);
  std::string why = diagnosis.ToString();
  const std::string preemption = preemptor_.Preempt(profile, pod, client, now);
  if (!preemption.empty()) why += " preemption: " + preemption;
  placer_.PostFilter(pod, client, now);
  metrics_.End(*pod, SchedulerMetrics::Result::kUnschedulable);
  status_.Report({pod, "Unschedulable", std::move(why), true}, now);
}

// Pods that wait for a place on the node are tried at once, without a back-off: a pod that has just
// been created, such as the successor of the pod that left, would take the place.
void Scheduler::RetryNominated(const std::string& node) {
  for (const Pod& pod : engine_.Nominated(node)) {
    if (bindings_.Find(pod->Key()) == nullptr) queue_.Activate(pod->Key());
  }
}

void Scheduler::TryAgain(const std::string& key, Time now) {
  if (bindings_.Find(key) != nullptr) return;
  if (const auto pod = queue_.TakeThis(key)) queue_.Return(*pod, now);
}

reconcile::ReconcileResult Scheduler::Rest(Time now) const {
  if (!retired_ && (bindings_.HasNews() || gang_bindings_.HasDirty() ||
                    (queue_.ready() > 0 && HasRoomForDecisions()))) {
    return reconcile::ReconcileResult::Again(Duration::zero());
  }
  std::optional<Time> next = bindings_.NextDeadline();
  if (retired_) {
    return next ? reconcile::ReconcileResult::Again(*next - now)
                : reconcile::ReconcileResult::Done();
  }
  for (const std::optional<Time> due :
       {queue_.NextDue(), status_.NextDue(Load(), now), partition_requests_.NextRestEnd(),
        waits_.NextDue(), terminating_.NextDue(), foreign_.NextDue(), departed_.NextDue(),
        placer_.NextDue()}) {
    if (due) next = std::min(next.value_or(Time::max()), *due);
  }
  return next ? reconcile::ReconcileResult::Again(std::max(*next - now, Duration::zero()))
              : reconcile::ReconcileResult::Done();
}

}  // namespace nos::controllers
