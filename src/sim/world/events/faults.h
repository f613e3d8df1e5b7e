// Fault injection: kinds, rates and end time. Drawn from a seed, so that a run is reproducible.
#pragma once

#include <algorithm>
#include <optional>

#include "base/clock.h"
#include "base/random.h"
#include "sim/world/events/log.h"

namespace nos::sim {

// Probabilities (0 to 1) per occasion: a request, a watch event, a device call.
struct FaultRates {
  double conflict = 0;          // a write is refused with 409
  double request_lost = 0;      // no answer, and the request has no effect
  double response_lost = 0;     // no answer, but the request takes effect
  double event_delayed = 0;     // together with all later events of its stream
  double event_repeated = 0;    // delivered twice
  double stream_dropped = 0;    // the stream ends instead of delivering the event
  double stream_expired = 0;    // the stream reports 410 Gone and ends: the client must list again
  double crash = 0;             // the process dies at this call
  double create_failed = 0;     // creation of a GPU instance fails
  double destroy_in_use = 0;    // "in use by another client"
  double offer_failed = 0;      // the kubelet does not accept the devices that the agent offers
  double offer_unanswered = 0;  // the kubelet accepts the offer, but the answer is lost
  double kubelet_forgets = 0;   // the kubelet reports for a second that no pod holds a device, as
                                // right after its start
  double reboots_per_hour = 0;  // per node
  double gpu_losses_per_hour = 0;     // per node: one of its GPUs stops answering for a while
  double daemon_losses_per_hour = 0;  // per node with shares: a GPU has no MPS daemon for a while
  // Another scheduler, which does not know of reservations, binds one of the pending pods.
  double rival_binds_per_hour = 0;
  double node_gone_at_binding = 0;  // the node is deleted at this call, and joins again later
  Duration max_delay = std::chrono::seconds(20);
  // Per node requested from a pool (infrastructure.h).
  double node_late = 0;                 // takes three times as long to join
  double node_never = 0;                // does not join before the faults end
  double node_wrong = 0;                // joins with one GPU less
  double node_other = 0;                // is removed instead of the node marked for deletion
  double scaling_refused_per_hour = 0;  // per pool: its scaled object answers 503 for a while
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
  // The next occurrence of a fault with this rate; nullopt if it is after the end of the faults.
  std::optional<Time> Next(double per_hour, Random& random) const {
    if (per_hour <= 0) return std::nullopt;
    const Time when = clock_.Now() + FromSeconds(random.Exponential(3600 / per_hour));
    return when < until_ ? std::optional(when) : std::nullopt;
  }
  std::optional<Time> last() const { return last_; }  // time of the last injected fault
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

// The state of a process. A crash in the middle of its code is simulated as follows: once it is
// dead, its calls have no effect, and the object is destroyed when its code returns.
struct Life {
  bool alive = true;
};

}  // namespace nos::sim
