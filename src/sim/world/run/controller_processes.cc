#include "sim/world/run/controller_processes.h"

#include "controllers/planned_gangs.h"
#include "scheduling/framework.h"

namespace nos::sim {
namespace {

std::unique_ptr<const scheduling::Framework> DefaultFramework(scheduling::PartitionedBy by) {
  return std::make_unique<const scheduling::Framework>(scheduling::Framework::Default(by));
}

}  // namespace

struct ControllerProcesses::Connected {
  Connected(const std::string& name, Process::Make make, kube::Transport& api,
            const Environment& env, const reconcile::RunnerOptions& options = {})
      : transport(name, api, env.faults, life, env.queue, env.clock, env.log),
        process(name, std::move(make), transport, options, life, env.clock, env.log) {}

  Life life;
  FaultyTransport transport;
  Process process;
};

ControllerProcesses::ControllerProcesses(const Environment& env, const WorldOptions& options)
    : env_(env),
      options_(options),
      framework_(DefaultFramework(scheduling::PartitionedBy::kPartitioner)),
      scheduler_framework_(DefaultFramework(options.partitioned_by)),
      partitioning_framework_(DefaultFramework(scheduling::PartitionedBy::kScheduler)) {}

ControllerProcesses::~ControllerProcesses() = default;

void ControllerProcesses::Start(kube::Transport& api, bool watch_devices, const Hooks& hooks) {
  reconcile::RunnerOptions planner = controllers::WatchingGangs();
  planner.watch_devices = watch_devices;
  partitioner_ = std::make_unique<Connected>(
      "partitioner",
      [this] {
        return std::make_unique<controllers::Partitioner>(options_.partitioner, *framework_,
                                                          env_.catalogue);
      },
      api, env_, planner);
  scheduler_ = std::make_unique<Connected>(
      "scheduler", [this] { return MakeScheduler(); }, api, env_,
      reconcile::RunnerOptions{.watch_context = true, .watch_devices = watch_devices});
  scheduler_->transport.OnBinding(hooks.on_binding);
  if (options_.autoscaler) StartAutoscaler(api, watch_devices, hooks);
}

std::unique_ptr<reconcile::Reconciler> ControllerProcesses::MakeScheduler() const {
  std::vector<controllers::SchedulerProfile> profiles;
  for (const char* name : {"", "default-scheduler", "nos-scheduler"}) {
    profiles.push_back({name, scheduler_framework_.get()});
    profiles.back().with_partitioning = partitioning_framework_.get();
  }
  return std::make_unique<controllers::Scheduler>(options_.scheduler, std::move(profiles),
                                                  env_.catalogue);
}

void ControllerProcesses::StartAutoscaler(kube::Transport& api, bool watch_devices,
                                          const Hooks& hooks) {
  controllers::AutoscalerConfig config =
      options_.autoscaler.value_or(controllers::AutoscalerConfig{});
  constexpr const char* kImage = "registry.k8s.io/pause:3.9";
  for (std::string* image : {&config.relocations.image, &config.signal.image}) {
    if (image->empty()) *image = kImage;
  }
  kube::Client client(env_.api);
  for (const std::string* ns : {&config.relocations.ns, &config.signal.ns}) {
    const Json object = {
        {"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", *ns}}}};
    (void)client.Create(kube::kNamespaces, "", object);  // an error means that it exists
  }
  reconcile::RunnerOptions watches = controllers::WatchingForAutoscaler();
  watches.watch_devices = watch_devices;
  autoscaler_ = std::make_unique<Connected>(
      "autoscaler",
      [this, config] {
        return std::make_unique<controllers::Autoscaler>(config, *framework_, env_.catalogue);
      },
      api, env_, watches);
  autoscaler_->transport.SetIntercept(hooks.intercept_autoscaler);
}

std::vector<Process*> ControllerProcesses::All() const {
  std::vector<Process*> all;
  for (const auto* connected : {&partitioner_, &scheduler_, &autoscaler_}) {
    if (*connected != nullptr) all.push_back(&(*connected)->process);
  }
  return all;
}

Process* ControllerProcesses::Find(std::string_view name) const {
  for (Process* process : All()) {
    if (process->name() == name) return process;
  }
  return nullptr;
}

const controllers::Partitioner* ControllerProcesses::partitioner() const {
  const Process* process = Find("partitioner");
  return process == nullptr ? nullptr
                            : static_cast<const controllers::Partitioner*>(process->reconciler());
}

const controllers::Scheduler* ControllerProcesses::scheduler() const {
  const Process* process = Find("scheduler");
  return process == nullptr ? nullptr
                            : static_cast<const controllers::Scheduler*>(process->reconciler());
}

const controllers::Autoscaler* ControllerProcesses::autoscaler() const {
  const Process* process = Find("autoscaler");
  return process == nullptr ? nullptr
                            : static_cast<const controllers::Autoscaler*>(process->reconciler());
}

}  // namespace nos::sim
