#include "controllers/partitioner.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/text.h"
#include "controllers/events.h"
#include "controllers/metrics.h"
#include "controllers/pending/assumed.h"
#include "planning/remedies.h"
#include "reconcile/node_write.h"
#include "scheduling/framework.h"
#include "scheduling/pod_state.h"

namespace nos::controllers {
namespace {

std::string LayoutText(const gpu::Model& model, std::vector<gpu::Placement> placements) {
  std::sort(placements.begin(), placements.end(),
            [](const auto& left, const auto& right) { return left.start < right.start; });
  std::vector<std::string> names;
  names.reserve(placements.size());
  for (const gpu::Placement& placement : placements) {
    names.push_back(model.PlacementName(placement));
  }
  return Join(names, ",");
}

std::vector<gpu::Placement> PlacementsOf(const cluster::Gpu& gpu) {
  std::vector<gpu::Placement> placements;
  placements.reserve(gpu.instances.size());
  for (const cluster::Instance& instance : gpu.instances) placements.push_back(instance.placement);
  return placements;
}

std::vector<gpu::Placement> PlacementsOf(const planning::PlannedGpu& gpu) {
  std::vector<gpu::Placement> placements;
  placements.reserve(gpu.layout.size());
  for (const auto& instance : gpu.layout) placements.push_back(instance.placement);
  return placements;
}

// The layouts to request: of the GPUs that change, and of GPUs for which an earlier plan requested
// a layout that was never created. Requesting the present layout for the latter stops the agent
// from retrying.
std::vector<cluster::TargetLayout> TargetsOf(const planning::PlannedNode& planned,
                                             const cluster::NodeInfo& info) {
  std::vector<cluster::TargetLayout> targets;
  std::set<int> changed;
  for (const planning::PlannedGpu& gpu : planned.gpus) {
    targets.push_back({gpu.index, gpu.model, PlacementsOf(gpu)});
    changed.insert(gpu.index);
  }
  for (const cluster::TargetLayout& asked : cluster::ReadSpec(*info.node, info.gpus)) {
    const auto gpu = std::find_if(info.gpus.gpus.begin(), info.gpus.gpus.end(),
                                  [&](const auto& g) { return g.index == asked.index; });
    if (changed.contains(asked.index) || !gpu->reported) continue;
    std::vector<gpu::Placement> present = PlacementsOf(*gpu);
    if (LayoutText(*gpu->model, present) == LayoutText(*asked.model, asked.placements)) continue;
    targets.push_back({asked.index, gpu->model, std::move(present)});
  }
  return targets;
}

kube::NamedPatch PatchFor(const planning::PlannedNode& planned, const cluster::NodeInfo& info) {
  const cluster::Node& node = *info.node;
  return {"", planned.name,
          reconcile::AnnotationsOf(
              cluster::SpecPatch(node, TargetsOf(planned, info), reconcile::NextPlanId(node)),
              node.meta.resource_version)};
}

Decision DecisionOf(const planning::PlannedGpu& gpu, const cluster::NodeInfo& info) {
  Decision decision;
  decision.node = info.node->meta.name;
  decision.gpu = gpu.index;
  for (const cluster::Gpu& before : info.gpus.gpus) {
    if (before.index == gpu.index)
      decision.before = LayoutText(*before.model, PlacementsOf(before));
  }
  decision.after = LayoutText(*gpu.model, PlacementsOf(gpu));
  for (const planning::PlannedInstance& instance : gpu.layout) {
    const bool made = instance.state == planning::PlannedInstance::State::kNew;
    const bool listed = std::ranges::find(decision.pods, instance.pod) != decision.pods.end();
    if (made && !instance.pod.empty() && !listed) decision.pods.push_back(instance.pod);
  }
  return decision;
}

// Limited, so that an Event stays readable.
std::string FirstOf(const std::vector<std::string>& problems) {
  constexpr size_t kShown = 3;
  const size_t shown = std::min(problems.size(), kShown);
  const std::vector<std::string> first(problems.begin(),
                                       problems.begin() + static_cast<std::ptrdiff_t>(shown));
  std::string text = Join(first, "; ");
  if (problems.size() > shown) text += fmt::format("; and {} more", problems.size() - shown);
  return text;
}

std::string ResultName(PlanNotice::Kind kind) {
  switch (kind) {
    case PlanNotice::Kind::kApplied:
      return "applied";
    case PlanNotice::Kind::kPartial:
      return "partial";
    case PlanNotice::Kind::kSilent:
      return "silent";
  }
  return "";
}

uint64_t VersionOf(const reconcile::ContextCaches* context) {
  return context == nullptr ? 0 : context->Version();
}

}  // namespace

Partitioner::Partitioner(const PartitionerConfig& config, scheduling::FrameworkChoice frameworks,
                         const gpu::Catalogue& catalogue, Metrics* metrics)
    : config_(config),
      frameworks_(std::move(frameworks)),
      catalogue_(catalogue),
      metrics_(metrics),
      pending_plans_({config.plan_ack_timeout, config.max_pause}),
      reservations_({config.slice_reservation_timeout, config.max_pause}),
      batch_({config.batch_idle, config.batch_timeout}),
      repairs_({config.repair_pause, config.max_pause}, catalogue),
      events_("nos-partitioner", config.writes_per_call) {}

reconcile::ReconcileResult Partitioner::Reconcile(const std::string&,
                                                  const reconcile::Listers& view,
                                                  kube::Client& client, const Clock& clock) {
  // 1. Bring the state up to date: our own writes that the cache does not show yet, acknowledged
  //    and overdue plans, expired reservations.
  const Time now = clock.Now();
  const std::vector<Node> nodes = written_.Newest(*view.nodes.Snapshot());
  ObserveNodes(nodes, view, now);
  // 2. Repair invalid specs first: a plan must not be based on requests that no agent can carry
  //    out.
  if (RepairSpecs(nodes, client, clock)) return reconcile::ReconcileResult::Again(Duration::zero());
  // 3. Plan and patch nodes, if the batch of pending pods is complete.
  const Time due = PlanDue(view, now);
  if (due <= now) {
    PlanFor(nodes, view, client, clock);
    return reconcile::ReconcileResult::Again(Duration::zero());
  }
  // 4. Publish conditions and Events last: it may take long, and pods that a plan can help must not
  //    wait for it.
  if (events_.Due() <= now) {
    events_.Publish(view, client, clock);
    return reconcile::ReconcileResult::Again(Duration::zero());
  }
  return Rest(due, now);
}

// When to make the next plan, as far as is known. Time::max(): no pod or reservation needs one.
Time Partitioner::PlanDue(const reconcile::Listers& view, Time now) {
  if (batch_.RestsUntil() > now) return batch_.RestsUntil();
  std::set<std::string> names;
  for (const Pod& pod : Waiting(view, now)) names.insert(pod->Key() + "/" + pod->meta.uid);
  const bool idle = names.empty() && reservations_.all().empty();
  batch_.Update(std::move(names), now);
  return idle || !News(view, now) ? Time::max() : batch_.Due(now);
}

void Partitioner::ObserveNodes(const std::vector<Node>& nodes, const reconcile::Listers& view,
                               Time now) {
  gives_whole_ = std::ranges::any_of(nodes, [](const Node& node) {
    return cluster::SharingModeOf(*node) == cluster::SharingMode::kHybrid;
  });
  for (const PlanNotice& notice : pending_plans_.Update(nodes, now)) TakeIn(notice, now);
  const auto find = [&](const std::string& key) { return view.pods.Get(key); };
  for (const SliceReservation& missed : reservations_.Update(find, now)) {
    if (!AsksForSlices(*missed.pod, gives_whole_)) continue;
    events_.Add(events::SliceReservationExpired(*missed.pod, missed.node,
                                                config_.slice_reservation_timeout));
  }
  events_.verdicts().Forget(view);
}

// Returns true if anything was written, so that the caller starts over with the new state.
bool Partitioner::RepairSpecs(const std::vector<Node>& nodes, kube::Client& client,
                              const Clock& clock) {
  const Time begin = clock.Now();
  if (begin < repairing_.next()) return false;
  const std::vector<Repairs::Found> found = repairs_.Update(nodes, config_.writes_per_call, begin);
  if (found.empty()) return false;
  std::vector<kube::NamedPatch> patches;
  patches.reserve(found.size());
  for (const auto& [node, repair] : found) {
    patches.push_back(
        {"", node->meta.name, reconcile::AnnotationsOf(repair.patch, node->meta.resource_version)});
  }
  const std::vector<Result<Json>> answers =
      client.Within(repairing_.patience()).PatchAll(kube::kNodes, kube::PatchType::kMerge, patches);
  const Time end = clock.Now();
  repairing_.Took(end - begin, end);
  for (size_t i = 0; i < found.size(); ++i) TakeRepair(found[i], answers[i], end);
  return true;
}

void Partitioner::TakeRepair(const Repairs::Found& found, const Result<Json>& answer, Time now) {
  const std::string& name = found.node->meta.name;
  if (!answer.ok()) {  // retried after the back-off
    Log(LogLevel::kWarn, "failed to repair spec of Node",
        {{"node", name}, {"error", answer.status().ToString()}});
    return;
  }
  Keep(*answer);
  const std::string what = FirstOf(found.repair.problems);
  events_.Add(events::SpecRepaired(name, what));
  Decision decision;
  decision.time = now;
  decision.node = name;
  decision.note = "spec repaired: " + what;
  Record(std::move(decision));
}

// Keeps what we wrote until the cache shows it.
void Partitioner::Keep(const Json& written) {
  Result<cluster::Node> node = cluster::DecodeNode(written);
  if (node.ok()) written_.Wrote(std::make_shared<const cluster::Node>(std::move(node).value()));
}

void Partitioner::TakeIn(const PlanNotice& notice, Time now) {
  Decision decision;
  decision.time = now;
  decision.plan_id = notice.plan;
  decision.node = notice.node;
  if (metrics_ != nullptr) metrics_->Count(kAnswers, {{"result", ResultName(notice.kind)}});
  switch (notice.kind) {
    case PlanNotice::Kind::kApplied:
      reservations_.Renew(notice.node, now);
      decision.note = "applied";
      break;
    case PlanNotice::Kind::kPartial:
      reservations_.DropNode(notice.node);
      decision.note = "partial: " + reconcile::Describe(notice.obstacles);
      break;
    case PlanNotice::Kind::kSilent:
      reservations_.DropNode(notice.node);
      decision.note = fmt::format("no answer for {}", FormatAge(notice.waited));
      events_.Add(events::PlanNotAcknowledged(notice.node, notice.plan, notice.waited));
      break;
  }
  Record(std::move(decision));
}

bool Partitioner::News(const reconcile::Listers& view, Time now) const {
  return view.pods.Version() != pods_version_ || view.nodes.Version() != nodes_version_ ||
         VersionOf(view.context) != context_version_ || now >= replan_at_;
}

reconcile::ReconcileResult Partitioner::Rest(Time until, Time now) const {
  for (const auto& change :
       {pending_plans_.NextChange(now), reservations_.NextChange(now), repairs_.NextChange(now)}) {
    if (change) until = std::min(until, *change);
  }
  until = std::min(until, events_.Due());
  if (repairing_.next() > now) until = std::min(until, repairing_.next());
  if (replan_at_ > now) until = std::min(until, replan_at_);
  return until == Time::max() ? reconcile::ReconcileResult::Done()
                              : reconcile::ReconcileResult::Again(until - now);
}

void Partitioner::PlanFor(const std::vector<Node>& nodes, const reconcile::Listers& view,
                          kube::Client& client, const Clock& clock) {
  const Time begin = clock.Now();
  pods_version_ = view.pods.Version();
  nodes_version_ = view.nodes.Version();
  context_version_ = VersionOf(view.context);
  // 1. Take a snapshot and reserve slices for pods that a scheduler has nominated to a node.
  const cluster::ClusterSnapshot without_reservations = SnapshotOf(nodes, view, begin);
  ReserveForNominated(without_reservations, view, begin);
  // 2. Put valid reservations into the snapshot, so that the plan does not use their slices. Drop
  //    those beyond quota first, then those of gangs that cannot be completed; the slices that the
  //    latter free need a new snapshot.
  cluster::ClusterSnapshot snapshot = without_reservations;
  const bool watches = view.context != nullptr;
  if (watches) DropReservationsBeyondQuota(view, without_reservations);
  ApplyReservations(snapshot, view);
  if (watches && DropReservationsOfBrokenGangs(*view.pods.Snapshot(), view.context->Collect(),
                                               reservations_)) {
    snapshot = without_reservations;
    ApplyReservations(snapshot, view);
  }
  // 3. Collect the pending pods, plan for them within their quotas, and patch the nodes.
  GangedPods ganged{Waiting(view, begin), {}};
  if (watches) {
    const cluster::ClusterContext context = view.context->Collect();
    ganged =
        WithGangs(std::move(ganged.pods), *view.pods.Snapshot(), context, reservations_, begin);
  }
  const std::vector<Pod>& waiting = ganged.pods;
  bool carried_out = true;
  Time planned = begin;
  if (!waiting.empty()) {
    planning::PlanOptions options;
    options.objective = config_.objective;
    options.now = begin;
    options.hold_after = config_.hold_after;
    options.out_of_time = [&] { return clock.Now() - begin >= config_.plan_timeout; };
    AdmittedPlan admitted = PlanWithinQuotas(ganged, view, snapshot, options);
    Measure(admitted.plan, clock.Now() - begin);
    planned = clock.Now();
    carried_out = CarryOut(std::move(admitted), snapshot, client, clock);
  }
  // 4. Set the next time to plan even if the caches do not change.
  batch_.Planned(begin, planned);
  replan_at_ = Time::max();
  for (const Pod& pod : waiting) {
    const Time starving = pod->meta.created + config_.hold_after;
    if (starving > begin) replan_at_ = std::min(replan_at_, starving);
  }
  for (const auto& change : {pending_plans_.NextChange(begin), reservations_.NextChange(begin)}) {
    if (change) replan_at_ = std::min(replan_at_, *change);
  }
  if (!carried_out) replan_at_ = begin;  // as soon as the batch may be planned again
}

// The cluster with the layouts in flight assumed. GPUs that must not be repartitioned are fixed.
cluster::ClusterSnapshot Partitioner::SnapshotOf(const std::vector<Node>& nodes,
                                                 const reconcile::Listers& view, Time now) {
  auto snapshot = cluster::ClusterSnapshot::Build(nodes, *view.pods.Snapshot(), catalogue_);
  for (size_t i = 0; i < snapshot.size(); ++i) {
    const cluster::NodeInfo& info = snapshot.node(i);
    if (!info.gpus.managed) continue;
    const std::string name = info.node->meta.name;
    cluster::NodeGpus gpus = pending_plans_.InFlight(name) ? AssumeSpec(info) : info.gpus;
    for (cluster::Gpu& gpu : gpus.gpus) {
      // A GPU that no agent has reported may have any layout.
      if (!gpu.reported || pending_plans_.Resting(name, gpu.index, now)) gpu.fixed = true;
    }
    if (gpus.gpus == info.gpus.gpus) continue;
    // Cannot fail: the node is in the snapshot.
    (void)snapshot.SetGpus(name, std::move(gpus));
  }
  return snapshot;
}

// Returns true if all nodes accepted their part. Refused parts are planned again, without nodes in
// back-off.
bool Partitioner::CarryOut(AdmittedPlan admitted, const cluster::ClusterSnapshot& snapshot,
                           kube::Client& client, const Clock& clock) {
  planning::Plan& plan = admitted.plan;
  std::vector<kube::NamedPatch> patches;
  patches.reserve(plan.nodes.size());
  for (const planning::PlannedNode& planned : plan.nodes) {
    patches.push_back(PatchFor(planned, *snapshot.Find(planned.name)));
  }
  const std::vector<Result<Json>> answers =
      client.PatchAll(kube::kNodes, kube::PatchType::kMerge, patches);
  const Time now = clock.Now();
  std::set<std::string> refused;
  Status error;
  std::erase_if(refusals_reported_,
                [&](const auto& item) { return now - item.second.second >= kMinEventInterval; });
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const planning::PlannedNode& planned = plan.nodes[i];
    if (!answers[i].ok()) {
      refused.insert(planned.name);
      if (answers[i].status().code() != Code::kConflict) error = answers[i].status();
      TakeRefusal(planned.name, answers[i].status(), now);
      continue;
    }
    Keep(*answers[i]);
    const cluster::NodeInfo& info = *snapshot.Find(planned.name);
    const std::string plan_id = reconcile::NextPlanId(*info.node);
    pending_plans_.Sent(planned.name, plan_id, now);
    Announce(planned, info, plan_id, now);
  }
  if (std::ranges::any_of(plan.pods, [](const auto& outcome) { return !outcome.placed; })) {
    events_.verdicts().FindRemediesBy(std::make_unique<planning::RemedySearch>(
        snapshot, plan, admitted.gangs, frameworks_, admitted.quotas));
  }
  for (planning::PodOutcome& outcome : plan.pods) {
    if (outcome.placed && refused.contains(outcome.node)) continue;
    if (outcome.placed) reservations_.Add(outcome.pod, outcome.node, now);
    if (AsksForSlices(*outcome.pod, gives_whole_)) events_.verdicts().Add(std::move(outcome), now);
  }
  if (!error.ok()) {
    Log(LogLevel::kWarn, "failed to patch plans onto nodes",
        {{"nodes", std::to_string(refused.size())}, {"error", error.ToString()}});
  }
  return refused.empty();
}

void Partitioner::Announce(const planning::PlannedNode& planned, const cluster::NodeInfo& info,
                           const std::string& plan_id, Time now) {
  std::vector<std::string> parts;
  for (const planning::PlannedGpu& gpu : planned.gpus) {
    Decision decision = DecisionOf(gpu, info);
    decision.time = now;
    decision.plan_id = plan_id;
    parts.push_back(fmt::format("GPU {}: {} -> {}", gpu.index,
                                decision.before.empty() ? "empty" : decision.before,
                                decision.after));
    Record(std::move(decision));
  }
  events_.Add(events::Repartitioning(planned.name, plan_id, Join(parts, "; ")));
}

// Publishes an Event unless the write was a mere conflict, the API server did not answer (it would
// not take the Event either), or an Event with the same code was published recently. Codes are
// compared because messages contain ports and times, so equal texts never repeat.
void Partitioner::TakeRefusal(const std::string& node, const Status& why, Time now) {
  if (!pending_plans_.Refused(node, why.code(), now)) return;
  if (metrics_ != nullptr) metrics_->Count(kAnswers, {{"result", "refused"}});
  if (why.code() == Code::kDeadline) return;
  const auto reported = refusals_reported_.find(node);
  if (reported != refusals_reported_.end() && reported->second.first == why.code()) return;
  refusals_reported_[node] = {why.code(), now};
  events_.Add(events::PlanRefused(node, why));
}

void Partitioner::Measure(const planning::Plan& plan, Duration took) const {
  if (metrics_ == nullptr) return;
  metrics_->Observe(kPlanDuration, {}, took);
  metrics_->Count(kPlans, {{"complete", plan.complete ? "true" : "false"}});
  metrics_->Count(kGpusRepartitioned, {}, plan.gpus_touched);
  metrics_->Count(kInstancesAsked, {{"change", "created"}}, plan.created);
  metrics_->Count(kInstancesAsked, {{"change", "destroyed"}}, plan.destroyed);
  const auto placed = static_cast<double>(plan.placed);
  const auto pods = static_cast<double>(plan.pods.size());
  const auto bound = static_cast<double>(plan.upper_bound);
  metrics_->SetAll(kPlannedPods, {{{{"outcome", "placed"}}, placed},
                                  {{{"outcome", "pending"}}, pods - placed},
                                  {{{"outcome", "bound"}}, bound}});
  std::map<std::string, double> reasons;
  for (const planning::PodOutcome& pod : plan.pods) {
    if (!pod.placed && !pod.reasons.empty()) ++reasons[pod.reasons.front().code];
  }
  std::vector<std::pair<MetricLabels, double>> unplaceable;
  unplaceable.reserve(reasons.size());
  for (const auto& [reason, count] : reasons) unplaceable.push_back({{{"reason", reason}}, count});
  metrics_->SetAll(kUnplaceablePods, unplaceable);
}

void Partitioner::Record(Decision decision) {
  constexpr size_t kMaxNote = 1000;  // bytes; the quoted text comes from nodes
  decision.note = Shortened(decision.note, kMaxNote);
  decision.sequence = ++last_sequence_;
  decisions_.push_back(std::move(decision));
  if (decisions_.size() > config_.remembered_decisions) decisions_.pop_front();
}

}  // namespace nos::controllers
