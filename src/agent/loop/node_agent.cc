#include "agent/node_agent.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "cluster/device_interface.h"

namespace nos::agent {
namespace {

// A kubelet that starts reads the devices sooner.
constexpr Duration kOfferTimeout = std::chrono::minutes(1);
constexpr std::string_view kDevicePrefix = "nvidia.com/";  // of resources of device plugins

bool HasSpec(const cluster::Node& node, int gpu) {
  const std::string counts = fmt::format("{}spec-gpu-{}-", cluster::kPrefix, gpu);
  const cluster::StringMap& all = node.meta.annotations;
  const auto first = all.lower_bound(counts);
  return all.contains(fmt::format("{}spec-layout-{}", cluster::kPrefix, gpu)) ||
         (first != all.end() && first->first.starts_with(counts));
}

std::map<std::string, std::string> WithResources(const std::vector<device::GpuInstance>& instances,
                                                 const NodeDevices& devices) {
  std::map<std::string, std::string> resources;
  for (const device::GpuInstance& instance : instances) {
    const auto gpu = std::find_if(devices.gpus.begin(), devices.gpus.end(),
                                  [&](const auto& g) { return g.index == instance.gpu; });
    resources[instance.uuid] = ResourceOf(*gpu, instance);
  }
  return resources;
}

std::vector<device::GpuInstance> FreeInstances(const ObservedState& round) {
  std::vector<device::GpuInstance> free;
  for (const device::ObservedGpu& gpu : round.devices.gpus) {
    for (const device::GpuInstance& instance : gpu.instances) {
      if (instance.complete && !round.keep.contains(instance.uuid)) free.push_back(instance);
    }
  }
  return free;
}

const DeviceRules& RulesOf(const AgentExtras& extras) {
  static const DeviceRules any_device;
  return extras.rules != nullptr ? *extras.rules : any_device;
}

}  // namespace

Agent::Agent(AgentConfig config, std::string node, const gpu::Catalogue& catalogue,
             device::Backend& backend, kubelet::PodResources& pod_resources,
             kubelet::DevicePlugin& device_plugin, AgentExtras extras)
    : config_(config),
      catalogue_(catalogue),
      extras_(std::move(extras)),
      rules_(RulesOf(extras_)),
      observer_(node, catalogue, backend, pod_resources,
                {config.unreadable, extras_.health, extras_.cgroups, extras_.rules == nullptr}),
      modes_(extras_.modes),
      offer_({{config.settle, config.drain_timeout}, {config.first_look, config.catch_up}},
             device_plugin, pod_resources),
      runner_({{config.first_pause, config.longest_pause},
               config.failures_before_giving_up,
               extras_.metrics},
              backend, offer_, modes_),
      reporter_(std::move(node), extras_.health, extras_.metrics) {}

reconcile::ReconcileResult Agent::Reconcile(const std::string&, const reconcile::Listers& view,
                                            kube::Client& client, const Clock& clock) {
  using reconcile::ReconcileResult;
  // 1. Observe driver, kubelet, pods and node. Every decision below is based on this observation.
  if (view.changes != nullptr) observer_.OnPods(*view.changes);
  const auto node = observer_.CachedNode(view);
  if (node == nullptr) return ReconcileResult::Again(config_.poll);
  const Time now = clock.Now();
  Result<ObservedState> round = Assess(node, *view.pods.Snapshot(), now);
  if (!round.ok()) {
    // The health says why, if the driver does not answer.
    (void)reporter_.WriteHealth(*node, client, now);
    return ReconcileResult::Failed(round.status());
  }
  // 2. Offer devices before allocatable counts them: the kubelet rejects pods whose devices it does
  //    not know yet. Instances to destroy that are drained leave the offer here.
  const bool withdraws = offer_.Withdraws();
  Status offered = withdraws ? OfferDevices(*round, client, now) : Status::Ok();
  if (!offered.ok()) {
    if (Status shown = ReportHandover(*round->node, client, now); !shown.ok()) {
      return ReconcileResult::Failed(std::move(shown));
    }
    if (!HandoverFails()) {
      reporter_.AnnounceOffer(offered, kOfferTimeout, client, now);
    }
    return ReconcileResult::Failed(std::move(offered));
  }
  // 3. Update the node's allocatable. Instances to destroy stop counting, which starts their drain.
  if (Status shown = UpdateAllocatable(*round, client, clock); !shown.ok()) {
    return ReconcileResult::Failed(std::move(shown));
  }
  if (round->claims) return RestForClaims(*round, client, now);
  // 4. Perform at most one device operation, then start over, because it invalidates the
  //    observation.
  const device::Progress progress = runner_.Decide(*round, now);
  if (progress.next) return Act(*progress.next, *round, client, clock);
  // 5. Plugins that read the devices themselves restart on each change, so they get one offer after
  //    all operations.
  if (!withdraws) offered = offer_.OfferToReader(round->devices, rules_.LeftOut(round->unwanted));
  // 6. The plan has ended or waits: report the state and the plan's result.
  ReconcileResult rest = Rest(progress, *round, offered.ok(), client, now);
  reporter_.AnnounceOffer(offered, std::nullopt, client, now);
  if (!rest.error.ok() || offered.ok()) return rest;
  // The kubelet sends no notification when it has read a list.
  const bool passes = offered.code() == Code::kUnavailable;
  return {std::move(offered),
          passes ? std::min(rest.again.value_or(config_.catch_up), config_.catch_up) : rest.again};
}

Status Agent::Leave(const reconcile::Listers& view, kube::Client& client) {
  const auto node = observer_.CachedNode(view);
  return node == nullptr ? Status::Ok() : offer_.ClearAllocatable(*node, client);
}

bool Agent::IsNeeded(const reconcile::Listers& view, Duration since_leave) const {
  if (since_leave < config_.leave_settle) return true;
  if (since_leave >= config_.leave_limit || !offer_.Withdraws()) return false;
  const auto pending = PodsPendingAdmission(*view.pods.Snapshot());
  return std::ranges::any_of(pending,
                             [&](const auto& wanted) { return offer_.WasOffered(wanted.first); });
}

Result<ObservedState> Agent::Assess(std::shared_ptr<const cluster::Node> node, const Pods& pods,
                                    Time now) {
  // 1. Read driver and kubelet. A plugin that reads the devices itself may already miss those of an
  //    unreadable GPU. They count as unhealthy at once there: a missing healthy device would
  //    restart the plugin.
  ObservedState round;
  round.mode = RequestedModeOf(modes_, *node);
  SharingSettings settings = SettingsOf(modes_, round.mode);
  for (const auto& mode : modes_) mode->Adapt(settings, *node, runner_.failures(), now);
  NOS_ASSIGN(round.devices, observer_.ReadDevices(settings, *node, pods, offer_.Withdraws(), now));
  round.node = std::move(node);
  round.claims = LeavesToClaims(*round.node);
  // Instances of claims are no devices of the plugin, not even for the time of a drain.
  if (round.claims && !extras_.claims->Released()) {
    for (device::ObservedGpu& gpu : round.devices.gpus) gpu.instances.clear();
  }
  round.waits = observer_.unreadable_may_return();
  round.pending_admission = PodsPendingAdmission(pods);
  round.kubelet_lags = HeldByNobody(round.devices, pods) || !round.devices.doubtful.empty() ||
                       round.devices.unseen_shares;
  // 2. Read the requested layouts. GPUs that change their sharing mode get empty targets instead.
  for (const auto& mode : modes_) mode->OnObserved(round);
  ReadTargets(round);
  for (gpu::Obstacle& obstacle : rules_.MatchTargets(round.targets, round.devices)) {
    round.unreadable.push_back(std::move(obstacle));
  }
  for (const auto& mode : modes_) {
    for (PodViolation& one : mode->CheckPods(round.devices, pods)) {
      round.violations.push_back(std::move(one));
    }
  }
  // 3. Protect used devices, and unused ones that bound pods still need. All other instances
  //    outside the targets are unwanted.
  round.keep = round.devices.Held();
  round.keep.merge(NeededByBoundPods(round.devices, round.targets, pods));
  round.keep = rules_.Keep(std::move(round.keep), round.devices);
  round.unwanted =
      WithResources(device::Unwanted(round.targets, round.devices.gpus, round.keep), round.devices);
  if (round.claims) round.unwanted = WithResources(FreeInstances(round), round.devices);
  // 4. Keep daemons for the devices that stay.
  for (const auto& mode : modes_) mode->RequestDaemons(round);
  for (const auto& mode : modes_) mode->KeepDaemons(round);
  // 5. A new plan starts without failures of the old one.
  if (const std::string plan = cluster::SpecPlan(*round.node); plan != plan_) {
    plan_ = plan;
    runner_.ClearFailures();
  }
  return round;
}

// A plugin that cannot withdraw devices cannot leave them to claims either.
bool Agent::LeavesToClaims(const cluster::Node& node) const {
  if (extras_.claims == nullptr || !offer_.Withdraws()) return false;
  return cluster::ServesClaims(node) || !extras_.claims->Released();
}

// The claims begin when the kubelet can give no device of the plugin to a pod any more, and none
// has one.
reconcile::ReconcileResult Agent::RestForClaims(const ObservedState& round, kube::Client& client,
                                                Time now) {
  if (Status reported = Report(round, std::nullopt, client, now); !reported.ok()) {
    return reconcile::ReconcileResult::Failed(std::move(reported));
  }
  const bool wanted = cluster::ServesClaims(*round.node);
  // Once they have begun, pods that use the plugin are not waited for: there are none.
  const bool use = wanted && (!extras_.claims->Released() || IsFreeOfPods(round, now));
  extras_.claims->Use(use, round.node->meta.uid);
  return reconcile::ReconcileResult::Again(use ? config_.poll : config_.catch_up);
}

// True if no pod has a device of the plugin, or can get one.
bool Agent::IsFreeOfPods(const ObservedState& round, Time now) const {
  const bool offered = std::ranges::any_of(
      round.unwanted, [&](const auto& one) { return offer_.IsDraining(one.first, now); });
  const bool awaited = std::ranges::any_of(round.pending_admission, [&](const auto& asked) {
    return asked.first.starts_with(kDevicePrefix) || offer_.WasOffered(asked.first);
  });
  return round.keep.empty() && !round.kubelet_lags && !offered && !awaited && !offer_.look_again();
}

std::set<int> Agent::NotTakenOver(const ObservedState& round) const {
  std::set<int> gpus;
  for (const auto& mode : modes_) gpus.merge(mode->NotTakenOver(round));
  return gpus;
}

// True if the unhealthy GPU becomes healthy by itself, or has become so meanwhile. This is not
// reported as a fault.
bool Agent::Recovers(int gpu) const {
  if (extras_.health == nullptr) return false;
  std::vector<device::HealthCondition> faults = extras_.health->Conditions();
  std::erase_if(faults, [&](const device::HealthCondition& one) {
    return one.gpu != gpu || one.instance || !one.Disables();
  });
  return faults.empty() ||
         std::ranges::any_of(modes_, [&](const auto& mode) { return mode->Recovers(gpu, faults); });
}

void Agent::ReadTargets(ObservedState& round) const {
  // GPUs in the node's status that cannot be observed have targets too; otherwise their part of the
  // plan would count as applied.
  cluster::NodeGpus gpus = cluster::ReadNodeGpus(*round.node, catalogue_);
  round.managed = gpus.managed;
  if (!round.managed) return;
  for (cluster::Gpu& observed : ToGpus(round.devices)) {
    std::erase_if(gpus.gpus, [&](const auto& gpu) { return gpu.index == observed.index; });
    gpus.gpus.push_back(std::move(observed));
  }
  std::set<int> read = NotTakenOver(round);
  for (const device::Target& target : round.targets) read.insert(target.gpu);
  for (cluster::TargetLayout& target : cluster::ReadSpec(*round.node, gpus)) {
    if (round.devices.broken.contains(target.index)) continue;  // an unhealthy GPU is not changed
    if (read.contains(target.index)) continue;                  // nor one whose mode changes
    read.insert(target.index);
    round.targets.push_back({target.index, std::move(target.placements), target.model});
  }
  // The node's status may lack unhealthy GPUs.
  for (const auto& [index, why] : round.devices.broken) {
    if (read.contains(index) || !HasSpec(*round.node, index)) continue;
    if (Recovers(index)) {
      round.waits = true;
    } else {
      round.unreadable.push_back({index, "", gpu::obstacles::kGpuUnhealthy, why});
    }
    read.insert(index);
  }
  for (const cluster::Gpu& gpu : gpus.gpus) {
    if (read.contains(gpu.index) || !HasSpec(*round.node, gpu.index)) continue;
    round.unreadable.push_back(BadSpec(gpu, round.devices));
  }
}

// The obstacle for a GPU whose spec is not a layout that the GPU can have now.
gpu::Obstacle Agent::BadSpec(const cluster::Gpu& gpu, const NodeDevices& devices) const {
  const auto found = std::ranges::find(devices.gpus, gpu.index, &device::ObservedGpu::index);
  const device::ObservedGpu* observed = found == devices.gpus.end() ? nullptr : &*found;
  for (const auto& mode : modes_) {
    if (auto why = mode->WhyNot(gpu.index, observed)) return *std::move(why);
  }
  return {gpu.index, "", gpu::obstacles::kBadSpec,
          fmt::format("the spec of GPU {} is not one layout that {} can have", gpu.index,
                      gpu.model->name())};
}

// Reads kubelet and API server directly: the caches may not show a pod that needs the device to be
// destroyed.
Status Agent::ReadUncached(ObservedState& round, kube::Client& client, Time now) {
  NOS_ASSIGN(const NodeAndPods fresh, observer_.ReadUncached(client));
  NOS_ASSIGN(round, Assess(fresh.node, fresh.pods, now));
  offer_.Track(round);
  return Status::Ok();
}

Status Agent::OfferDevices(ObservedState& round, kube::Client& client, Time now) {
  offer_.Track(round);
  if (offer_.WillWithdraw(round, now)) NOS_RETURN_IF_ERROR(ReadUncached(round, client, now));
  return offer_.Publish(round, now);
}

Status Agent::UpdateAllocatable(ObservedState& round, kube::Client& client, const Clock& clock) {
  NOS_ASSIGN(auto written, offer_.UpdateAllocatable(round, client, clock));
  if (written == nullptr) return Status::Ok();
  observer_.Wrote(written);
  round.node = std::move(written);
  return Status::Ok();
}

reconcile::ReconcileResult Agent::Act(const device::Operation& operation, ObservedState& round,
                                      kube::Client& client, const Clock& clock) {
  // 1. Check without caches: the device of a pod that was bound a moment ago must not be destroyed.
  if (OperationRunner::NeedsUncachedState(operation)) {
    const Time now = clock.Now();
    if (Status read = ReadUncached(round, client, now); !read.ok()) {
      return reconcile::ReconcileResult::Failed(std::move(read));
    }
    // The caches do not show yet why the device is in use. An immediate retry would not help.
    if (!runner_.MayPerform(operation, round, now)) {
      return reconcile::ReconcileResult::Again(config_.catch_up);
    }
  }
  // 2. Perform it, and start over at once: the observation is outdated, also after an error.
  observer_.Forget(operation.gpu, operation.uuid);
  if (const Status done = runner_.Perform(operation, round, clock); !done.ok()) {
    reporter_.AnnounceFailure(operation, done, client, clock.Now());
  }
  return reconcile::ReconcileResult::Again(Duration::zero());
}

// No operation is possible now: reports, and returns when to look again. `offered`: the kubelet has
// the current devices.
reconcile::ReconcileResult Agent::Rest(const device::Progress& progress, const ObservedState& round,
                                       bool offered, kube::Client& client, Time now) {
  // 1. The plan has ended if no instance is draining, no operation waits, and failing operations
  //    have been given up.
  const std::optional<Time> next_drained = offer_.NextDrained(round, now);
  const bool ended = offered && !next_drained && !round.waits && runner_.failures().AllGivenUp();
  std::optional<reconcile::PlanResult> result;
  if (round.managed && ended && !plan_.empty()) result = ResultOf(progress, round);
  // 2. Report it.
  if (Status reported = Report(round, result, client, now); !reported.ok()) {
    return reconcile::ReconcileResult::Failed(std::move(reported));
  }
  // 3. Look again when the kubelet may have caught up, an instance is drained, or a retry is due.
  Time next = now + config_.poll;
  lags_ = round.kubelet_lags ? lags_ + 1 : 0;
  if (lags_ > 0) next = now + BackOff{config_.first_look, config_.catch_up}.After(lags_);
  if (next_drained) next = std::min(next, *next_drained);
  if (const auto look = offer_.look_again()) next = std::min(next, now + *look);
  if (const auto retry = runner_.failures().NextRetry(now)) next = std::min(next, *retry);
  return reconcile::ReconcileResult::Again(next - now);
}

// Annotations and conditions come before Events: the partitioner and the scheduler wait for them.
// Conditions are written although the API server refuses the annotations, for example as too large.
Status Agent::Report(const ObservedState& round, const std::optional<reconcile::PlanResult>& result,
                     kube::Client& client, Time now) {
  const cluster::Node& node = *round.node;
  const std::vector<cluster::Gpu> gpus = ReportedGpus(round);
  const Status written = reporter_.WriteStatus(round, gpus, result, client);
  NOS_RETURN_IF_ERROR(reporter_.WriteHealth(node, client, now));
  NOS_RETURN_IF_ERROR(ReportHandover(node, client, now));
  for (const auto& mode : modes_) {
    const auto wanted = mode->Condition(round.devices.gpus);
    if (wanted) NOS_RETURN_IF_ERROR(reporter_.WriteModeCondition(node, *wanted, client, now));
  }
  NOS_RETURN_IF_ERROR(written);
  if (result) reporter_.AnnounceResult(node, *result, client, now);
  reporter_.AnnounceProblems(round, client, now);
  reporter_.AnnounceIgnored(gpus, catalogue_.ignored(), client, now);
  reporter_.Measure(round.devices);
  return Status::Ok();
}

Status Agent::ReportHandover(const cluster::Node& node, kube::Client& client, Time now) {
  const auto wanted = extras_.handover ? extras_.handover() : std::nullopt;
  return wanted ? reporter_.WriteHandover(node, *wanted, client, now) : Status::Ok();
}

// True if containers cannot get devices now. A condition and an Event of its own say so.
bool Agent::HandoverFails() const {
  const auto shown = extras_.handover ? extras_.handover() : std::nullopt;
  return shown && shown->status == "False";
}

// The GPUs that the partitioner may plan on.
std::vector<cluster::Gpu> Agent::ReportedGpus(const ObservedState& round) const {
  std::vector<cluster::Gpu> gpus = ToGpus(rules_.Shown(round.devices));
  if (round.claims) return {};
  const std::set<int> whole = HeldWhole(round.devices);
  const std::set<int> not_taken_over = NotTakenOver(round);
  std::erase_if(gpus, [&](const cluster::Gpu& gpu) {
    return whole.contains(gpu.index) || not_taken_over.contains(gpu.index) ||
           (!round.mode.per_gpu && runner_.failures().CannotEnableMig(gpu.index));
  });
  return gpus;
}

reconcile::PlanResult Agent::ResultOf(const device::Progress& progress,
                                      const ObservedState& round) const {
  reconcile::PlanResult result{plan_, true, progress.obstacles};
  const std::vector<gpu::Obstacle> failed = runner_.failures().Obstacles();
  for (const auto* more : {&round.unreadable, &failed}) {
    result.obstacles.insert(result.obstacles.end(), more->begin(), more->end());
  }
  result.applied = result.obstacles.empty();
  return result;
}

}  // namespace nos::agent
