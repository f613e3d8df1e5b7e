#include "sim/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "controllers/planned_gangs.h"
#include "scheduling/framework.h"
#include "sim/workload.h"
#include "sim/world/checks/satisfiable.h"
#include "sim/world/node/claim_invariants.h"
#include "sim/world/node/invariants.h"

namespace nos::sim {

// A controller that is not bound to a node, with its own connection.
struct World::Controller {
  Controller(const std::string& name, Process::Make make, kube::Transport& api, World& world,
             const reconcile::RunnerOptions& options = {})
      : transport(name, api, world.faults_, life, world.queue_, world.clock_, world.log_),
        process(name, std::move(make), transport, options, life, world.clock_, world.log_) {}

  Life life;
  FaultyTransport transport;
  Process process;
};

namespace {

FaultRates WithoutCrashes(FaultRates rates) {
  rates.crash = 0;
  return rates;
}

std::unique_ptr<const scheduling::Framework> DefaultFramework(scheduling::PartitionedBy by) {
  return std::make_unique<const scheduling::Framework>(scheduling::Framework::Default(by));
}

}  // namespace

World::World(WorldOptions options, const gpu::Catalogue& catalogue)
    : options_(std::move(options)),
      catalogue_(catalogue),
      clock_(options_.start),
      random_(options_.seed),
      log_(clock_, options_.start),
      faults_(options_.faults, options_.start + options_.faults_last, random_.Fork(), clock_),
      kubelet_faults_(WithoutCrashes(options_.faults), faults_.until(), random_.Fork(), clock_),
      api_(clock_),
      slices_(catalogue_, clock_, api_),
      client_(api_),
      pods_(kube::kPods, cluster::ReadPod),
      nodes_(kube::kNodes, cluster::ReadNode),
      keeper_(api_, clock_, log_, options_.keep_finished),
      claim_keeper_(api_, clock_, log_),
      workload_keeper_(api_, clock_, log_),
      framework_(DefaultFramework(scheduling::PartitionedBy::kPartitioner)),
      scheduler_framework_(DefaultFramework(options_.partitioned_by)),
      partitioning_framework_(DefaultFramework(scheduling::PartitionedBy::kScheduler)),
      devices_(api_),
      infrastructure_(Env(), moves_,
                      {.join = [this](const NodeSpec& node) { return AddNode(node); },
                       .leave = [this](const std::string& node) { RemoveForGood(node); }}) {
  pods_.AddHandler([this](const std::string&, const auto& before, const auto& after) {
    gangs_.See(before, after, clock_.Now());
    quotas_.See(before, after, clock_.Now());
    for (std::string& problem : quotas_.TakeProblems(clock_.Now())) Violation(std::move(problem));
    // Takes time linear in the number of pods, and only evictions need it.
    const bool evicted = after != nullptr && after->FindCondition("DisruptionTarget") != nullptr;
    if (evicted) quotas_.SetReserved(Reserved());
    evictions_.See(before, after, clock_.Now());
    for (std::string& problem : evictions_.TakeProblems()) Violation(std::move(problem));
    if (options_.autoscaler) moves_.See(before, after, clock_.Now());
    if (after == nullptr || after->node_name.empty()) return;
    CheckBinding(*after, before != nullptr && before->node_name.empty());
  });
  api_.SetPodWebhook(slices_.Hook());
  ScheduleRivals();
  nodes_.AddHandler([this](const std::string& name, const auto& before, const auto& after) {
    const auto open = [](const auto& node) { return node != nullptr && node->taints.empty(); };
    if (open(before) || open(after)) open_at_[name] = clock_.Now();
    if (after == nullptr) return RemoveMachine(name);
    if (!options_.check_annotations) return;
    for (std::string& problem : CheckNode(*after, catalogue_)) Violation(std::move(problem));
  });
}

World::~World() { api_.SetPodWebhook({}); }

Environment World::Env() {
  return {catalogue_, api_, clock_, queue_, log_, faults_, kubelet_faults_, random_, violations_};
}

Status World::AddNode(const NodeSpec& spec) {
  if (machines_.contains(spec.name)) {
    return {Code::kAlreadyExists, fmt::format("node '{}' is there already", spec.name)};
  }
  if (spec.dra && !serves_devices_ && scheduler_host_ != nullptr) {
    return Invalid("the first node with dra must be there before the controllers start");
  }
  serves_devices_ = serves_devices_ || spec.dra;
  NOS_ASSIGN(std::unique_ptr<Machine> machine, Machine::Make(spec, Env(), options_.times));
  machines_.emplace(spec.name, std::move(machine));
  specs_.emplace(spec.name, spec);
  ScheduleReboots(spec.name);
  ScheduleLosses(spec.name);
  if (spec.mps || spec.hybrid) ScheduleDaemonLosses(spec.name);
  return Status::Ok();
}

Status World::AddPool(const PoolSpec& spec) { return infrastructure_.Add(spec); }

// Checks that the binding of the pod never changes, and that the node had capacity if it was
// `scheduled` now.
std::vector<QuotaChecker::Pod> World::Reserved() const {
  std::vector<QuotaChecker::Pod> reserved;
  const controllers::Scheduler* binder = scheduler();
  if (binder == nullptr || binder->bindings() == 0) return reserved;
  const cluster::ClusterSnapshot& assumed = binder->snapshot();
  for (size_t i = 0; i < assumed.size(); ++i) {
    for (const auto& pod : assumed.node(i).pods) {
      const auto truth = pods_.Get(pod->Key());
      if (truth != nullptr && truth->meta.uid == pod->meta.uid && truth->node_name.empty()) {
        reserved.push_back(pod);
      }
    }
  }
  return reserved;
}

void World::CheckBinding(const cluster::Pod& pod, bool scheduled) {
  if (!options_.check_invariants) return;
  const auto place = places_.emplace(pod.meta.uid, pod.node_name).first;
  if (place->second != pod.node_name) {
    Violation(
        fmt::format("{} was bound to {} and then to {}", pod.Key(), place->second, pod.node_name));
  }
  if (!scheduled) return;
  CheckTaints(pod);
  for (std::string& problem : CheckBoundClaims(pod, client_)) Violation(std::move(problem));
  const auto rival = rival_at_.find(pod.node_name);
  if (rival != rival_at_.end() && clock_.Now() - rival->second <= kFaultsLinger) return;
  const auto node = nodes_.Get(pod.node_name);
  if (node == nullptr) return;
  for (std::string& problem : CheckRoom(*node, *pods_.Snapshot())) Violation(std::move(problem));
}

// Tolerates recent taints, which the scheduler may not have seen.
void World::CheckTaints(const cluster::Pod& pod) {
  const auto node = nodes_.Get(pod.node_name);
  if (node == nullptr || ToleratesTaints(pod, *node)) return;
  const auto open = open_at_.find(pod.node_name);
  if (open != open_at_.end() && clock_.Now() - open->second <= kFaultsLinger) return;
  Violation(fmt::format("{} was bound to {}, whose taint it does not tolerate", pod.Key(),
                        pod.node_name));
}

void World::Submit(const PodSpec& pod, Time when) {
  if (pod.priority != 0) {  // an error means that it exists
    queue_.At(when, [this, priority = pod.priority] {
      (void)client_.Create(*WorkloadResource("PriorityClass"), "", PriorityClassObject(priority));
    });
  }
  Submit(PodObject(pod), when);
}

void World::Submit(const Json& object, Time when) {
  queue_.At(when, [this, object] {
    const std::string name(FindString(object, "metadata", "name"));
    const auto created = client_.Create(*WorkloadResource(FindString(object, "kind")),
                                        FindString(object, "metadata", "namespace"), object);
    log_.Note("user", created.ok()
                          ? fmt::format("creates {}", name)
                          : fmt::format("cannot create {}: {}", name, created.status().ToString()));
  });
}

void World::StartControllers(kube::Transport* api) {
  kube::Transport& way = api != nullptr ? *api : api_;
  partitioner_host_ = std::make_unique<Controller>(
      "partitioner",
      [this] {
        return std::make_unique<controllers::Partitioner>(options_.partitioner, *framework_,
                                                          catalogue_);
      },
      way, *this, controllers::WatchingGangs());
  scheduler_host_ = std::make_unique<Controller>(
      "scheduler",
      [this] {
        std::vector<controllers::SchedulerProfile> profiles;
        for (const char* name : {"", "default-scheduler", "nos-scheduler"}) {
          profiles.push_back({name, scheduler_framework_.get()});
          profiles.back().with_partitioning = partitioning_framework_.get();
        }
        return std::make_unique<controllers::Scheduler>(options_.scheduler, std::move(profiles),
                                                        catalogue_);
      },
      way, *this, reconcile::RunnerOptions{.watch_around = true, .watch_devices = serves_devices_});
  scheduler_host_->transport.OnBinding([this](const Json& binding) {
    gangs_.Asked(fmt::format("{}/{}", FindString(binding, "metadata", "namespace"),
                             FindString(binding, "metadata", "name")));
  });
  if (options_.autoscaler) StartAutoscaler(way);
}

void World::StartAutoscaler(kube::Transport& way) {
  controllers::AutoscalerConfig config =
      options_.autoscaler.value_or(controllers::AutoscalerConfig{});
  constexpr const char* kImage = "registry.k8s.io/pause:3.9";
  for (std::string* image : {&config.relocations.image, &config.signal.image}) {
    if (image->empty()) *image = kImage;
  }
  for (const std::string* ns : {&config.relocations.ns, &config.signal.ns}) {
    const Json object = {
        {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", *ns}}}};
    (void)client_.Create(kube::kNamespaces, "", object);  // an error means that it exists
  }
  reconcile::RunnerOptions autoscaler_watches = controllers::WatchingForAutoscaler();
  autoscaler_watches.watch_devices = serves_devices_;
  autoscaler_host_ = std::make_unique<Controller>(
      "autoscaler",
      [this, config] {
        return std::make_unique<controllers::Autoscaler>(config, *framework_, catalogue_);
      },
      way, *this, autoscaler_watches);
  autoscaler_host_->transport.SetIntercept(
      [this](const kube::ApiRequest& request) { return InterceptAutoscaler(request); });
}

std::optional<kube::ApiResponse> World::InterceptAutoscaler(const kube::ApiRequest& request) {
  if (request.method == "POST" && request.path.ends_with("/eviction")) {
    const std::vector<std::string_view> parts = Split(request.path, '/');
    // /api/v1/namespaces/NS/pods/NAME/eviction
    constexpr size_t kNamespace = 4, kName = 6;
    if (parts.size() > kName && options_.check_invariants) {
      pods_.Pump(client_, clock_.Now());
      moves_.Asked(kube::KeyOf(parts[kNamespace], parts[kName]),
                   FindString(request.body, "deleteOptions", "preconditions", "uid"), clock_.Now());
      JudgeMoves();
    }
  }
  if (!infrastructure_.Refuses(request.path)) return std::nullopt;
  return kube::ApiResponse{503, JsonObject{{"kind", "Status"},
                                           {"apiVersion", "v1"},
                                           {"status", "Failure"},
                                           {"message", "it cannot be scaled now (injected)"},
                                           {"reason", "ServiceUnavailable"},
                                           {"code", 503}}};
}

void World::JudgeMoves() {
  for (std::string& problem : moves_.TakeProblems()) Violation(std::move(problem));
}

void World::RunUntil(Time end) {
  while (true) {
    Settle();
    const std::optional<Time> next = NextTime();
    if (!next || *next > end) break;
    clock_.AdvanceTo(*next);
    while (queue_.Due(clock_.Now())) queue_.RunNext();
  }
  clock_.AdvanceTo(end);
}

void World::SkipTo(Time end) {
  // 1. Run the due events, then settle nodes and infrastructure: controllers act on their results.
  clock_.AdvanceTo(end);
  while (queue_.Due(clock_.Now())) queue_.RunNext();
  SettleMachines();
  UntilNothingIsDone([this] { return Step({&keeper_, nullptr}); });
  UntilNothingIsDone([this] { return Step({&claim_keeper_, nullptr}); });
  UntilNothingIsDone([this] { return Step({&workload_keeper_, nullptr}); });
  UntilNothingIsDone([this] { return Step({&infrastructure_, nullptr}); });
  // 2. Let each controller act once. In large clusters they skip calls (see world.h).
  constexpr size_t kNodesPerSkip = 100;
  constexpr size_t kMaxRest = 10;
  const size_t rest = std::clamp<size_t>(machines_.size() / kNodesPerSkip, 1, kMaxRest);
  Round(skips_++ % rest == 0 ? Controllers() : std::vector<Acting>());
}

std::optional<Time> World::NextTime() const {
  std::optional<Time> next = queue_.NextTime();
  const auto consider = [&](const Actor* actor) {
    const std::optional<Time> wake = actor == nullptr ? std::nullopt : actor->NextWake();
    if (wake && *wake > clock_.Now()) next = std::min(next.value_or(*wake), *wake);
  };
  for (const auto& [name, machine] : machines_) {
    consider(&machine->kubelet());
    consider(machine->agent());
    consider(machine->driver());
  }
  consider(partitioner_host_ ? &partitioner_host_->process : nullptr);
  consider(scheduler_host_ ? &scheduler_host_->process : nullptr);
  consider(autoscaler_host_ ? &autoscaler_host_->process : nullptr);
  consider(&keeper_);
  consider(&claim_keeper_);
  consider(&workload_keeper_);
  consider(&infrastructure_);
  return next;
}

void World::Settle() {
  UntilNothingIsDone([this] {
    std::vector<Acting> actors = OnNodes();
    for (const Acting& controller : Controllers()) actors.push_back(controller);
    actors.push_back({&keeper_, nullptr});
    if (claim_keeper_.any()) actors.push_back({&claim_keeper_, nullptr});
    if (workload_keeper_.any()) actors.push_back({&workload_keeper_, nullptr});
    if (infrastructure_.any()) actors.push_back({&infrastructure_, nullptr});
    return Round(std::move(actors));
  });
}

// Machines interact only through controllers, so each one can be settled separately.
void World::SettleMachines() {
  for (const auto& entry : machines_) {
    Machine* const machine = entry.second.get();
    UntilNothingIsDone([this, machine] {
      if (machine->driver() != nullptr && Step({machine->driver(), machine})) return true;
      const bool kubelet = Step({&machine->kubelet(), machine});
      return (machine->agent() != nullptr && Step({machine->agent(), machine})) || kubelet;
    });
  }
}

void World::UntilNothingIsDone(const std::function<bool()>& act) {
  constexpr int kMaxRounds = 10'000;  // real work ends after some dozens
  int rounds = 0;
  while (act()) {
    if (++rounds < kMaxRounds) continue;
    Violation(fmt::format("no end of work at {}: {} goes on and on", FormatTime(Now()), busy_));
    return;
  }
}

std::vector<World::Acting> World::OnNodes() const {
  std::vector<Acting> actors;
  for (const auto& [name, machine] : machines_) {
    actors.push_back({&machine->kubelet(), machine.get()});
    if (machine->agent() != nullptr) actors.push_back({machine->agent(), machine.get()});
    if (machine->driver() != nullptr) actors.push_back({machine->driver(), machine.get()});
  }
  return actors;
}

std::vector<World::Acting> World::Controllers() {
  std::vector<Acting> actors;
  if (partitioner_host_) actors.push_back({&partitioner_host_->process, nullptr});
  if (scheduler_host_) actors.push_back({&scheduler_host_->process, nullptr});
  if (autoscaler_host_) actors.push_back({&autoscaler_host_->process, nullptr});
  return actors;
}

// Lets every actor take one step; returns whether any did.
bool World::Round(std::vector<Acting> actors) {
  if (options_.shuffle) random_.Shuffle(actors);
  bool did = false;
  for (const Acting& acting : actors) did |= Step(acting);
  nodes_.Pump(client_, clock_.Now());
  if (!claim_keeper_.any()) {
    claim_keeper_.Watch();
    did |= claim_keeper_.any();
  }
  if (!workload_keeper_.any()) {
    workload_keeper_.Watch();
    did |= workload_keeper_.any();
  }
  std::erase_if(machines_, [](const auto& entry) { return entry.second->kubelet().removed(); });
  return did;
}

bool World::Step(const Acting& acting) {
  if (!acting.actor->Step()) return false;
  busy_ = acting.actor->name();
  ++steps_;
  AfterStep(acting.machine);
  return true;
}

void World::AfterStep(Machine* machine) {
  if (!options_.check_invariants) return;
  nodes_.Pump(client_, clock_.Now());
  pods_.Pump(client_, clock_.Now());
  JudgeMoves();
  devices_.Watch(clock_.Now());
  for (std::string& problem : devices_.TakeProblems()) Violation(std::move(problem));
  if (machine == nullptr) return JudgeGangs();
  for (std::string& problem : CheckMachine(*machine, clock_.Now())) Violation(std::move(problem));
  for (std::string& problem : CheckRunningClaims(*machine, client_)) Violation(std::move(problem));
}

void World::JudgeGangs() {
  CheckPartitioning();
  if (scheduler() == nullptr) return;
  for (std::string& problem : gangs_.Check(scheduler()->snapshot(), clock_.Now())) {
    Violation(std::move(problem));
  }
}

// Checks only after the faults: a fault may prevent part of a plan, and that part is planned again
// later.
void World::CheckPartitioning() {
  if (partitioner() == nullptr || partitioner()->decisions().empty()) return;
  const auto& decisions = partitioner()->decisions();
  const uint64_t last = decisions.back().sequence;
  std::set<std::string> partitioned_for, planned;
  for (const controllers::Decision& decision : decisions) {
    const bool fresh = last < judged_decisions_ || decision.sequence > judged_decisions_;
    if (fresh) partitioned_for.insert(decision.pods.begin(), decision.pods.end());
  }
  judged_decisions_ = last;
  if (partitioned_for.empty() || clock_.Now() < faults_.until() + kFaultsLinger) return;
  for (const auto& [key, outcome] : partitioner()->verdicts()) {
    if (outcome.placed) planned.insert(key);
  }
  for (const auto& pod : *pods_.Snapshot()) {
    if (!pod->nominated_node.empty()) planned.insert(pod->Key());
  }
  for (std::string& problem : gangs_.CheckPartitioning(partitioned_for, planned, clock_.Now())) {
    Violation(std::move(problem));
  }
}

void World::Violation(std::string what) {
  if (violations_.size() >= kMaxViolations) return;
  log_.Note("VIOLATION", what);
  violations_.push_back(std::move(what));
}

// The node object was deleted; the machine disappears at the end of the round.
void World::RemoveMachine(const std::string& name) {
  if (Machine* machine = FindMachine(name)) machine->kubelet().Remove();
  if (serves_devices_) RemoveSlices(name);
  if (!options_.nodes_return) return infrastructure_.SeeLost(name);
  queue_.At(clock_.Now() + *options_.nodes_return, [this, name] {
    const auto spec = specs_.find(name);
    if (machines_.contains(name) || spec == specs_.end()) return;
    if (const Status joined = AddNode(spec->second); !joined.ok()) Violation(joined.ToString());
  });
}

// Removes the slices that the deleted node owned, like Kubernetes' garbage collector.
void World::RemoveSlices(const std::string& node) {
  const kube::Resource slices{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false};
  kube::ListOptions options;
  options.field_selector = "spec.nodeName=" + node;
  const auto list = client_.List(slices, "", options);
  for (size_t i = 0; list.ok() && i < list->items.size(); ++i) {
    (void)client_.Delete(slices, "", FindString(list->items[i], "metadata", "name"));
  }
}

// Removes a node with its pods, without a return.
void World::RemoveForGood(const std::string& node) {
  specs_.erase(node);
  if (client_.Delete(kube::kNodes, "", node).ok()) return;
  if (Machine* machine = FindMachine(node)) machine->kubelet().Remove();  // not registered yet
}

std::vector<std::shared_ptr<const cluster::Pod>> World::Pods() {
  pods_.Pump(client_, clock_.Now());
  return *pods_.Snapshot();
}

std::vector<std::shared_ptr<const cluster::Node>> World::Nodes() {
  nodes_.Pump(client_, clock_.Now());
  return *nodes_.Snapshot();
}

std::shared_ptr<const cluster::Pod> World::FindPod(std::string_view name) {
  std::shared_ptr<const cluster::Pod> found;
  for (const auto& pod : Pods()) {
    const auto label = pod->meta.labels.find(kPodLabel);
    const bool mine =
        pod->meta.name == name || (label != pod->meta.labels.end() && label->second == name);
    if (mine && (found == nullptr || found->meta.created <= pod->meta.created)) found = pod;
  }
  return found;
}

Machine* World::FindMachine(std::string_view name) {
  const auto found = machines_.find(name);
  return found == machines_.end() ? nullptr : found->second.get();
}

Process* World::FindProcess(std::string_view name) {
  if (name == "partitioner") return partitioner_host_ ? &partitioner_host_->process : nullptr;
  if (name == "scheduler") return scheduler_host_ ? &scheduler_host_->process : nullptr;
  if (name == "autoscaler") return autoscaler_host_ ? &autoscaler_host_->process : nullptr;
  if (!name.starts_with("agent ")) return nullptr;
  Machine* machine = FindMachine(name.substr(6));
  return machine == nullptr ? nullptr : machine->agent();
}

const controllers::Partitioner* World::partitioner() const {
  return partitioner_host_ == nullptr ? nullptr
                                      : static_cast<const controllers::Partitioner*>(
                                            partitioner_host_->process.reconciler());
}

const controllers::Scheduler* World::scheduler() const {
  return scheduler_host_ == nullptr
             ? nullptr
             : static_cast<const controllers::Scheduler*>(scheduler_host_->process.reconciler());
}

const controllers::Autoscaler* World::autoscaler() const {
  return autoscaler_host_ == nullptr
             ? nullptr
             : static_cast<const controllers::Autoscaler*>(autoscaler_host_->process.reconciler());
}

}  // namespace nos::sim
