#include "sim/world/run/machines.h"

#include <fmt/format.h>

#include <algorithm>

namespace nos::sim {

Machines::Machines(const Environment& env, ClusterView& view, MachineTimes times,
                   std::optional<Duration> nodes_return,
                   std::function<void(const std::string&)> on_lost)
    : env_(env),
      client_(env.api),
      times_(times),
      nodes_return_(nodes_return),
      on_lost_(std::move(on_lost)) {
  view.nodes().AddHandler([this](const std::string& name, const auto&, const auto& after) {
    if (after == nullptr) OnDeletion(name);
  });
}

Status Machines::Add(const NodeSpec& spec) {
  if (machines_.contains(spec.name)) {
    return {Code::kAlreadyExists, fmt::format("node '{}' is there already", spec.name)};
  }
  serve_devices_ = serve_devices_ || spec.dra;
  NOS_ASSIGN(std::unique_ptr<Machine> machine, Machine::Make(spec, env_, times_));
  machines_.emplace(spec.name, std::move(machine));
  specs_.emplace(spec.name, spec);
  ScheduleReboots(spec.name);
  ScheduleOutages(spec.name, {env_.faults.rates().gpu_losses_per_hour, std::chrono::seconds(90),
                              &Machine::LoseGpu, &Machine::RestoreGpu});
  if (spec.mps || spec.hybrid) {
    ScheduleOutages(spec.name,
                    {env_.faults.rates().daemon_losses_per_hour, std::chrono::seconds(60),
                     &Machine::LoseDaemon, &Machine::RestoreDaemon});
  }
  return Status::Ok();
}

Machine* Machines::Find(std::string_view name) const {
  const auto found = machines_.find(name);
  return found == machines_.end() ? nullptr : found->second.get();
}

// The machine itself disappears in DropRemoved.
void Machines::OnDeletion(const std::string& name) {
  if (Machine* machine = Find(name)) machine->kubelet().Remove();
  if (serve_devices_) RemoveSlices(name);
  if (!nodes_return_) return on_lost_(name);
  env_.queue.At(env_.clock.Now() + *nodes_return_, [this, name] {
    const auto spec = specs_.find(name);
    if (machines_.contains(name) || spec == specs_.end()) return;
    if (const Status joined = Add(spec->second); !joined.ok()) {
      env_.violations.Add(joined.ToString());
    }
  });
}

// Removes the slices that the deleted node owned, like Kubernetes' garbage collector.
void Machines::RemoveSlices(const std::string& node) {
  const kube::Resource slices{"resource.k8s.io", "v1", "resourceslices", "ResourceSlice", false};
  kube::ListOptions options;
  options.field_selector = "spec.nodeName=" + node;
  const auto list = client_.List(slices, "", options);
  for (size_t i = 0; list.ok() && i < list->items.size(); ++i) {
    (void)client_.Delete(slices, "", FindString(list->items[i], "metadata", "name"));
  }
}

void Machines::RemoveForGood(const std::string& node) {
  specs_.erase(node);
  if (client_.Delete(kube::kNodes, "", node).ok()) return;
  if (Machine* machine = Find(node)) machine->kubelet().Remove();  // not registered yet
}

void Machines::DropRemoved() {
  std::erase_if(machines_, [](const auto& entry) { return entry.second->kubelet().removed(); });
}

void Machines::ScheduleReboots(const std::string& node) {
  const auto when = env_.faults.Next(env_.faults.rates().reboots_per_hour, env_.random);
  if (!when) return;
  env_.queue.At(*when, [this, node] {
    if (Machine* machine = Find(node)) machine->Reboot();
    ScheduleReboots(node);
  });
}

void Machines::ScheduleOutages(const std::string& node, const Outage& outage) {
  const auto when = env_.faults.Next(outage.per_hour, env_.random);
  if (!when) return;
  env_.queue.At(*when, [this, node, outage] {
    Machine* machine = Find(node);
    if (machine == nullptr || machine->gpu_count() == 0) return;
    const int gpu = static_cast<int>(env_.random.Below(machine->gpu_count()));
    (machine->*outage.begin)(gpu);
    const Time back =
        env_.clock.Now() + FromSeconds(env_.random.Uniform() * ToSeconds(outage.longest));
    env_.queue.At(std::min(back, env_.faults.until()), [this, node, gpu, end = outage.end] {
      if (Machine* there = Find(node)) (there->*end)(gpu);
    });
    ScheduleOutages(node, outage);
  });
}

}  // namespace nos::sim
