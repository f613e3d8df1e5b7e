#include "agent/node_agent.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "agent/nebuly_plugin.h"
#include "base/log.h"
#include "device/plain_gpus.h"
#include "reconcile/metrics.h"
#include "reconcile/node_write.h"

namespace nos::agent {
namespace {

bool HasSpec(const cluster::Node& node, int gpu) {
  const std::string counts = fmt::format("{}spec-gpu-{}-", cluster::kPrefix, gpu);
  const cluster::StringMap& all = node.meta.annotations;
  const auto first = all.lower_bound(counts);
  return all.contains(fmt::format("{}spec-layout-{}", cluster::kPrefix, gpu)) ||
         (first != all.end() && first->first.starts_with(counts));
}

// A retry does not help: missing permission, or an admission policy rejects the write.
bool Forbidden(const Status& status) {
  return status.code() == Code::kPermission || status.code() == Code::kInvalid;
}

// Removes a GPU instance that a crash left incomplete.
bool IsRepair(const device::Operation& operation) {
  return operation.kind == device::Operation::Kind::kDestroy && operation.uuid.empty();
}

// True if the operation still means the same device: GPU indices change when a GPU disappears.
bool IsThere(const device::Operation& operation, const NodeDevices& devices) {
  if (operation.Switches()) {
    return std::ranges::any_of(devices.infos, [&](const device::GpuInfo& info) {
      return info.index == operation.gpu && info.uuid == operation.uuid;
    });
  }
  return std::ranges::any_of(devices.gpus, [&](const device::ObservedGpu& gpu) {
    return gpu.index == operation.gpu &&
           std::ranges::any_of(gpu.instances, [&](const device::GpuInstance& instance) {
             return instance.id == operation.instance_id && instance.uuid == operation.uuid;
           });
  });
}

std::string NameOf(device::Operation::Kind kind) {
  switch (kind) {
    case device::Operation::Kind::kCreate:
      return "create";
    case device::Operation::Kind::kDestroy:
      return "destroy";
    case device::Operation::Kind::kEnableMig:
      return "enable";
    case device::Operation::Kind::kDisableMig:
      return "disable";
    case device::Operation::Kind::kEnableMps:
      return "share";
    case device::Operation::Kind::kDisableMps:
      return "unshare";
  }
  return "";
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

}  // namespace

Agent::Agent(AgentConfig config, std::string node, const gpu::Catalogue& catalogue,
             device::Backend& backend, kubelet::PodResources& pod_resources,
             kubelet::DevicePlugin& device_plugin, AgentExtras extras)
    : config_(config),
      node_(std::move(node)),
      catalogue_(catalogue),
      backend_(backend),
      pod_resources_(pod_resources),
      device_plugin_(device_plugin),
      extras_(std::move(extras)),
      drains_({config.settle, config.drain_timeout}),
      failures_({config.first_pause, config.longest_pause}, config.failures_before_giving_up),
      reset_pauses_({config.first_reset_pause, config.longest_reset_pause}) {}

reconcile::ReconcileResult Agent::Reconcile(const std::string&, const reconcile::Listers& view,
                                            kube::Client& client, const Clock& clock) {
  // 1. Observe driver, kubelet, pods and node. Every decision below is based on this observation.
  const Node node = NodeNow(view);
  if (node == nullptr) return reconcile::ReconcileResult::Again(config_.poll);
  const Time now = clock.Now();
  Result<ObservedState> round = Assess(node, *view.pods.Snapshot(), now);
  if (!round.ok()) return reconcile::ReconcileResult::Failed(round.status());
  // 2. Offer devices before allocatable counts them: the kubelet rejects pods whose devices it does
  //    not know yet. Instances to destroy that are drained leave the offer here.
  const bool withdraws = device_plugin_.Withdraws();
  Status offered = withdraws ? Offer(*round, client, now) : Status::Ok();
  if (!offered.ok()) return reconcile::ReconcileResult::Failed(std::move(offered));
  // 3. Update the node's allocatable. Instances to destroy stop counting, which starts their drain.
  if (Status shown = ShowCounts(*round, client, clock); !shown.ok()) {
    return reconcile::ReconcileResult::Failed(std::move(shown));
  }
  // 4. Perform at most one device operation, then start over, because it invalidates the
  //    observation.
  const device::Progress progress = Decide(*round, now);
  if (progress.next) return Act(*progress.next, *round, client, clock);
  // 5. Plugins that read the devices themselves restart on each change, so they get one offer after
  //    all operations.
  if (!withdraws) {
    offered_.reset();  // the plugin, not this agent, determines its list
    offered = device_plugin_.Offer(OfferOf(round->devices, GivenUp(*round)));
  }
  // 6. The plan has ended or waits: report the state and the plan's result.
  reconcile::ReconcileResult rest = Rest(progress, *round, offered.ok(), client, now);
  AnnounceOffer(*round, offered, client, now);
  if (!rest.error.ok() || offered.ok()) return rest;
  // The kubelet sends no notification when it has read a list.
  const bool passes = offered.code() == Code::kUnavailable;
  return {std::move(offered),
          passes ? std::min(rest.again.value_or(config_.catch_up), config_.catch_up) : rest.again};
}

Status Agent::Leave(const reconcile::Listers& view, kube::Client& client) {
  const Node node = NodeNow(view);
  if (node == nullptr || !device_plugin_.Withdraws()) return Status::Ok();
  std::map<std::string, int64_t> none;
  for (const std::string& resource : resources_) {
    if (reconcile::AllocatableOf(*node, resource) > 0) none[resource] = 0;
  }
  return none.empty() ? Status::Ok() : reconcile::PatchNodeDevices(client, *node, none).status();
}

// Returns our own write where the cache still lags behind it.
Agent::Node Agent::NodeNow(const reconcile::Listers& view) {
  Node cached = view.nodes.Get(node_);
  const bool newer =
      cached != nullptr && written_ != nullptr && cached->meta.uid == written_->meta.uid &&
      !kube::NotNewer(written_->meta.resource_version, cached->meta.resource_version);
  if (newer) return written_;
  written_ = nullptr;
  return cached;
}

Result<Agent::ObservedState> Agent::Assess(Node node, const Pods& pods, Time now) {
  // 1. Read driver and kubelet, and complete what they currently do not report: unreadable GPUs,
  //    holders that the kubelet has forgotten.
  const SharingSettings division = SharingSettingsOf(*node, now);
  backend_.GiveWhole(division.hybrid);
  NOS_ASSIGN(NodeDevices devices, Observe(backend_, pod_resources_, catalogue_, division));
  ObservedState round;
  // NVIDIA's plugin reads the devices itself and may already miss those of an unreadable GPU. They
  // count as unhealthy at once there: a missing healthy device would restart the plugin.
  const bool healthy = device_plugin_.Withdraws();
  round.waits = KeepUnreadable(devices, last_read_, healthy, config_.unreadable, now);
  if (extras_.health != nullptr) Mark(devices, extras_.health->Conditions());
  round.node = std::move(node);
  round.devices = std::move(devices);
  FindStalePendingModes(round);
  holders_ = RestoreHolders(round.devices, holders_, pods);
  round.pending_admission = PodsPendingAdmission(pods);
  round.kubelet_lags = HeldByNobody(round.devices, pods) || !round.devices.doubtful.empty() ||
                       round.devices.unseen_shares;
  // 2. Read the requested layouts. GPUs that change their sharing mode get empty targets instead.
  ReadTargets(round);
  MatchTargets(round);
  if (extras_.shares_gpus) round.lacks = FindMpsViolations(round.devices, pods, extras_.mps_needs);
  // 3. Protect used devices, and unused ones that bound pods still need. All other instances
  //    outside the targets are unwanted.
  round.keep = round.devices.Held();
  round.keep.merge(NeededByBoundPods(round.devices, round.targets, pods));
  if (extras_.nebuly_shares) {
    round.keep = WithSharesBelow(std::move(round.keep), round.devices);
  }
  round.unwanted =
      WithResources(device::Unwanted(round.targets, round.devices.gpus, round.keep), round.devices);
  // 4. Keep MPS daemons for the shares that stay; without a daemon a share has no memory limit.
  KeepDaemons(round);
  WithholdUnserved(round);
  // 5. A new plan starts without failures of the old one.
  if (const std::string plan = cluster::SpecPlan(*round.node); plan != plan_) {
    plan_ = plan;
    failures_.Clear();
  }
  return round;
}

void Agent::ReadTargets(ObservedState& round) {
  LeaveOldModes(round);
  // GPUs in the node's status that cannot be observed have targets too; otherwise their part of the
  // plan would count as applied.
  cluster::NodeGpus gpus = cluster::ReadNodeGpus(*round.node, catalogue_);
  round.managed = gpus.managed;
  if (!round.managed) return;
  for (cluster::Gpu& observed : ToGpus(round.devices)) {
    std::erase_if(gpus.gpus, [&](const auto& told) { return told.index == observed.index; });
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
    if (IsBeingServed(index)) {
      round.waits = true;
    } else {
      round.unreadable.push_back({index, "", "GpuUnhealthy", why});
    }
    read.insert(index);
  }
  for (const cluster::Gpu& gpu : gpus.gpus) {
    if (read.contains(gpu.index) || !HasSpec(*round.node, gpu.index)) continue;
    round.unreadable.push_back(BadSpec(gpu, round));
  }
}

// An instance to destroy stays in the offer until it is drained, because pods may have been sent
// for it.
Status Agent::Offer(ObservedState& round, kube::Client& client, Time now) {
  drains_.Look(round.unwanted, CountsFor(round), *round.node);
  const auto leaves = [&](const auto& instance) {
    return InOffer(instance.first) && drains_.Drained(instance.first, now);
  };
  if (std::any_of(round.unwanted.begin(), round.unwanted.end(), leaves)) {
    NOS_RETURN_IF_ERROR(ReadUncached(round, client, now));
  }
  std::set<std::string> withheld;
  for (const auto& instance : round.unwanted) {
    if (!InOffer(instance.first) || leaves(instance)) withheld.insert(instance.first);
  }
  std::erase_if(awaited_by_, [&](const auto& item) { return !withheld.contains(item.first); });
  std::vector<kubelet::OfferedDevice> offer = OfferOf(round.devices, withheld);
  if (offered_ == offer) return Status::Ok();
  for (const kubelet::OfferedDevice& device : offer) resources_.insert(device.resource);
  offered_.reset();  // if the call fails, the kubelet's list is unknown
  NOS_RETURN_IF_ERROR(device_plugin_.Offer(offer));
  offered_ = std::move(offer);
  offer_changed_ = true;
  looks_ = 0;
  return Status::Ok();
}

// True if the kubelet may hand out the device, as far as is known.
bool Agent::InOffer(const std::string& uuid) const {
  return !offered_ || std::any_of(offered_->begin(), offered_->end(),
                                  [&](const auto& device) { return device.device_id == uuid; });
}

// Number of devices that schedulers may count on, by resource.
std::map<std::string, int64_t> Agent::CountsFor(const ObservedState& round) const {
  std::map<std::string, int64_t> counts;
  for (const std::string& resource : resources_) counts[resource] = 0;
  std::set<std::string> going;
  for (const auto& [uuid, resource] : round.unwanted) {
    going.insert(uuid);
    counts[resource] = 0;
  }
  for (const kubelet::OfferedDevice& device : OfferOf(round.devices, going)) {
    counts[device.resource] += device.healthy ? 1 : 0;
  }
  return counts;
}

// Writes allocatable early, as the kubelet would write it later. If the kubelet has written another
// value since, its value stands, except that instances to destroy are always subtracted.
Status Agent::ShowCounts(ObservedState& round, kube::Client& client, const Clock& clock) {
  std::set<std::string> draining;
  for (const auto& [uuid, resource] : round.unwanted) draining.insert(resource);
  const std::map<std::string, int64_t> counts = CountsFor(round);
  std::map<std::string, int64_t> changes;
  for (const auto& [resource, count] : counts) {
    const int64_t shown = reconcile::AllocatableOf(*round.node, resource);
    const bool drains = shown > count && draining.contains(resource);
    const auto own = figures_.find(resource);
    // The kubelet has overwritten it.
    if (own != figures_.end() && own->second != shown) figures_.erase(own);
    const bool outdated =
        device_plugin_.Withdraws() && figures_.contains(resource) && shown != count;
    if (drains || outdated || (offer_changed_ && shown != count)) changes[resource] = count;
  }
  NOS_ASSIGN(const bool taken, OfferTaken(round));
  if (!taken) {
    std::erase_if(changes, [&](const auto& change) {
      return change.second > reconcile::AllocatableOf(*round.node, change.first);
    });
  }
  bool refused = false;
  if (!changes.empty()) {
    Result<cluster::Node> written = reconcile::PatchNodeDevices(client, *round.node, changes);
    if (written.ok()) {
      written_ = std::make_shared<const cluster::Node>(std::move(written).value());
      round.node = written_;
      for (const auto& [resource, count] : changes) figures_[resource] = count;
    } else if (!Forbidden(written.status())) {
      return written.status();
    } else {  // the kubelet will write it later
      refused = true;
      Log(LogLevel::kWarn, "failed to update device counts of Node",
          {{"error", written.status().ToString()}});
    }
  }
  offer_changed_ &= !taken;
  drains_.Told(round.unwanted, counts, *round.node, refused, clock.Now());
  return Status::Ok();
}

// True if the kubelet has adopted the last offer. It rejects pods that need new devices before
// that.
Result<bool> Agent::OfferTaken(ObservedState& round) {
  if (!offer_changed_ || !offered_) return true;
  NOS_ASSIGN(const auto allocatable, pod_resources_.Allocatable());
  const std::set<kubelet::OfferedDevice> known(allocatable.begin(), allocatable.end());
  const bool taken = std::all_of(offered_->begin(), offered_->end(), [&](const auto& device) {
    return !device.healthy || known.contains(device);
  });
  if (!taken) {
    round.look_again = kube::BackOff{config_.first_look, config_.catch_up}.After(++looks_);
  }
  return taken;
}

// Reads kubelet and API server directly: the caches may not show a pod that needs the device to be
// destroyed.
Status Agent::ReadUncached(ObservedState& round, kube::Client& client, Time now) {
  NOS_ASSIGN(const Json object, client.Get(kube::kNodes, "", node_));
  NOS_ASSIGN(cluster::Node node, cluster::DecodeNode(object));
  written_ = std::make_shared<const cluster::Node>(std::move(node));
  kube::ListOptions options;
  options.field_selector = "spec.nodeName=" + node_;
  NOS_ASSIGN(const kube::ObjectList list, client.List(kube::kPods, "", options));
  Pods pods;
  for (const Json& item : list.items) {
    Result<cluster::Pod> pod = cluster::DecodePod(item);
    if (pod.ok()) pods.push_back(std::make_shared<const cluster::Pod>(std::move(pod).value()));
  }
  NOS_ASSIGN(round, Assess(written_, pods, now));
  drains_.Look(round.unwanted, CountsFor(round), *round.node);
  return Status::Ok();
}

// True if schedulers may still send pods for the device, or the kubelet may choose it for one.
bool Agent::Draining(const std::string& uuid, Time now) const {
  return device_plugin_.Withdraws() ? InOffer(uuid) : !drains_.Drained(uuid, now);
}

// True if the device may be given to a pod that is being admitted. The kubelet chooses no device
// that is off the list. A device that cannot be taken off the list counts as awaited for
// `drain_timeout`. REQUIRES: `uuid` is in round.unwanted and not draining.
bool Agent::IsAwaited(const std::string& uuid, const ObservedState& round, Time now) const {
  const auto pods = round.pending_admission.find(round.unwanted.at(uuid));
  if (pods == round.pending_admission.end()) return false;
  if (!device_plugin_.Withdraws()) return now < drains_.DrainedAt(uuid) + config_.drain_timeout;
  const auto by = awaited_by_.find(uuid);
  return by != awaited_by_.end() && std::ranges::any_of(by->second, [&](const auto& pod) {
           return pods->second.contains(pod);
         });
}

// An incomplete instance may be work in progress of another tool, so it is left alone on nodes that
// nos does not manage and on unhealthy GPUs.
bool Agent::LeftAlone(const device::Operation& operation, const ObservedState& round) const {
  return IsRepair(operation) && (!round.managed || round.devices.broken.contains(operation.gpu));
}

bool Agent::MustWait(const device::Operation& operation, ObservedState& round, Time now) const {
  if (OnlyTakesBack(operation, round)) return false;
  const bool unshares = operation.kind == device::Operation::Kind::kDisableMps;
  // Operations on devices that exist only in the agent's memory (shares, time slices, whole GPUs),
  // or that replace them. They wait while pods hold such devices that the agent cannot list.
  const bool in_memory = unshares || operation.ChangesMig() ||
                         (operation.Switches() && IsHybrid(*round.node)) ||
                         !device::IsMigProfile(operation.profile);
  if (in_memory && round.devices.unseen_shares) return round.waits = true;
  if (operation.kind == device::Operation::Kind::kCreate || IsRepair(operation)) return false;
  const bool enables = operation.Switches();
  // An MPS daemon may still serve the device, also one of an earlier agent. A GPU that a daemon has
  // open cannot be reset either.
  const bool serves =
      unshares || operation.ChangesMig() || operation.kind == device::Operation::Kind::kDestroy;
  if (serves && IsServed(operation.uuid)) return round.waits = true;
  if (!enables && Draining(operation.uuid, now)) return true;
  // On a hybrid node whole GPUs are instances, so IsAwaited covers pods that are being admitted for
  // them.
  const bool whole =
      !IsHybrid(*round.node) && (round.pending_admission.contains(kWholeGpu) ||
                                 round.pending_admission.contains(std::string(gpu::kTimeSlice)));
  const bool awaited = enables ? whole : IsAwaited(operation.uuid, round, now);
  round.waits |= awaited;
  return awaited;
}

device::Progress Agent::Decide(ObservedState& round, Time now) {
  std::set<std::string> asked;
  const auto deferred = [&](const device::Operation& operation) {
    if (LeftAlone(operation, round)) return true;
    asked.insert(operation.ToString());
    return MustWait(operation, round, now) || failures_.Pausing(operation, now);
  };
  device::Progress progress =
      device::NextOperation(round.targets, round.devices.gpus, round.keep, deferred);
  if (!progress.next && extras_.shares_gpus) {
    const bool to_mps = WantsMps(*round.node) || IsHybrid(*round.node);
    progress.next = device::NextSwitch(to_mps, InfosToSwitch(round, now), round.devices.gpus,
                                       WereShared(round), round.keep, deferred);
  } else if (!progress.next) {
    progress.next = NextPutBack(round, deferred);
  }
  if (!progress.next) progress.next = NextTakeBack(round, deferred);
  if (!progress.next) failures_.Keep(asked);
  return progress;
}

reconcile::ReconcileResult Agent::Act(const device::Operation& operation, ObservedState& round,
                                      kube::Client& client, const Clock& clock) {
  Result<bool> free = StillFree(operation, round, client, clock.Now());
  if (!free.ok()) return reconcile::ReconcileResult::Failed(free.status());
  // The caches do not show yet why the device is in use. An immediate retry would not help.
  if (!*free) return reconcile::ReconcileResult::Again(config_.catch_up);
  const Status done = Perform(operation, round);
  if (done.ok()) {
    failures_.Succeeded(operation);
    return reconcile::ReconcileResult::Again(Duration::zero());
  }
  // Errors such as kNotFound need no handling: the next observation shows the actual state.
  failures_.Record(operation, done, clock.Now());
  KeepMode(operation, done, round, clock.Now());
  Say(client, *round.node, kube::EventType::kWarning, "DeviceOperationFailed",
      fmt::format("{}: {}", operation.ToString(), done.message()), clock.Now());
  return reconcile::ReconcileResult::Again(Duration::zero());
}

// Checks without caches before each operation: the device of a pod that was bound a moment ago must
// not be destroyed.
Result<bool> Agent::StillFree(const device::Operation& operation, ObservedState& round,
                              kube::Client& client, Time now) {
  if (operation.kind == device::Operation::Kind::kCreate || IsRepair(operation)) return true;
  NOS_RETURN_IF_ERROR(ReadUncached(round, client, now));
  if (!IsThere(operation, round.devices)) return false;
  if (OnlyTakesBack(operation, round)) return true;
  for (const auto& [uuid, resource] : round.unwanted) {
    if (!InOffer(uuid)) awaited_by_.try_emplace(uuid, round.pending_admission[resource]);
  }
  const bool destroys = operation.kind == device::Operation::Kind::kDestroy;
  if (destroys && !round.unwanted.contains(operation.uuid)) return false;
  if (round.keep.contains(operation.uuid) || MustWait(operation, round, now)) return false;
  if (!destroys) return true;
  return device_plugin_.Condemn(operation.uuid) && !MustEndDaemon(operation, round);
}

// No operation is possible now: reports, and returns when to look again. `offered`: the kubelet has
// the current devices.
reconcile::ReconcileResult Agent::Rest(const device::Progress& progress, const ObservedState& round,
                                       bool offered, kube::Client& client, Time now) {
  // 1. The plan has ended if no instance is draining, no operation waits, and failing operations
  //    have been given up.
  std::optional<reconcile::PlanResult> result;
  std::optional<Time> next_drained;
  for (const auto& [uuid, resource] : round.unwanted) {
    if (!Draining(uuid, now)) continue;
    const Time drained = std::max(now, drains_.DrainedAt(uuid));
    next_drained = std::min(next_drained.value_or(drained), drained);
  }
  const bool ended = offered && !next_drained && !round.waits && failures_.AllGivenUp();
  if (round.managed && ended && !plan_.empty()) {
    result = ResultOf(progress, round);
  }
  // 2. Report before publishing Events: the partitioner and the scheduler wait for the annotations.
  if (const Status written = Report(round, result, client); !written.ok()) {
    return reconcile::ReconcileResult::Failed(written);
  }
  if (const Status told = ReportHealth(round, client, now); !told.ok()) {
    return reconcile::ReconcileResult::Failed(told);
  }
  if (const Status told = ReportReboot(round, client, now); !told.ok()) {
    return reconcile::ReconcileResult::Failed(told);
  }
  if (result) Announce(round, *result, client, now);
  AnnounceProblems(round, client, now);
  AnnounceLacks(round, client, now);
  Measure(round);
  // 3. Look again when the kubelet may have caught up, an instance is drained, or a retry is due.
  Time next = now + config_.poll;
  lags_ = round.kubelet_lags ? lags_ + 1 : 0;
  if (lags_ > 0) next = now + kube::BackOff{config_.first_look, config_.catch_up}.After(lags_);
  if (next_drained) next = std::min(next, *next_drained);
  if (round.look_again) next = std::min(next, now + *round.look_again);
  if (const auto retry = failures_.NextRetry(now)) next = std::min(next, *retry);
  return reconcile::ReconcileResult::Again(next - now);
}

Status Agent::Perform(const device::Operation& operation, const ObservedState& round) {
  // If the GPU cannot be read afterwards, its last known state must not contain this instance.
  if (const auto known = last_read_.find(operation.gpu); known != last_read_.end()) {
    std::erase_if(known->second.first.instances,
                  [&](const auto& instance) { return instance.uuid == operation.uuid; });
  }
  const SteadyClock clock;
  const Time begun = clock.Now();
  Status done = ApplyOrReset(operation, round);
  if (extras_.metrics != nullptr) {
    const std::string name = NameOf(operation.kind);
    extras_.metrics->Observe(reconcile::kDeviceOperationDuration, {{"operation", name}},
                             clock.Now() - begun);
    extras_.metrics->Count(reconcile::kDeviceOperations,
                           {{"operation", name}, {"result", done.ok() ? "ok" : "error"}});
  }
  return done;
}

}  // namespace nos::agent
