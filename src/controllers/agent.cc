#include "controllers/agent.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "controllers/annotation_write.h"
#include "controllers/condition.h"
#include "controllers/measures.h"

namespace nos::controllers {
namespace {

bool HasSpec(const cluster::Node& node, int gpu) {
  const std::string counts = fmt::format("{}spec-gpu-{}-", cluster::kPrefix, gpu);
  const cluster::StringMap& all = node.meta.annotations;
  const auto first = all.lower_bound(counts);
  return all.contains(fmt::format("{}spec-layout-{}", cluster::kPrefix, gpu)) ||
         (first != all.end() && first->first.starts_with(counts));
}

std::map<std::string, int64_t> CountByResource(const std::vector<kubelet::OfferedDevice>& offer) {
  std::map<std::string, int64_t> counts;
  for (const kubelet::OfferedDevice& device : offer) {
    counts[device.resource] += device.healthy ? 1 : 0;  // as the node's allocatable counts them
  }
  return counts;
}

std::string NameOf(device::Operation::Kind kind) {
  switch (kind) {
    case device::Operation::Kind::kCreate:
      return "create";
    case device::Operation::Kind::kDestroy:
      return "destroy";
    case device::Operation::Kind::kEnableMig:
      return "enable";
  }
  return "";
}

// Conditions are read by people, and the API server takes 32 KiB of them.
std::string Shortened(std::string message) {
  constexpr size_t kMost = 1000;
  if (message.size() > kMost) message = message.substr(0, kMost - 3) + "...";
  return message;
}

// Instances that will go, or stay against the spec only because they are needed: not given to
// anybody new.
std::map<std::string, std::string> ToWithdraw(const std::vector<device::GpuInstance>& unwanted,
                                              const NodeDevices& devices) {
  std::map<std::string, std::string> withdrawn;
  for (const device::GpuInstance& instance : unwanted) {
    const auto gpu = std::find_if(devices.gpus.begin(), devices.gpus.end(),
                                  [&](const auto& g) { return g.index == instance.gpu; });
    withdrawn[instance.uuid] = ResourceOf(*gpu, instance);
  }
  return withdrawn;
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
      extras_(extras),
      withdrawals_({config.withdraw_timeout, config.settle}),
      failures_({config.first_pause, config.longest_pause}, config.failures_before_giving_up) {}

Outcome Agent::Reconcile(const std::string&, const View& view, kube::Client& client,
                         const Clock& clock) {
  const auto node = view.nodes.Get(node_);
  if (node == nullptr) return Outcome::Again(config_.poll);
  const Result<Round> round = Assess(*node, *view.pods.Snapshot());
  if (!round.ok()) return Outcome::Failed(round.status());
  const Time now = clock.Now();
  const bool withdraws = device_plugin_.Withdraws();
  Status offered = withdraws ? Offer(*round, now) : Status::Ok();
  if (!offered.ok()) return Outcome::Failed(std::move(offered));
  const device::Progress progress = Decide(*round, now);
  if (progress.next) return Act(*progress.next, *round, client, clock);
  if (!withdraws) offered = device_plugin_.Offer(OfferOf(round->devices, {}));
  if (!offered.ok()) return Outcome::Failed(std::move(offered));
  return Rest(progress, *round, client, now);
}

Result<Agent::Round> Agent::Assess(const cluster::Node& node, const Pods& pods) {
  NOS_ASSIGN(NodeDevices devices, Observe(backend_, pod_resources_, catalogue_));
  if (extras_.health != nullptr) Mark(devices, extras_.health->Conditions());
  Round round{node, std::move(devices), false, {}, {}, {}, {}, false};
  round.kubelet_lags = HeldByNobody(round.devices, pods);
  ReadTargets(round);
  round.keep = round.devices.Held();
  round.keep.merge(NeededByBoundPods(round.devices, round.targets, pods));
  round.withdrawn =
      ToWithdraw(device::Unwanted(round.targets, round.devices.gpus, round.keep), round.devices);
  if (const std::string plan = cluster::SpecPlan(node); plan != plan_) {
    plan_ = plan;
    failures_.Clear();
  }
  return round;
}

void Agent::ReadTargets(Round& round) {
  // GPUs that are told of but cannot be reached have targets too: they must not pass for done.
  cluster::NodeGpus gpus = cluster::ReadNodeGpus(round.node, catalogue_);
  round.managed = gpus.managed;
  if (!round.managed) return;
  for (cluster::Gpu& observed : ToGpus(round.devices)) {
    std::erase_if(gpus.gpus, [&](const auto& told) { return told.index == observed.index; });
    gpus.gpus.push_back(std::move(observed));
  }
  std::set<int> read;
  for (cluster::TargetLayout& target : cluster::ReadSpec(round.node, gpus)) {
    if (round.devices.broken.contains(target.index)) continue;  // nothing is changed there
    read.insert(target.index);
    round.targets.push_back({target.index, std::move(target.placements)});
  }
  for (const cluster::Gpu& gpu : gpus.gpus) {
    if (read.contains(gpu.index) || !HasSpec(round.node, gpu.index)) continue;
    if (const auto broken = round.devices.broken.find(gpu.index);
        broken != round.devices.broken.end()) {
      round.unreadable.push_back({gpu.index, "", "GpuUnhealthy", broken->second});
      continue;
    }
    round.unreadable.push_back({gpu.index, "", "BadSpec",
                                fmt::format("the spec of GPU {} is not one layout that {} can have",
                                            gpu.index, gpu.model->name())});
  }
}

Status Agent::Offer(const Round& round, Time now) {
  std::set<std::string> withheld;
  for (const auto& [uuid, resource] : round.withdrawn) withheld.insert(uuid);
  std::vector<kubelet::OfferedDevice> offer = OfferOf(round.devices, withheld);
  const std::map<std::string, int64_t> counts = CountByResource(offer);
  if (offered_ != offer) {
    offered_.reset();  // should this fail, nobody knows what the kubelet holds
    NOS_RETURN_IF_ERROR(device_plugin_.Offer(offer));
    offered_ = std::move(offer);
  }
  withdrawals_.Update(round.withdrawn, counts, round.node, now);
  return Status::Ok();
}

device::Progress Agent::Decide(const Round& round, Time now) {
  std::set<std::string> asked;
  const auto deferred = [&](const device::Operation& operation) {
    asked.insert(operation.ToString());
    const bool withdrawing = operation.kind == device::Operation::Kind::kDestroy &&
                             !operation.uuid.empty() && device_plugin_.Withdraws() &&
                             !withdrawals_.MayDestroy(operation.uuid, now);
    return withdrawing || failures_.Pausing(operation, now);
  };
  device::Progress progress =
      device::NextOperation(round.targets, round.devices.gpus, round.keep, deferred);
  if (!progress.next) failures_.Keep(asked);
  return progress;
}

Outcome Agent::Act(const device::Operation& operation, const Round& round, kube::Client& client,
                   const Clock& clock) {
  if (operation.kind == device::Operation::Kind::kDestroy && !operation.uuid.empty()) {
    const Result<bool> free = StillFree(operation, round, client);
    if (!free.ok()) return Outcome::Failed(free.status());
    // The caches have not seen the pod yet that needs it; asking again at once would not hasten
    // them.
    if (!*free) return Outcome::Again(config_.catch_up);
  }
  const Status done = Perform(operation);
  if (done.ok()) {
    failures_.Succeeded(operation);
    return Outcome::Again(Duration::zero());
  }
  // NotFound and the like: the next observation shows what is there.
  failures_.Record(operation, done, clock.Now());
  events_.Record(client, Reference(round.node), kube::EventType::kWarning, "DeviceOperationFailed",
                 fmt::format("{}: {}", operation.ToString(), done.message()), clock.Now());
  return Outcome::Again(Duration::zero());
}

// The last look before a destruction: past the caches, at the kubelet and the API server
// themselves.
Result<bool> Agent::StillFree(const device::Operation& operation, const Round& round,
                              kube::Client& client) {
  kube::ListOptions options;
  options.field_selector = "spec.nodeName=" + node_;
  NOS_ASSIGN(const kube::ObjectList list, client.List(kube::kPods, "", options));
  Pods pods;
  for (const Json& item : list.items) {
    Result<cluster::Pod> pod = cluster::DecodePod(item);
    if (pod.ok()) pods.push_back(std::make_shared<const cluster::Pod>(std::move(pod).value()));
  }
  NOS_ASSIGN(const Round now, Assess(round.node, pods));
  return now.withdrawn.contains(operation.uuid);
}

// Nothing can be done now: reports, and says when to look again.
Outcome Agent::Rest(const device::Progress& progress, const Round& round, kube::Client& client,
                    Time now) {
  std::optional<PlanResult> result;
  const bool ended = !withdrawals_.NextReady(now) && failures_.AllGivenUp();
  if (round.managed && ended && !plan_.empty()) {
    result = ResultOf(progress, round);
  }
  if (const Status written = Report(round, result, client); !written.ok()) {
    return Outcome::Failed(written);
  }
  if (const Status told = ReportHealth(round, client, now); !told.ok()) {
    return Outcome::Failed(told);
  }
  if (result) Announce(round, *result, client, now);
  AnnounceProblems(round, client, now);
  Measure(round);
  Time next = now + (round.kubelet_lags ? config_.catch_up : config_.poll);
  if (const auto ready = withdrawals_.NextReady(now)) next = std::min(next, *ready);
  if (const auto retry = failures_.NextRetry(now)) next = std::min(next, *retry);
  return Outcome::Again(next - now);
}

PlanResult Agent::ResultOf(const device::Progress& progress, const Round& round) const {
  PlanResult result{plan_, true, progress.obstacles};
  const std::vector<device::Obstacle> failed = failures_.Obstacles();
  for (const auto* more : {&round.unreadable, &failed}) {
    result.obstacles.insert(result.obstacles.end(), more->begin(), more->end());
  }
  result.applied = result.obstacles.empty();
  return result;
}

Status Agent::Report(const Round& round, const std::optional<PlanResult>& result,
                     kube::Client& client) {
  std::vector<cluster::Gpu> gpus = ToGpus(round.devices);
  std::erase_if(gpus, [&](const cluster::Gpu& gpu) {
    return failures_.CannotEnableMig(gpu.index);  // nobody should plan on it
  });
  cluster::AnnotationPatch patch = cluster::StatusPatch(
      round.node, gpus, result ? result->plan : cluster::StatusPlan(round.node));
  if (result) {
    const std::string key(cluster::kPlanResult);
    const auto known = round.node.meta.annotations.find(key);
    std::string text = WritePlanResult(*result);
    if (known == round.node.meta.annotations.end() || known->second != text) {
      patch[key] = std::move(text);
    }
  }
  if (patch.empty()) return Status::Ok();
  // A patch holds differences from the node as this agent knows it: only that very node may take
  // it.
  return PatchNodeAnnotations(client, node_, patch, round.node.meta.resource_version)
      .status()
      .Within("report GPUs of node " + node_);
}

void Agent::Announce(const Round& round, const PlanResult& result, kube::Client& client, Time now) {
  std::string text = WritePlanResult(result);
  const auto known = round.node.meta.annotations.find(cluster::kPlanResult);
  const bool old = known != round.node.meta.annotations.end() && known->second == text;
  if (!old && text != announced_) {
    if (result.applied) {
      events_.Record(client, Reference(round.node), kube::EventType::kNormal, "Partitioned",
                     fmt::format("plan {} is applied", result.plan), now);
    } else {
      events_.Record(client, Reference(round.node), kube::EventType::kWarning,
                     "PartitioningIncomplete",
                     fmt::format("plan {}: {}", result.plan, Describe(result.obstacles)), now);
    }
  }
  announced_ = std::move(text);
}

// Nodes without anything wrong get the condition only once they have had it.
Status Agent::ReportHealth(const Round& round, kube::Client& client, Time now) {
  if (extras_.health == nullptr) return Status::Ok();
  std::string reason = "AllWell", message;
  for (const device::HealthCondition& condition : extras_.health->Conditions()) {
    if (message.empty()) reason = condition.Reason();
    message +=
        fmt::format("{}GPU {}: {}", message.empty() ? "" : "; ", condition.gpu, condition.message);
  }
  const WantedCondition wanted{std::string(kGpusHealthy), message.empty() ? "True" : "False",
                               std::move(reason), Shortened(std::move(message))};
  const bool never_had = FindCondition(round.node.conditions, wanted.type) == nullptr;
  if (HasCondition(round.node, wanted) || (never_had && wanted.status == "True")) {
    return Status::Ok();
  }
  NOS_RETURN_IF_ERROR(WriteCondition(client, round.node, wanted, now));
  if (wanted.status == "False") {
    events_.Record(client, Reference(round.node), kube::EventType::kWarning, wanted.reason,
                   wanted.message, now);
  }
  return Status::Ok();
}

Status Agent::Perform(const device::Operation& operation) {
  const SteadyClock clock;
  const Time begun = clock.Now();
  Status done = device::Apply(operation, backend_);
  if (extras_.metrics != nullptr) {
    const std::string name = NameOf(operation.kind);
    extras_.metrics->Observe(kDeviceOperationDuration, {{"operation", name}}, clock.Now() - begun);
    extras_.metrics->Count(kDeviceOperations,
                           {{"operation", name}, {"result", done.ok() ? "ok" : "error"}});
  }
  return done;
}

void Agent::Measure(const Round& round) const {
  if (extras_.metrics == nullptr) return;
  std::map<MetricLabels, double> instances;
  for (const cluster::Gpu& gpu : ToGpus(round.devices)) {
    for (const cluster::Instance& instance : gpu.instances) {
      ++instances[{{"gpu", std::to_string(gpu.index)},
                   {"model", gpu.model->name()},
                   {"profile", gpu.model->profile(instance.placement.profile).name},
                   {"state", instance.used ? "used" : "free"}}];
    }
  }
  extras_.metrics->SetAll(kInstances, {instances.begin(), instances.end()});
  if (extras_.health == nullptr) return;
  std::map<MetricLabels, double> conditions;
  for (const device::HealthCondition& condition : extras_.health->Conditions()) {
    conditions[{{"gpu", std::to_string(condition.gpu)}, {"reason", condition.Reason()}}] = 1;
  }
  extras_.metrics->SetAll(kGpuConditions, {conditions.begin(), conditions.end()});
}

void Agent::AnnounceProblems(const Round& round, kube::Client& client, Time now) {
  if (round.devices.problems == problems_) return;
  problems_ = round.devices.problems;
  for (const std::string& problem : problems_) {
    events_.Record(client, Reference(round.node), kube::EventType::kWarning, "GpuNotUsable",
                   problem, now);
  }
}

kube::ObjectReference Agent::Reference(const cluster::Node& node) const {
  // As the kubelet does: a node's events carry its name as uid, so that kubectl finds them.
  return {"Node", "", node.meta.name, node.meta.name};
}

}  // namespace nos::controllers
