#include "controllers/autoscaler/pools/desired_counts.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/back_off.h"
#include "base/text.h"
#include "controllers/events.h"

namespace nos::controllers {
namespace {

// After a write with no effect or no answer.
constexpr Duration kReadAgain = std::chrono::seconds(1);
constexpr int kMaxUnanswered = 5;  // then the write counts as refused

// Longest pause between reads of a webhook that does not answer: each attempt blocks the whole
// loop.
constexpr Duration kSilentPause = std::chrono::minutes(5);

// Identifies the scaled object or webhook: a count read from another one is worthless.
std::string TargetOf(const cluster::NodePool& pool) {
  const cluster::ScaleTarget& target = pool.target;
  return fmt::format("{} {} {} {} {} {}", pool.meta.uid, target.api_version, target.kind, target.ns,
                     target.name, pool.webhook);
}

}  // namespace

void DesiredCounts::Read(const ScalingCycle& cycle, ObservedPool& pool) {
  PoolMemory& memory = *pool.memory;
  if (std::string target = TargetOf(*pool.pool); memory.target != target) {
    memory = PoolMemory();
    memory.target = std::move(target);
  }
  if (cycle.now >= memory.write_again) memory.write_error = Status::Ok();
  if (pool.HasSignal()) {
    memory.pool_sync_interval = cycle.now + config_.pool_sync_interval;
    return;
  }
  if (cycle.now < memory.pool_sync_interval) return;
  if (memory.silent > 0 && waited_) {
    memory.pool_sync_interval = cycle.now + kReadAgain;
    return;
  }
  const bool failed = !memory.read_error.ok();
  Result<PoolScale> scale = scaling_.Read(*pool.pool, cycle.client);
  const Time now = cycle.clock.Now();
  memory.pool_sync_interval = now + config_.pool_sync_interval;
  memory.fresh = scale.ok();
  memory.read_error = scale.status();
  if (!pool.pool->webhook.empty()) NoteAnswer(memory, now);
  if (scale.ok()) {
    memory.scale = *std::move(scale);
  } else if (!failed) {
    events_.Add(events::ScaleNotRead(*pool.pool, memory.read_error));
  }
}

// Lengthens the pause before the next read of a webhook that does not answer.
void DesiredCounts::NoteAnswer(PoolMemory& memory, Time now) {
  const Code code = memory.read_error.code();
  if (code != Code::kDeadline && code != Code::kUnavailable) {
    memory.silent = 0;
    return;
  }
  waited_ = true;
  if (++memory.silent == 1) memory.silent_since = now;
  const BackOff pauses{config_.pool_sync_interval,
                       std::max(config_.pool_sync_interval, kSilentPause)};
  memory.pool_sync_interval = now + pauses.After(memory.silent);
  memory.read_error =
      Status(code, fmt::format("{}; it has not answered since {}, and is asked less and less often "
                               "(after {} at most)",
                               Shortened(memory.read_error.message(), 300),
                               FormatTime(memory.silent_since), FormatAge(pauses.limit)));
}

Status DesiredCounts::Write(const ScalingCycle& cycle, ObservedPool& pool, int32_t wanted,
                            const std::vector<std::string>& remove) {
  PoolMemory& memory = *pool.memory;
  if (!memory.scale) return {Code::kUnavailable, "it is not known how many nodes are wanted"};
  const Status written = scaling_.Write(*pool.pool, *memory.scale, wanted, remove, cycle.client);
  memory.fresh = false;
  memory.pool_sync_interval = written.ok() ? Time{} : cycle.now + kReadAgain;
  const Code code = written.code();
  const bool perhaps = code == Code::kDeadline || code == Code::kUnavailable;
  if (written.ok() || perhaps) memory.scale->wanted = wanted;
  if (written.ok()) {
    memory.unanswered = 0;
    return written;
  }
  const bool open = perhaps || code == Code::kConflict;
  if (open && ++memory.unanswered < kMaxUnanswered) return written;
  memory.write_error = written;
  memory.write_again = cycle.now + config_.backoff;
  if (!open) memory.pool_sync_interval = cycle.now + config_.pool_sync_interval;
  events_.Add(events::ScaleNotSet(*pool.pool, wanted, written));
  return written;
}

}  // namespace nos::controllers
