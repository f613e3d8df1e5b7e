#include "sim/world/pace.h"

#include <algorithm>
#include <chrono>

namespace nos::sim {
namespace {

Duration SteadyNow() { return std::chrono::steady_clock::now().time_since_epoch(); }

// Wakes up when any pod changes.
class Doorbell {
 public:
  explicit Doorbell(kube::Transport& api) : client_(api) {}

  void Wait(Duration at_most) {
    if (stream_ == nullptr || stream_->Ended()) Open();
    if (stream_ == nullptr) return;
    while (stream_->Next()) {
    }
    stream_->Wait(at_most);
  }

 private:
  void Open() {
    auto stream = client_.Watch(kube::kPods, "", {});
    stream_ = stream.ok() ? std::move(*stream) : nullptr;
  }

  kube::Client client_;
  std::unique_ptr<kube::WatchStream> stream_;
};

}  // namespace

void Pace(World& world, const PaceOptions& options, const std::stop_token& stop) {
  const auto wall = options.wall ? options.wall : SteadyNow;
  Doorbell doorbell(world.api());
  const Time world_start = world.Now();
  const Duration wall_start = wall();
  Duration next_tick = wall_start;
  while (!stop.stop_requested()) {
    const double elapsed = ToSeconds(wall() - wall_start);
    world.RunUntil(world_start + FromSeconds(elapsed * options.speed));
    if (wall() >= next_tick) {
      if (options.on_tick) options.on_tick();
      next_tick = wall() + options.tick;
    }
    Duration pause = next_tick - wall();
    if (const std::optional<Time> next = world.NextTime()) {
      pause = std::min(pause, FromSeconds(ToSeconds(*next - world.Now()) / options.speed));
    }
    doorbell.Wait(std::max(pause, Duration(std::chrono::milliseconds(1))));
  }
}

}  // namespace nos::sim
