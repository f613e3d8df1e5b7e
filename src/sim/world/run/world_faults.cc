// Spontaneous faults of a virtual cluster: node reboots, temporary loss of GPUs and MPS daemons,
// another scheduler that binds pods.
#include <fmt/format.h>

#include <algorithm>

#include "scheduling/framework.h"
#include "sim/world.h"

namespace nos::sim {

void World::ScheduleReboots(const std::string& node) {
  const auto when = faults_.Next(faults_.rates().reboots_per_hour, random_);
  if (!when) return;
  queue_.At(*when, [this, node] {
    if (Machine* machine = FindMachine(node)) machine->Reboot();
    ScheduleReboots(node);
  });
}

void World::ScheduleLosses(const std::string& node) {
  ScheduleOutages(node, {faults_.rates().gpu_losses_per_hour, std::chrono::seconds(90),
                         &Machine::LoseGpu, &Machine::RestoreGpu});
}

void World::ScheduleDaemonLosses(const std::string& node) {
  ScheduleOutages(node, {faults_.rates().daemon_losses_per_hour, std::chrono::seconds(60),
                         &Machine::LoseDaemon, &Machine::RestoreDaemon});
}

void World::ScheduleOutages(const std::string& node, const Outage& outage) {
  const auto when = faults_.Next(outage.per_hour, random_);
  if (!when) return;
  queue_.At(*when, [this, node, outage] {
    Machine* machine = FindMachine(node);
    if (machine == nullptr || machine->gpu_count() == 0) return;
    const int gpu = static_cast<int>(random_.Below(machine->gpu_count()));
    (machine->*outage.begin)(gpu);
    const Time back = clock_.Now() + FromSeconds(random_.Uniform() * ToSeconds(outage.longest));
    queue_.At(std::min(back, faults_.until()), [this, node, gpu, end = outage.end] {
      if (Machine* there = FindMachine(node)) (there->*end)(gpu);
    });
    ScheduleOutages(node, outage);
  });
}

void World::ScheduleRivals() {
  const auto when = faults_.Next(faults_.rates().rival_binds_per_hour, random_);
  if (!when) return;
  queue_.At(*when, [this] {
    BindAsRival();
    ScheduleRivals();
  });
}

// The rival knows no claims, schedules by the objects in the API server and repartitions no GPU.
void World::BindAsRival() {
  const auto pods = Pods();
  std::vector<std::shared_ptr<const cluster::Pod>> waiting;
  std::ranges::copy_if(pods, std::back_inserter(waiting), [](const auto& pod) {
    return pod->node_name.empty() && !pod->Finished() && !pod->meta.deleted && pod->claims.empty();
  });
  if (waiting.empty()) return;
  const auto& pod = waiting[random_.Below(waiting.size())];
  const auto snapshot = cluster::ClusterSnapshot::Build(Nodes(), pods, catalogue_);
  const auto decision = framework_->Schedule(*pod, snapshot, {});
  if (decision.node == nullptr || !faults_.Strike(1)) return;
  const std::string& node = decision.node->node->meta.name;
  rival_at_[node] = clock_.Now();
  quotas_.SeeRival(clock_.Now());
  const Status bound = client_.Bind(pod->meta.ns, pod->meta.name, node, pod->meta.uid);
  log_.Note("rival", fmt::format("binds {} to {}: {}", pod->Key(), node, bound.ToString()));
}

}  // namespace nos::sim
