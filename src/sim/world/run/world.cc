#include "sim/world.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/workload.h"

namespace nos::sim {
namespace {

FaultRates WithoutCrashes(FaultRates rates) {
  rates.crash = 0;
  return rates;
}

}  // namespace

World::World(WorldOptions options, const gpu::Catalogue& catalogue)
    : options_(std::move(options)),
      catalogue_(catalogue),
      clock_(options_.start),
      random_(options_.seed),
      log_(clock_, options_.start),
      violations_(log_),
      faults_(options_.faults, options_.start + options_.faults_last, random_.Fork(), clock_),
      kubelet_faults_(WithoutCrashes(options_.faults), faults_.until(), random_.Fork(), clock_),
      api_(clock_),
      slices_(catalogue_, clock_, api_),
      view_(api_, clock_),
      keepers_(api_, clock_, log_, options_.keep_finished),
      controllers_(Env(), options_),
      checks_(Env(), view_,
              {.steps = options_.check_invariants,
               .annotations = options_.check_annotations,
               .moves = options_.autoscaler.has_value()},
              CheckedControllers()),
      infrastructure_(Env(), checks_.moves(),
                      {.join = [this](const NodeSpec& node) { return AddNode(node); },
                       .leave = [this](const auto& node) { machines_.RemoveForGood(node); }}),
      machines_(Env(), view_, options_.times, options_.nodes_return,
                [this](const std::string& node) { infrastructure_.SeeLost(node); }),
      rival_(Env(), view_, controllers_.framework(), checks_),
      rounds_(clock_, violations_, [this](Machine* machine) { checks_.AfterStep(machine); }) {
  api_.SetPodWebhook(slices_.Hook());
  rival_.Schedule();
}

World::~World() { api_.SetPodWebhook({}); }

Environment World::Env() {
  return {catalogue_, api_, clock_, queue_, log_, faults_, kubelet_faults_, random_, violations_};
}

InvariantChecker::Controllers World::CheckedControllers() const {
  return {.scheduler = [this] { return controllers_.scheduler(); },
          .partitioner = [this] { return controllers_.partitioner(); }};
}

Status World::AddNode(const NodeSpec& spec) {
  if (spec.dra && !machines_.serve_devices() && controllers_.started()) {
    return Invalid("the first node with dra must be there before the controllers start");
  }
  if (spec.forged) checks_.Distrust(spec.name);
  return machines_.Add(spec);
}

Status World::AddPool(const PoolSpec& spec) { return infrastructure_.Add(spec); }

void World::Submit(const PodSpec& pod, Time when) {
  if (pod.priority != 0) {  // an error means that it exists
    queue_.At(when, [this, priority = pod.priority] {
      (void)view_.client().Create(*WorkloadResource("PriorityClass"), "",
                                  PriorityClassObject(priority));
    });
  }
  Submit(PodObject(pod), when);
}

void World::Submit(const Json& object, Time when) {
  queue_.At(when, [this, object] {
    const std::string name(FindString(object, "metadata", "name"));
    const auto created = view_.client().Create(*WorkloadResource(FindString(object, "kind")),
                                               FindString(object, "metadata", "namespace"), object);
    log_.Note("user", created.ok()
                          ? fmt::format("creates {}", name)
                          : fmt::format("cannot create {}: {}", name, created.status().ToString()));
  });
}

void World::StartControllers(kube::Transport* api) {
  controllers_.Start(api != nullptr ? *api : api_, machines_.serve_devices(),
                     {.on_binding = [this](const Json& binding) { checks_.OnBinding(binding); },
                      .intercept_autoscaler =
                          [this](const auto& request) { return InterceptAutoscaler(request); }});
}

std::optional<kube::ApiResponse> World::InterceptAutoscaler(const kube::ApiRequest& request) {
  if (request.method == "POST" && request.path.ends_with("/eviction")) checks_.OnEviction(request);
  return infrastructure_.Refuse(request);
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
  const auto settle = [this](Actor& actor) {
    rounds_.UntilNothingIsDone([&] { return rounds_.Step({&actor, nullptr}); });
  };
  for (Actor* keeper : keepers_.All()) settle(*keeper);
  settle(infrastructure_);
  // 2. Let each controller act once. In large clusters they skip calls (see world.h).
  constexpr size_t kNodesPerSkip = 100;
  constexpr size_t kMaxRest = 10;
  const size_t rest = std::clamp<size_t>(machines_.all().size() / kNodesPerSkip, 1, kMaxRest);
  Round(skips_++ % rest == 0 ? Controllers() : std::vector<Acting>());
}

std::optional<Time> World::NextTime() const {
  std::optional<Time> next = queue_.NextTime();
  const auto consider = [&](const Actor* actor) {
    const std::optional<Time> wake = actor == nullptr ? std::nullopt : actor->NextWake();
    if (wake && *wake > clock_.Now()) next = std::min(next.value_or(*wake), *wake);
  };
  for (const auto& [name, machine] : machines_.all()) {
    consider(&machine->kubelet());
    consider(machine->agent());
    consider(machine->driver());
  }
  for (const Process* process : controllers_.All()) consider(process);
  for (const Actor* keeper : keepers_.All()) consider(keeper);
  consider(&infrastructure_);
  return next;
}

void World::Settle() {
  rounds_.UntilNothingIsDone([this] {
    std::vector<Acting> actors;
    for (const auto& [name, machine] : machines_.all()) {
      for (Actor* actor : machine->Actors()) actors.push_back({actor, machine.get()});
    }
    for (const Acting& controller : Controllers()) actors.push_back(controller);
    for (Actor* keeper : keepers_.Busy()) actors.push_back({keeper, nullptr});
    if (infrastructure_.any()) actors.push_back({&infrastructure_, nullptr});
    return Round(std::move(actors));
  });
}

// Machines interact only through controllers, so each one can be settled separately.
void World::SettleMachines() {
  for (const auto& entry : machines_.all()) {
    Machine* const machine = entry.second.get();
    rounds_.UntilNothingIsDone([this, machine] {
      if (machine->driver() != nullptr && rounds_.Step({machine->driver(), machine})) return true;
      const bool kubelet = rounds_.Step({&machine->kubelet(), machine});
      return (machine->agent() != nullptr && rounds_.Step({machine->agent(), machine})) || kubelet;
    });
  }
}

std::vector<Acting> World::Controllers() const {
  std::vector<Acting> actors;
  for (Process* process : controllers_.All()) actors.push_back({process, nullptr});
  return actors;
}

// Lets every actor take one step; returns whether any did.
bool World::Round(std::vector<Acting> actors) {
  if (options_.shuffle) random_.Shuffle(actors);
  bool did = rounds_.StepEach(actors);
  view_.UpdateNodes();
  did |= keepers_.Watch();
  machines_.DropRemoved();
  return did;
}

Process* World::FindProcess(std::string_view name) {
  constexpr std::string_view kAgent = "agent ";
  if (!name.starts_with(kAgent)) return controllers_.Find(name);
  Machine* machine = FindMachine(name.substr(kAgent.size()));
  return machine == nullptr ? nullptr : machine->agent();
}

}  // namespace nos::sim
