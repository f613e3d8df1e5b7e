// Sends envelopes from a spool to the telemetry server, in order, each until the server
// acknowledges it.
//
//   Sender sender({.cluster = "prod", .source = "node/gpu-17"}, *spool, transport, metrics);
//   for (;;) { const auto pause = sender.Step(clock.Now()); wait for `pause`, or for an Append }
//
// Meaning of an answer:
//   200 with the sequence              acknowledged; the next one is sent at once
//   413; 400, 415, 422 with {"error"}  permanently rejected: set aside, the next one is sent
//   429, 503 with Retry-After          retry after that time
//   any other answer, or none          retry after exponential back-off with jitter; also for a
//                                      rejected token (401, 403), because its file may be rotated
// Owns no thread; a step blocks on one answer. Used by one thread.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/status.h"
#include "kube/transport.h"
#include "telemetryreporter/spool.h"

namespace nos::telemetry {

struct SenderOptions {
  std::string cluster, source;
  Duration first_pause = std::chrono::seconds(1);
  Duration longest_pause = std::chrono::minutes(1);
  uint64_t seed = 1;  // for jitter; must differ between nodes
};

// Path below the transport's server URL.
inline constexpr const char* kIngestPath = "/api/v1/ingest";

class Sender {
 public:
  // All arguments must outlive this object.
  Sender(SenderOptions options, Spool& spool, kube::Transport& transport, Metrics& metrics);

  // Sends the oldest envelope if it is due. Returns the time until the next step; nullopt: wait for
  // an append.
  std::optional<Duration> Step(Time now);

  // The current problem; OK after the last envelope was acknowledged.
  const Status& trouble() const { return trouble_; }

 private:
  Status Send(const SpooledEnvelope& envelope, Time now, kube::ApiResponse& response);
  Status ReadAnswer(const kube::ApiResponse& response, const SpooledEnvelope& envelope);
  Duration Pause(Duration at_least);
  void LogOutcome(const Status& outcome);

  const SenderOptions options_;
  Spool& spool_;
  kube::Transport& transport_;
  Metrics& metrics_;
  Random random_;
  int failures_ = 0;  // in a row
  Time not_before_{};
  Status trouble_;
};

}  // namespace nos::telemetry
