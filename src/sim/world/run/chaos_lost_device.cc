#include "sim/world/run/chaos_lost_device.h"

#include <fmt/format.h>

#include "agent/conditions.h"

namespace nos::sim {
namespace {

constexpr double kPause = 40;                           // seconds, mean
constexpr Duration kMaxHang = std::chrono::minutes(4);  // of hangs that end
constexpr double kForGood = 0.3, kAtChange = 0.5;       // chances

}  // namespace

void LostDevices::Start(Time last, Time until) {
  Lose(last, until);
  world_.At(last, [this] { DisarmAll(); });
  world_.At(until, [this] { ReleaseAll(); });
}

std::optional<std::pair<std::string, int>> LostDevices::DrawGpu() {
  std::vector<std::pair<std::string, int>> gpus;
  for (const auto& [name, machine] : world_.machines()) {
    if (machine->agent() == nullptr || machine->gpus() == nullptr) continue;
    for (size_t gpu = 0; gpu < machine->gpu_count(); ++gpu) {
      gpus.emplace_back(name, static_cast<int>(gpu));
    }
  }
  if (gpus.empty()) return std::nullopt;
  return gpus[random_.Below(gpus.size())];
}

void LostDevices::Lose(Time last, Time until) {
  const Time when = world_.Now() + FromSeconds(random_.Exponential(kPause));
  if (when >= last) return;
  world_.At(when, [this, last, until] {
    const bool good = random_.Chance(kForGood), change = random_.Chance(kAtChange);
    const Duration lasts = FromSeconds(random_.Uniform() * ToSeconds(kMaxHang));
    if (const auto drawn = DrawGpu()) {
      const auto& [node, gpu] = *drawn;
      Machine& machine = *world_.FindMachine(node);
      change ? machine.outages().HangAtNextChange(gpu) : machine.outages().Hang(gpu);
      size_t all = 0;
      for (const auto& [name, one] : world_.machines()) all += one->gpu_count();
      if (good && for_good_ < all / 2) {
        ++for_good_;
      } else {
        world_.At(std::min(world_.Now() + lasts, until),
                  [this, node = node, gpu = gpu] { Release(node, gpu); });
      }
    }
    Lose(last, until);
  });
}

void LostDevices::Release(const std::string& node, int gpu) {
  Machine* machine = world_.FindMachine(node);
  if (machine != nullptr && machine->gpus() != nullptr) machine->outages().Release(gpu);
}

// A hang that has not begun would cost its node up to two minutes while bounds are checked.
void LostDevices::DisarmAll() {
  for (const auto& [name, machine] : world_.machines()) machine->device_faults().HangNoMore();
}

void LostDevices::ReleaseAll() {
  for (const auto& [name, machine] : world_.machines()) {
    for (size_t gpu = 0; gpu < machine->gpu_count(); ++gpu) Release(name, static_cast<int>(gpu));
  }
}

std::vector<std::string> LostDevices::Leftovers() const {
  std::vector<std::string> problems;
  for (const auto& node : world_.Nodes()) {
    const auto* condition = FindCondition(node->conditions, std::string(agent::kGpusHealthy));
    if (condition == nullptr || condition->status != "False") continue;
    problems.push_back(fmt::format("{}: {} is False though all GPUs answer: {} {}", node->meta.name,
                                   condition->type, condition->reason, condition->message));
  }
  return problems;
}

int LostDevices::hangs() const {
  int hangs = 0;
  for (const auto& [name, machine] : world_.machines()) hangs += machine->outages().hangs();
  return hangs;
}

}  // namespace nos::sim
