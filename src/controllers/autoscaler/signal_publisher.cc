#include "controllers/autoscaler/signal_publisher.h"

#include <algorithm>

#include "base/log.h"
#include "controllers/events.h"

namespace nos::controllers {
namespace {

// The pool's status shows the error after this time.
constexpr Duration kObserveAgain = std::chrono::seconds(1);

}  // namespace

void SignalPublisher::Publish(const ScalingCycle& cycle, const ObservedCluster& cluster) {
  Status error = signal_.Clean(cycle.view, cycle.client);
  for (const ObservedPool& pool : cluster.pools) {
    if (!pool.HasSignal()) continue;
    const int missing = std::max(0, pool.state.status.wanted - pool.nodes.Present());
    const Status shown = signal_.Show(*pool.pool, missing, cycle.view, cycle.client, cycle.now);
    NoteResult(pool, missing, shown, cycle.now);
    if (!shown.ok()) error = shown.Within("NodePool " + pool.pool->meta.name);
  }
  if (error.ok()) return;
  Log(LogLevel::kWarn, "failed to publish demand to the other autoscaler, retrying",
      {{"error", error.ToString()}});
}

// Errors that a retry resolves do not count as failures of the pool.
void SignalPublisher::NoteResult(const ObservedPool& pool, int missing, const Status& shown,
                                 Time now) {
  PoolMemory& memory = *pool.memory;
  if (shown.ok()) {
    if (missing > 0) memory.write_error = Status::Ok();
    return;
  }
  const Code code = shown.code();
  if (code == Code::kDeadline || code == Code::kUnavailable || code == Code::kConflict) return;
  const bool failed = !memory.write_error.ok();
  memory.write_error = shown;
  memory.write_again = now + config_.backoff;
  if (failed) return;
  schedule_.DecideBy(now + kObserveAgain);  // the status is written then
  events_.Add(events::ScaleNotPublished(*pool.pool, shown));
}

}  // namespace nos::controllers
