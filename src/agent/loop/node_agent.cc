#include "agent/node_agent.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "reconcile/measures.h"
#include "agent/nebuly_plugin.h"
#include "reconcile/node_write.h"
#include "device/plain_gpus.h"

namespace nos::agent {
namespace {

bool HasSpec(const cluster::Node& node, int gpu) {
  const std::string counts = fmt::format("{}spec-gpu-{}-", cluster::kPrefix, gpu);
  const cluster::StringMap& all = node.meta.annotations;
  const auto first = all.lower_bound(counts);
  return all.contains(fmt::format("{}spec-layout-{}", cluster::kPrefix, gpu)) ||
         (first != all.end() && first->first.starts_with(counts));
}

// Trying again does not help: no permission, or a policy that does not admit it.
bool Forbidden(const Status& status) {
  return status.code() == Code::kPermission || status.code() == Code::kInvalid;
}

// Takes away what a crash has left half made.
bool IsRepair(const device::Operation& operation) {
  return operation.kind == device::Operation::Kind::kDestroy && operation.uuid.empty();
}

// Whether it still means what it was decided for: indexes change when a GPU has gone.
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

reconcile::Outcome Agent::Reconcile(const std::string&, const reconcile::View& view, kube::Client& client,
                         const Clock& clock) {
  const Node node = NodeNow(view);
  if (node == nullptr) return reconcile::Outcome::Again(config_.poll);
  const Time now = clock.Now();
  Result<Round> round = Assess(node, *view.pods.Snapshot(), now);
  if (!round.ok()) return reconcile::Outcome::Failed(round.status());
  const bool withdraws = device_plugin_.Withdraws();
  Status offered = withdraws ? Offer(*round, client, now) : Status::Ok();
  if (!offered.ok()) return reconcile::Outcome::Failed(std::move(offered));
  if (Status shown = ShowCounts(*round, client, clock); !shown.ok()) {
    return reconcile::Outcome::Failed(std::move(shown));
  }
  const device::Progress progress = Decide(*round, now);
  if (progress.next) return Act(*progress.next, *round, client, clock);
  if (!withdraws) {
    offered_.reset();  // what it holds is not this agent's to say
    offered = device_plugin_.Offer(OfferOf(round->devices, GivenUp(*round)));
  }
  reconcile::Outcome rest = Rest(progress, *round, offered.ok(), client, now);
  AnnounceOffer(*round, offered, client, now);
  if (!rest.error.ok() || offered.ok()) return rest;
  // The kubelet does not say when it has read a list.
  const bool passes = offered.code() == Code::kUnavailable;
  return {std::move(offered),
          passes ? std::min(rest.again.value_or(config_.catch_up), config_.catch_up) : rest.again};
}

Status Agent::Leave(const reconcile::View& view, kube::Client& client) {
  const Node node = NodeNow(view);
  if (node == nullptr || !device_plugin_.Withdraws()) return Status::Ok();
  std::map<std::string, int64_t> none;
  for (const std::string& resource : resources_) {
    if (reconcile::AllocatableOf(*node, resource) > 0) none[resource] = 0;
  }
  return none.empty() ? Status::Ok() : reconcile::PatchNodeDevices(client, *node, none).status();
}

// The cache may lag behind what we wrote ourselves.
Agent::Node Agent::NodeNow(const reconcile::View& view) {
  Node cached = view.nodes.Get(node_);
  const bool newer =
      cached != nullptr && written_ != nullptr && cached->meta.uid == written_->meta.uid &&
      !kube::NotNewer(written_->meta.resource_version, cached->meta.resource_version);
  if (newer) return written_;
  written_ = nullptr;
  return cached;
}

Result<Agent::Round> Agent::Assess(Node node, const Pods& pods, Time now) {
  const Division division = DivisionOf(*node, now);
  backend_.GiveWhole(division.hybrid);
  NOS_ASSIGN(NodeDevices devices, Observe(backend_, pod_resources_, catalogue_, division));
  Round round;
  // NVIDIA's plugin offers what it can read itself: nothing there must not call for a restart.
  const bool healthy = device_plugin_.Withdraws();
  round.waits = KeepUnreadable(devices, last_read_, healthy, config_.unreadable, now);
  if (extras_.health != nullptr) Mark(devices, extras_.health->Conditions());
  round.node = std::move(node);
  round.devices = std::move(devices);
  FindLeftNotes(round);
  holders_ = Recall(round.devices, holders_, pods);
  round.on_their_way = OnTheirWay(pods);
  round.kubelet_lags = HeldByNobody(round.devices, pods) || !round.devices.doubtful.empty() ||
                       round.devices.unseen_shares;
  ReadTargets(round);
  MatchTargets(round);
  if (extras_.shares_gpus) round.lacks = LackedForMps(round.devices, pods, extras_.mps_needs);
  round.keep = round.devices.Held();
  round.keep.merge(NeededByBoundPods(round.devices, round.targets, pods));
  if (extras_.nebuly_shares) {
    round.keep = WithSharesBelow(std::move(round.keep), round.devices);
  }
  round.unwanted =
      WithResources(device::Unwanted(round.targets, round.devices.gpus, round.keep), round.devices);
  KeepDaemons(round);
  WithholdUnserved(round);
  if (const std::string plan = cluster::SpecPlan(*round.node); plan != plan_) {
    plan_ = plan;
    failures_.Clear();
  }
  return round;
}

void Agent::ReadTargets(Round& round) {
  LeaveOldModes(round);
  // GPUs that are told of but cannot be reached have targets too: they must not pass for done.
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
    if (round.devices.broken.contains(target.index)) continue;  // nothing is changed there
    if (read.contains(target.index)) continue;                  // nor where the mode changes
    read.insert(target.index);
    round.targets.push_back({target.index, std::move(target.placements), target.model});
  }
  for (const auto& [index, why] : round.devices.broken) {  // of which the node may not tell
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

// What is on its way out stays in the offer until it is drained: pods may have been sent for it.
Status Agent::Offer(Round& round, kube::Client& client, Time now) {
  drains_.Look(round.unwanted, CountsFor(round), *round.node);
  const auto leaves = [&](const auto& instance) {
    return InOffer(instance.first) && drains_.Drained(instance.first, now);
  };
  if (std::any_of(round.unwanted.begin(), round.unwanted.end(), leaves)) {
    NOS_RETURN_IF_ERROR(LookPastCaches(round, client, now));
  }
  std::set<std::string> withheld;
  for (const auto& instance : round.unwanted) {
    if (!InOffer(instance.first) || leaves(instance)) withheld.insert(instance.first);
  }
  std::erase_if(awaited_by_, [&](const auto& item) { return !withheld.contains(item.first); });
  std::vector<kubelet::OfferedDevice> offer = OfferOf(round.devices, withheld);
  if (offered_ == offer) return Status::Ok();
  for (const kubelet::OfferedDevice& device : offer) resources_.insert(device.resource);
  offered_.reset();  // should this fail, nobody knows what the kubelet holds
  NOS_RETURN_IF_ERROR(device_plugin_.Offer(offer));
  offered_ = std::move(offer);
  offer_changed_ = true;
  looks_ = 0;
  return Status::Ok();
}

// Whether the kubelet may hand the device out, as far as is known.
bool Agent::InOffer(const std::string& uuid) const {
  return !offered_ || std::any_of(offered_->begin(), offered_->end(),
                                  [&](const auto& device) { return device.device_id == uuid; });
}

// By resource, the devices that schedulers may count on.
std::map<std::string, int64_t> Agent::CountsFor(const Round& round) const {
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

// Writes into the node what the kubelet would write later. When it has written something else
// since, it has the last word: but for instances that are to go.
Status Agent::ShowCounts(Round& round, kube::Client& client, const Clock& clock) {
  std::set<std::string> draining;
  for (const auto& [uuid, resource] : round.unwanted) draining.insert(resource);
  const std::map<std::string, int64_t> counts = CountsFor(round);
  std::map<std::string, int64_t> changes;
  for (const auto& [resource, count] : counts) {
    const int64_t shown = reconcile::AllocatableOf(*round.node, resource);
    const bool drains = shown > count && draining.contains(resource);
    const auto own = figures_.find(resource);
    if (own != figures_.end() && own->second != shown) figures_.erase(own);  // the kubelet's now
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
    } else {  // the kubelet will, if later
      refused = true;
      Log(LogLevel::kWarn, "cannot write the node's devices",
          {{"error", written.status().ToString()}});
    }
  }
  offer_changed_ &= !taken;
  drains_.Told(round.unwanted, counts, *round.node, refused, clock.Now());
  return Status::Ok();
}

// Whether the kubelet can hand out all of the last offer: it refuses pods that come before.
Result<bool> Agent::OfferTaken(Round& round) {
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

// Kubelet and API server themselves are asked: what is taken away next must be free.
Status Agent::LookPastCaches(Round& round, kube::Client& client, Time now) {
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

// Whether schedulers may still send pods for it, or the kubelet choose it for one.
bool Agent::Draining(const std::string& uuid, Time now) const {
  return device_plugin_.Withdraws() ? InOffer(uuid) : !drains_.Drained(uuid, now);
}

// Whether a pod on its way in may be given it. What is off the list is chosen for no new pod; what
// cannot be taken off waits for a while. REQUIRES: one of the unwanted, not draining.
bool Agent::IsAwaited(const std::string& uuid, const Round& round, Time now) const {
  const auto pods = round.on_their_way.find(round.unwanted.at(uuid));
  if (pods == round.on_their_way.end()) return false;
  if (!device_plugin_.Withdraws()) return now < drains_.DrainedAt(uuid) + config_.drain_timeout;
  const auto by = awaited_by_.find(uuid);
  return by != awaited_by_.end() && std::ranges::any_of(by->second, [&](const auto& pod) {
           return pods->second.contains(pod);
         });
}

// What somebody else may be making there is none of our business.
bool Agent::LeftAlone(const device::Operation& operation, const Round& round) const {
  return IsRepair(operation) && (!round.managed || round.devices.broken.contains(operation.gpu));
}

bool Agent::MustWait(const device::Operation& operation, Round& round, Time now) const {
  if (OnlyTakesBack(operation, round)) return false;
  const bool unshares = operation.kind == device::Operation::Kind::kDisableMps;
  // Of what exists in memory only, or in its place.
  const bool in_memory = unshares || operation.ChangesMig() ||
                         (operation.Switches() && IsHybrid(*round.node)) ||
                         !device::IsMigProfile(operation.profile);
  if (in_memory && round.devices.unseen_shares) return round.waits = true;
  if (operation.kind == device::Operation::Kind::kCreate || IsRepair(operation)) return false;
  const bool enables = operation.Switches();
  // What a daemon serves: a former agent may have left it. Nor is a GPU reset that one has open.
  const bool serves =
      unshares || operation.ChangesMig() || operation.kind == device::Operation::Kind::kDestroy;
  if (serves && IsServed(operation.uuid)) return round.waits = true;
  if (!enables && Draining(operation.uuid, now)) return true;
  // Where whole GPUs are instances, pods on their way wait for those.
  const bool whole =
      !IsHybrid(*round.node) && (round.on_their_way.contains(kWholeGpu) ||
                                 round.on_their_way.contains(std::string(gpu::kTimeSlice)));
  const bool awaited = enables ? whole : IsAwaited(operation.uuid, round, now);
  round.waits |= awaited;
  return awaited;
}

device::Progress Agent::Decide(Round& round, Time now) {
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

reconcile::Outcome Agent::Act(const device::Operation& operation, Round& round, kube::Client& client,
                   const Clock& clock) {
  Result<bool> free = StillFree(operation, round, client, clock.Now());
  if (!free.ok()) return reconcile::Outcome::Failed(free.status());
  // The caches have not seen yet what speaks against it; asking again at once would not hasten
  // them.
  if (!*free) return reconcile::Outcome::Again(config_.catch_up);
  const Status done = Perform(operation, round);
  if (done.ok()) {
    failures_.Succeeded(operation);
    return reconcile::Outcome::Again(Duration::zero());
  }
  // NotFound and the like: the next observation shows what is there.
  failures_.Record(operation, done, clock.Now());
  KeepMode(operation, done, round, clock.Now());
  Say(client, *round.node, kube::EventType::kWarning, "DeviceOperationFailed",
      fmt::format("{}: {}", operation.ToString(), done.message()), clock.Now());
  return reconcile::Outcome::Again(Duration::zero());
}

// Looks past the caches for each operation: a pod that was bound a moment ago is saved only if it
// is seen.
Result<bool> Agent::StillFree(const device::Operation& operation, Round& round,
                              kube::Client& client, Time now) {
  if (operation.kind == device::Operation::Kind::kCreate || IsRepair(operation)) return true;
  NOS_RETURN_IF_ERROR(LookPastCaches(round, client, now));
  if (!IsThere(operation, round.devices)) return false;
  if (OnlyTakesBack(operation, round)) return true;
  for (const auto& [uuid, resource] : round.unwanted) {
    if (!InOffer(uuid)) awaited_by_.try_emplace(uuid, round.on_their_way[resource]);
  }
  const bool destroys = operation.kind == device::Operation::Kind::kDestroy;
  if (destroys && !round.unwanted.contains(operation.uuid)) return false;
  if (round.keep.contains(operation.uuid) || MustWait(operation, round, now)) return false;
  if (!destroys) return true;
  return device_plugin_.Condemn(operation.uuid) && !MustEndDaemon(operation, round);
}

// Nothing can be done now: reports, and says when to look again. `offered`: the kubelet has what is
// there.
reconcile::Outcome Agent::Rest(const device::Progress& progress, const Round& round, bool offered,
                    kube::Client& client, Time now) {
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
  if (const Status written = Report(round, result, client); !written.ok()) {
    return reconcile::Outcome::Failed(written);
  }
  if (const Status told = ReportHealth(round, client, now); !told.ok()) {
    return reconcile::Outcome::Failed(told);
  }
  if (const Status told = ReportReboot(round, client, now); !told.ok()) {
    return reconcile::Outcome::Failed(told);
  }
  if (result) Announce(round, *result, client, now);
  AnnounceProblems(round, client, now);
  AnnounceLacks(round, client, now);
  Measure(round);
  Time next = now + config_.poll;
  lags_ = round.kubelet_lags ? lags_ + 1 : 0;
  if (lags_ > 0) next = now + kube::BackOff{config_.first_look, config_.catch_up}.After(lags_);
  if (next_drained) next = std::min(next, *next_drained);
  if (round.look_again) next = std::min(next, now + *round.look_again);
  if (const auto retry = failures_.NextRetry(now)) next = std::min(next, *retry);
  return reconcile::Outcome::Again(next - now);
}

Status Agent::Perform(const device::Operation& operation, const Round& round) {
  // Should the GPU answer no more then, this is not what it had.
  if (const auto known = last_read_.find(operation.gpu); known != last_read_.end()) {
    std::erase_if(known->second.first.instances,
                  [&](const auto& instance) { return instance.uuid == operation.uuid; });
  }
  const SteadyClock clock;
  const Time begun = clock.Now();
  Status done = ApplyOrReset(operation, round);
  if (extras_.metrics != nullptr) {
    const std::string name = NameOf(operation.kind);
    extras_.metrics->Observe(reconcile::kDeviceOperationDuration, {{"operation", name}}, clock.Now() - begun);
    extras_.metrics->Count(reconcile::kDeviceOperations,
                           {{"operation", name}, {"result", done.ok() ? "ok" : "error"}});
  }
  return done;
}

}  // namespace nos::agent
