#include "controllers/scheduler.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "cluster/gpu_signs.h"
#include "controllers/scheduler/internal.h"
#include "reconcile/node_write.h"
#include "scheduling/explain_promises.h"
#include "scheduling/pod_state.h"

namespace nos::controllers {
namespace {

using scheduling::ClusterEvent;

constexpr kube::BackOff kTellAgain{std::chrono::seconds(1), std::chrono::minutes(5)};

// Compares only what filters and scores read: conditions change all the time.
bool SameToScheduling(const cluster::Node& a, const cluster::Node& b) {
  const auto same_taint = [](const cluster::Taint& left, const cluster::Taint& right) {
    return left.key == right.key && left.value == right.value && left.effect == right.effect;
  };
  const auto same_image = [](const cluster::NodeImage& left, const cluster::NodeImage& right) {
    return left.name == right.name && left.bytes == right.bytes;
  };
  return a.unschedulable == b.unschedulable && a.allocatable == b.allocatable &&
         a.meta.labels == b.meta.labels && cluster::SayTheSameOfGpus(a, b) &&
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
                     const gpu::Catalogue& catalogue, SchedulerThreads threads, Metrics* metrics)
    : config_(std::move(config)),
      threads_(std::move(threads)),
      engine_(catalogue),
      queue_(config_.queue),
      cuts_(catalogue, config_.cuts),
      measures_(metrics),
      untold_(kTellAgain),
      shared_(std::make_shared<Shared>()) {
  for (SchedulerProfile& profile : profiles) {
    std::string name = profile.scheduler_name;
    const auto* quotas = profile.framework->quotas();  // all profiles have the same charge rules
    if (quotas != nullptr) engine_.SetChargeRules(quotas->options().charges);
    profiles_.insert_or_assign(std::move(name), std::move(profile));
  }
  shared_->wake = threads_.wake;
  engine_.OnNodeChange([this](std::string_view node) {
    const auto on = preparing_on_.find(node);
    if (on != preparing_on_.end()) due_.insert(on->second.begin(), on->second.end());
  });
}

// Zeroes the pending-pods gauge: a scraper would otherwise keep the last value of a retired
// replica.
Scheduler::~Scheduler() { measures_.Pending(scheduling::SchedulingQueue()); }

reconcile::ReconcileResult Scheduler::Reconcile(const std::string&, const reconcile::Listers& view,
                                                kube::Client& client, const Clock& clock) {
  const Time now = clock.Now();

  // 1. Bring the engine up to date: watch events, then results of our own calls, then timeouts of
  //    bindings. Watch events come first, because they may already show what a call has done.
  TakeIn(view, now);
  TakeAnswers(now);
  Expire(client, now);
  if (retired_) return Rest(now);  // a successor schedules from here on

  // 2. Finish what was decided earlier: these pods hold reservations, and a binding that fails
  //    releases capacity for the pods below. Gangs come after single pods, which may complete a
  //    gang.
  answered_ = false;
  PrepareDue(client, now);
  LookAtGangs(client, now);

  // 3. Expire timeouts that change where pods may be scheduled, because no watch event announces
  //    them: GPUs in back-off, agents that do not report, nominations by other schedulers. Refresh
  //    precomputed score data if many pods have changed.
  ExpireNodeBackoff(now);
  ExpireAgentTimeouts(now);
  ExpireForeignNominations(now);
  PrecomputeIfDue();

  // 4. Schedule pods, highest priority first, as far as bindings in flight allow.
  for (size_t i = 0; i < config_.decisions_per_call && HasRoomForDecisions(); ++i) {
    const auto pod = queue_.Take(now);
    if (!pod) break;
    Decide(*pod, client, now);
  }

  // 5. Carry out the decisions. Gangs that are complete now are bound. One patch per node requests
  //    the instances of all pods placed there, so it follows all decisions.
  LookAtGangs(client, now);
  WriteCuts(view, client);
  TakeAnswers(now);  // results of calls made on this thread

  // 6. Publish conditions, Events and metrics last: they must not delay bindings.
  TellSome(client, now);
  measures_.Pending(queue_);
  return Rest(now);
}

bool Scheduler::HasRoomForDecisions() const {
  return bindings_.size() - preparing_.size() < config_.most_bindings;
}

reconcile::ReconcileResult Scheduler::Rest(Time now) const {
  if (!retired_ &&
      (answered_ || !dirty_gangs_.empty() || (queue_.ready() > 0 && HasRoomForDecisions()))) {
    return reconcile::ReconcileResult::Again(Duration::zero());
  }
  std::optional<Time> next = retired_ ? std::nullopt : queue_.NextDue();
  const auto consider = [&](Time when) { next = next ? std::min(*next, when) : when; };
  if (!deadlines_.empty()) consider(deadlines_.begin()->first);
  if (retired_)
    return next ? reconcile::ReconcileResult::Again(*next - now)
                : reconcile::ReconcileResult::Done();
  if (const auto untold = untold_.NextDue(); untold && !telling_) consider(*untold);
  if (!unexplained_.empty() && !telling_) consider(WhenToExplain(now));
  if (const auto rested = cuts_.NextRestEnd()) consider(*rested);
  if (!patience_ends_.empty()) consider(patience_ends_.begin()->first);
  for (const auto& [key, promise] : foreign_) {
    if (!engine_.NomineeNode(key).empty()) consider(promise.until);
  }
  return next ? reconcile::ReconcileResult::Again(std::max(*next - now, Duration::zero()))
              : reconcile::ReconcileResult::Done();
}

const SchedulerProfile* Scheduler::ProfileFor(const cluster::Pod& pod) const {
  const auto found = profiles_.find(pod.scheduler_name);
  return found == profiles_.end() ? nullptr : &found->second;
}

void Scheduler::Post(kube::Workers* workers, kube::Client& client, kube::Workers::Call call) {
  workers != nullptr ? workers->Post(std::move(call)) : call(client);
}

void Scheduler::TakeIn(const reconcile::Listers& view, Time now) {
  if (view.changes->everything) {
    if (view.around != nullptr) {
      engine_.ChangeContext(
          [&](cluster::ClusterContext& around) { around = view.around->Collect(); });
    }
    // Running pods come first: nodes refer to them, and they determine which part of a nominated
    // pod's request is guaranteed by its quota.
    const auto pods = view.pods.Snapshot();
    const auto take_in = [&](bool bound) {
      for (const Pod& pod : *pods) {
        if (RunsSomewhere(pod) == bound) TakeInPod(nullptr, pod, now);
      }
    };
    take_in(true);
    for (const Node& node : *view.nodes.Snapshot()) TakeInNode(nullptr, node, now);
    take_in(false);
    return;
  }
  if (!view.changes->around.empty()) due_.insert(due_around_.begin(), due_around_.end());
  for (const reconcile::ContextChange& change : view.changes->around) {
    engine_.ChangeContext(change.apply);
    OnClusterEvent(
        {ClusterEvent::Kind::kContext, {}, {}, {}, {}, change.kind, change.before, change.after},
        now);
  }
  for (const auto& change : view.changes->nodes) TakeInNode(change.before, change.after, now);
  if (!view.changes->around.empty() || !view.changes->nodes.empty()) {
    for (auto& [key, promise] : foreign_) JudgeForeignPromise(promise, now);
  }
  for (const auto& change : view.changes->pods) TakeInPod(change.before, change.after, now);
}

// Does nothing if the pod already has a node.
void Scheduler::TryAgain(const std::string& key, Time now) {
  if (bindings_.contains(key)) return;
  if (const auto pod = queue_.TakeThis(key)) queue_.Return(*pod, now);
}

void Scheduler::OnClusterEvent(const ClusterEvent& event, Time now) {
  queue_.OnClusterEvent(event, now);
}

void Scheduler::TakeInNode(const Node& before, const Node& after, Time now) {
  // Pods nominated to a lost node do not have to wait for victims there.
  if (before != nullptr && (after == nullptr || scheduling::IsLost(*after)) &&
      !scheduling::IsLost(*before)) {
    for (const Pod& pod : engine_.Nominated(before->meta.name)) TryAgain(pod->Key(), now);
  }
  if (after == nullptr) {
    engine_.RemoveNode(before->meta.name);
    return OnClusterEvent({ClusterEvent::Kind::kNodeRemoved, before, {}, {}, {}, {}}, now);
  }
  if (before != nullptr && SameToScheduling(*before, *after)) return;
  engine_.SetNode(Rested(after, cuts_.Resting(after->meta.name, now)));
  const auto kind =
      before == nullptr ? ClusterEvent::Kind::kNodeAdded : ClusterEvent::Kind::kNodeChanged;
  OnClusterEvent({kind, before, after, {}, {}, {}}, now);
}

void Scheduler::TakeInPod(const Pod& before, const Pod& after, Time now) {
  const Pod& known = after != nullptr ? after : before;
  const std::string key = known->Key();
  const SchedulerProfile* profile = ProfileFor(*known);
  const bool successor =
      before != nullptr && after != nullptr && before->meta.uid != after->meta.uid;
  if (after == nullptr || successor || !scheduling::IsPending(*after)) {
    Settle(known, now);
    queue_.Remove(key);
    unexplained_.erase(key);
    if (after == nullptr || successor) ForgetCondition(key);
    measures_.Forget(key);
    Promise(known, "", now);
    patience_.erase(key);
    has_preempted_for_.erase(key);
    unsure_.erase(key);
    foreign_.erase(key);
  }
  const bool ends = after != nullptr && scheduling::EndsByPreemption(*after);
  if (after == nullptr || successor || ends) going_.erase(key);
  ends&& RunsSomewhere(after) ? void(ending_.insert(key)) : void(ending_.erase(key));
  engine_.SetLeaving(key, going_.contains(key) || ending_.contains(key));
  TakeInMember(before, after, now);
  if (after == nullptr) {
    engine_.RemovePod(key);
  } else {
    engine_.SetPod(after);
  }
  if (after != nullptr && profile != nullptr && scheduling::IsPending(*after)) {
    scheduling::Verdict gate = scheduling::Verdict::Fits();
    for (const scheduling::PreEnqueuePlugin* plugin : profile->framework->gates()) {
      if (gate.fits()) gate = plugin->PreEnqueue(*after);
    }
    if (gate.fits() && scheduling::IsGated(*after)) {
      gate = scheduling::Verdict::Unresolvable("Gated", "scheduling gates are not lifted");
    }
    const bool nominated = !after->nominated_node.empty();
    if (nominated || (before != nullptr && !before->nominated_node.empty())) {
      Promise(after, after->nominated_node, now);
    }
    queue_.Set(after, gate, now);
  }
  if (after != nullptr && profile == nullptr && scheduling::IsPending(*after)) {
    TakeInForeignPromise(after, now);
  }
  const bool ran = RunsSomewhere(before), runs = RunsSomewhere(after);
  // A pod's requests are the same whether it is pending or running.
  changes_since_learning_ += before == nullptr || after == nullptr || (ran && !runs) ? 1 : 0;
  pods_known_ += (after != nullptr ? 1 : 0);
  pods_known_ -= (before != nullptr ? 1 : 0);
  if (ran && !runs) {
    OnClusterEvent({ClusterEvent::Kind::kPodLeft, {}, {}, before, after, {}}, now);
  } else if (!ran && runs) {
    OnClusterEvent({ClusterEvent::Kind::kPodBound, {}, {}, before, after, {}}, now);
  } else if (ran && runs &&
             (before->meta.labels != after->meta.labels ||
              before->meta.deleted.has_value() != after->meta.deleted.has_value() ||
              cluster::RequestsOf(*before) != cluster::RequestsOf(*after))) {
    OnClusterEvent({ClusterEvent::Kind::kPodChanged, {}, {}, before, after, {}}, now);
  }
}

// Quotas are shared by all schedulers: capacity freed for a pod of another scheduler must not be
// given to pods served here.
void Scheduler::TakeInForeignPromise(const Pod& pod, Time now) {
  const auto before = foreign_.find(pod->Key());
  if (pod->nominated_node.empty()) {
    if (before == foreign_.end()) return;
    foreign_.erase(before);
    return Promise(pod, "", now);
  }
  const bool known = before != foreign_.end() && before->second.pod->meta.uid == pod->meta.uid &&
                     before->second.pod->nominated_node == pod->nominated_node;
  ForeignNomination& promise = foreign_[pod->Key()];
  if (!known) promise = {pod, now + kForeignPromise};
  promise.pod = pod;
  JudgeForeignPromise(promise, now);
}

void Scheduler::JudgeForeignPromise(ForeignNomination& promise, Time now) {
  const Pod& pod = promise.pod;
  const bool is_there = engine_.ledger().balance().AccountOf(pod->meta.ns).has_value() &&
                        engine_.snapshot().Find(pod->nominated_node) != nullptr;
  if (now >= promise.until && !promise.over) {
    if (const auto gone = GoneFor(pod)) promise.until = *gone + kForeignPromise;
    promise.over = now >= promise.until;
  }
  Promise(pod, is_there && !promise.over ? pod->nominated_node : "", now);
}

void Scheduler::ExpireForeignNominations(Time now) {
  for (auto& [key, promise] : foreign_) {
    if (now >= promise.until && !engine_.NomineeNode(key).empty())
      JudgeForeignPromise(promise, now);
  }
}

// Recomputes after so many changes that 2 % of the known pods differ.
void Scheduler::PrecomputeIfDue() {
  if (changes_since_learning_ * 50 < pods_known_ || changes_since_learning_ == 0) return;
  changes_since_learning_ = 0;
  const std::vector<Pod> waiting = queue_.All();
  std::set<const Framework*> precomputed;
  for (const auto& [name, profile] : profiles_) {
    const bool learns = std::ranges::any_of(
        profile.framework->scorers(), [](const auto& scorer) { return scorer.plugin->Learns(); });
    if (learns && precomputed.insert(profile.framework).second) {
      engine_.Precompute(*profile.framework, waiting);
    }
  }
}

void Scheduler::Decide(const Pod& pod, kube::Client& client, Time now) {
  if (DecideWithGang(pod, client, now)) return;
  measures_.Begin(*pod);
  scheduling::Diagnosis diagnosis;
  if (!Place(pod, diagnosis, now)) return Refuse(*ProfileFor(*pod), pod, diagnosis, client, now);
  const auto binding = bindings_.find(pod->Key());
  if (binding != bindings_.end()) Commit(binding->second, client, now);
}

bool Scheduler::Place(const Pod& pod, scheduling::Diagnosis& diagnosis, Time now) {
  const Framework& framework = *ProfileFor(*pod)->framework;
  if (TakeOver(pod, framework, now)) return true;
  scheduling::Decision decision = engine_.Schedule(framework, pod);
  if (decision.node == nullptr) {
    diagnosis = std::move(decision.diagnosis);
    return false;
  }
  const scheduling::Verdict reserved = Occupy(pod, framework, *decision.node);
  if (!reserved.fits()) GiveUp(pod->Key(), reserved.message, now);
  return true;
}

scheduling::Verdict Scheduler::Occupy(const Pod& pod, const Framework& framework,
                                      const cluster::NodeInfo& node) {
  Binding& binding = bindings_[pod->Key()];
  binding = {pod, &framework, node.node->meta.name, {}};
  binding.attempt = ++attempts_;
  binding.pod = scheduling::WithInstances(framework, engine_.LearntOf(framework), node, pod);
  binding.cuts = binding.pod != pod;
  engine_.Assume(binding.pod, binding.node);
  scheduling::Verdict reserved = engine_.Reserve(framework, *pod, binding.node, binding.state);
  binding.fits = engine_.snapshot().Share(binding.node);
  return reserved;
}

bool Scheduler::TakeOver(const Pod& pod, const Framework& framework, Time now) {
  const std::string node = engine_.NomineeNode(pod->Key());
  if (node.empty() || framework.partitioned_by() != scheduling::PartitionedBy::kScheduler)
    return false;
  auto self = std::make_shared<cluster::Pod>(*pod);
  self->nominated_node = node;  // the watch may show an older value
  auto promised = scheduling::BeingCutFor(*self, engine_.snapshot());
  if (!promised) return false;
  if (engine_.WhyNotByQuota(framework, *pod, engine_.snapshot().Find(node))) return false;
  self->promised = *std::move(promised);
  if (!cuts_.Adopt(*engine_.snapshot().Find(node)->node, *self, now)) return false;
  Binding& binding = bindings_[pod->Key()];
  binding = {std::move(self), &framework, node, {}};
  binding.attempt = ++attempts_;
  binding.cuts = true;
  engine_.Assume(binding.pod, node);
  const scheduling::Verdict reserved = engine_.Reserve(framework, *pod, node, binding.state);
  binding.seen = engine_.snapshot().Share(node);
  const std::string why = reserved.fits() ? WhyNotThere(binding) : reserved.message;
  if (!why.empty()) GiveUp(pod->Key(), why, now);
  return true;
}

void Scheduler::TakeBack(const std::string& key) {
  const auto found = bindings_.find(key);
  if (found == bindings_.end()) return;
  Binding& binding = found->second;
  if (binding.cuts) cuts_.Drop(binding.node, *binding.pod, Cuts::End::kGivenUp);
  engine_.Unreserve(*binding.framework, *binding.pod, binding.node, binding.state);
  engine_.Forget(key);
  bindings_.erase(found);
}

void Scheduler::Commit(Binding& binding, kube::Client& client, Time now) {
  if (binding.cuts) {
    cuts_.Want(binding.node, *binding.pod, now);
    if (binding.pod->nominated_node != binding.node) {  // keeps the partitioner off the node
      WriteNominee(binding.pod, binding.node, client);
    }
  }
  BeginPreparing(binding);
  Prepare(binding, client, now);
}

void Scheduler::WriteCuts(const reconcile::Listers& view, kube::Client& client) {
  for (const Pod& pod : std::exchange(unpromised_, {})) WriteNominee(pod, "", client);
  const auto find = [&](const std::string& name) { return view.nodes.Get(name); };
  for (CutWrite& write : cuts_.Due(engine_.snapshot(), find)) {
    Log(LogLevel::kInfo, "Requesting partitioning of GPUs",
        {{"node", write.node}, {"plan", write.plan}, {"pods", std::to_string(write.pods.size())}});
    Post(
        threads_.binders, client, [shared = shared_, write = std::move(write)](kube::Client& with) {
          Status answer =
              reconcile::PatchNodeAnnotations(with, write.node, write.patch, write.resource_version)
                  .status();
          shared->cut.Put({write, std::move(answer)});
          shared->Wake();
        });
  }
}

// GPUs that could not be partitioned are in back-off. No event announces its end.
void Scheduler::ExpireNodeBackoff(Time now) {
  for (const std::string& name : cuts_.TakeRestChanges(now)) {
    const cluster::NodeInfo* info = engine_.snapshot().Find(name);
    if (info == nullptr) continue;
    const Node before = info->node;
    const Node after = Rested(before, cuts_.Resting(name, now));
    if (after == before) continue;
    engine_.SetNode(after);
    OnClusterEvent({ClusterEvent::Kind::kNodeChanged, before, after, {}, {}, {}}, now);
  }
}

void Scheduler::Refuse(const SchedulerProfile& profile, const Pod& pod,
                       const scheduling::Diagnosis& diagnosis, kube::Client& client, Time now) {
  auto by = diagnosis.by;  // empty: all may help
  const bool reclaims = profile.reclaims && profile.framework->quotas() != nullptr;
  if (reclaims && !by.empty()) by.push_back(&quota_terms_);
  // Must precede Preempt, whose evictions may wake the pod.
  queue_.Refused(pod, std::move(by), now);
  std::string why = diagnosis.ToString();
  if (const std::string preemption = Preempt(profile, pod, client, now); !preemption.empty()) {
    why += " preemption: " + preemption;
  }
  measures_.End(*pod, SchedulerMeasures::Result::kUnschedulable);
  Tell({pod, "Unschedulable", std::move(why), "", true}, now);
}

}  // namespace nos::controllers
