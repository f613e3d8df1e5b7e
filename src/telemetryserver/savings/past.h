// Pods and GPUs of a cluster during a time, read from stored history.
//
//   NOS_ASSIGN(const Past past, ReadPast(archive, id, catalogue, {from, to}));
//
// Internal to this library.
#pragma once

#include <string>
#include <vector>

#include "telemetryserver/savings/request.h"
#include "telemetryserver/store/archive.h"

namespace nos::telemetryserver {

inline constexpr telemetry::Millis kEndless = INT64_MAX;  // beyond the end of the time

struct PastPod {
  std::vector<DeviceRequest> requests;  // not empty
  int64_t priority = 0;
  // When it could first be scheduled: created, or its scheduling gates removed; `from` if it was
  // pending or ran then.
  telemetry::Millis asked = 0;
  // When it got its GPUs; before `asked` if it ran at the beginning, kEndless: not in this time.
  telemetry::Millis bound = kEndless;
  telemetry::Millis ended = kEndless;  // not before `bound`; kEndless: it still ran, or never did
  // Run times of similar pods that ended. Only for pods that never ran.
  std::vector<telemetry::Millis> similar_runs{};

  bool ran() const { return bound != kEndless; }
};

struct PastGpu {
  struct Presence {
    telemetry::Millis from = 0, to = kEndless;
  };
  std::string product;
  int64_t memory_mib = 0;
  std::vector<Presence> times;  // when it was reported, in order; not empty
};

struct Past {
  telemetry::Millis from = 0, to = 0;
  std::vector<PastPod> pods{};
  std::vector<PastGpu> gpus{};
  // Pods that ended before they ran, whose devices are unknown, or whose node reported no GPU.
  size_t left_out = 0;
};

struct PastSpan {
  telemetry::Millis from = 0, to = 0;
};

// Limits: more are an error.
inline constexpr size_t kMaxPastPods = 100'000, kMaxPastGpus = 50'000;

// Errors: see Archive; kInvalid: the time has more pods or GPUs than the limits.
Result<Past> ReadPast(Archive& archive, int64_t cluster, const gpu::Catalogue& catalogue,
                      const PastSpan& span);

}  // namespace nos::telemetryserver
