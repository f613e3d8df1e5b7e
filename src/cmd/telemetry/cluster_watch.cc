#include "cmd/telemetry/cluster_watch.h"

#include <fmt/format.h>

#include <algorithm>

namespace nos::cmd {
namespace {

constexpr Duration kPatience = std::chrono::seconds(5);
constexpr Duration kMaxWait = std::chrono::seconds(30);

reconcile::RunnerOptions WatchingAll(std::function<void()> wake) {
  reconcile::RunnerOptions options;
  options.watch_context = true;
  options.wake = std::move(wake);
  return options;
}

}  // namespace

ClusterWatch::ClusterWatch(kube::Transport& transport)
    : runner_(transport, WatchingAll([this] { bell_.Ring(); })), thread_([this] { Run(); }) {}

ClusterWatch::~ClusterWatch() {
  stop_ = true;
  bell_.Ring();
  thread_.join();
}

void ClusterWatch::Run() {
  const SystemClock clock;
  while (!stop_) {
    std::optional<Time> due;
    bool more = true;
    while (more && !stop_) {
      {
        const std::scoped_lock lock(mutex_);
        more = runner_.Step(clock);
        due = runner_.NextDue();
      }
      stepped_.notify_all();
    }
    const Duration until = due ? *due - clock.Now() : kMaxWait;
    bell_.Wait(std::clamp(until, Duration(0), kMaxWait));
  }
}

Result<ClusterObjects> ClusterWatch::Objects() {
  std::unique_lock lock(mutex_, kPatience);
  if (!lock.owns_lock()) {
    return Status(Code::kUnavailable, "the server is reading the cluster: retry in some seconds");
  }
  const auto settled = [&] { return runner_.synced() || !runner_.ReadError().ok(); };
  stepped_.wait_for(lock, kPatience, settled);
  if (!runner_.synced()) {
    const Status error = runner_.ReadError();
    return Status(Code::kUnavailable,
                  fmt::format("the cluster has not been read yet: {}",
                              error.ok() ? "retry in some seconds" : error.message()));
  }
  ClusterObjects objects;
  objects.nodes = *runner_.view().nodes.Snapshot();
  objects.pods = *runner_.view().pods.Snapshot();
  objects.context = runner_.view().context->Collect();
  return objects;
}

}  // namespace nos::cmd
