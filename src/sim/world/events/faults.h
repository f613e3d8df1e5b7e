// What goes wrong, how often and until when; drawn from a seed, so that a run repeats exactly.
#pragma once

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/random.h"
#include "sim/world/events/event_log.h"

namespace nos::sim {

// Chances per occasion (0 to 1): a request, a watch event, a device call.
struct FaultRates {
  double conflict = 0;          // a write is refused: 409
  double request_lost = 0;      // no answer, and nothing happened
  double response_lost = 0;     // no answer, though it happened
  double event_delayed = 0;     // and with it all later ones of its stream
  double event_repeated = 0;    // delivered twice
  double stream_dropped = 0;    // the stream ends instead
  double stream_expired = 0;    // the stream says 410 Gone and ends: list anew
  double crash = 0;             // the process dies at this very call
  double create_failed = 0;     // of a GPU instance
  double destroy_in_use = 0;    // "in use by another client"
  double offer_failed = 0;      // the kubelet does not take the offer
  double offer_unanswered = 0;  // it takes the offer, but its answer is lost
  double kubelet_forgets = 0;   // says for a second that no pod holds anything, as if just started
  double reboots_per_hour = 0;  // of each node
  double gpu_losses_per_hour = 0;     // of each node: one of its GPUs answers no more for a while
  double daemon_losses_per_hour = 0;  // of each node with shares: no MPS daemon serves for a while
  // Another scheduler, that knows of no promises, binds one of the waiting pods.
  double rival_binds_per_hour = 0;
  double node_gone_at_binding = 0;  // the node is deleted at this very call, and joins again later
  Duration max_delay = std::chrono::seconds(20);
  // Of each node that a pool is asked for (infrastructure.h).
  double node_late = 0;                 // it comes after three times as long
  double node_never = 0;                // not before faults end
  double node_wrong = 0;                // with a GPU less
  double node_other = 0;                // taken away in place of the one that was named
  double scaling_refused_per_hour = 0;  // of each pool: its scaled object answers 503 for a while
};

class Faults {
 public:
  Faults(FaultRates rates, Time until, Random random, const Clock& clock)
      : rates_(rates), until_(until), random_(random), clock_(clock) {}

  const FaultRates& rates() const { return rates_; }
  Time until() const { return until_; }
  bool Strike(double chance) {
    if (chance <= 0 || clock_.Now() >= until_ || !random_.Chance(chance)) return false;
    last_ = clock_.Now();
    return true;
  }
  // When what happens so often an hour happens next; none: not before faults end.
  std::optional<Time> Next(double per_hour, Random& random) const {
    if (per_hour <= 0) return std::nullopt;
    const Time when = clock_.Now() + FromSeconds(random.Exponential(3600 / per_hour));
    return when < until_ ? std::optional(when) : std::nullopt;
  }
  std::optional<Time> last() const { return last_; }  // when one struck
  // Uniform in [0, max_delay).
  Duration Delay() {
    return Duration(static_cast<Duration::rep>(random_.Below(
        static_cast<uint64_t>(std::max<Duration::rep>(1, rates_.max_delay.count())))));
  }

 private:
  FaultRates rates_;
  Time until_;
  Random random_;
  const Clock& clock_;
  std::optional<Time> last_;
};

// Whether a process lives. A crash in the midst of its code is played like this: once dead, none of
// its calls reaches anything any more, and the object is destroyed when its code returns.
struct Life {
  bool alive = true;
};

}  // namespace nos::sim
