// Takes envelopes from a spool to the telemetry server, in order, each until the server says that
// it has it safely.
//
//   Sender sender({.cluster = "prod", .source = "node/gpu-17"}, *spool, transport, metrics);
//   for (;;) { const auto pause = sender.Step(clock.Now()); wait for `pause`, or for an Append }
//
// What the answer means:
//   200 with the sequence            acknowledged; the next one at once
//   413; 400, 415, 422 with {"error"}  this envelope is never taken: set aside, and the next one
//   429, 503 with Retry-After        again after that time
//   all else, or none                again after a pause that grows, with jitter; a refused token
//                                    (401, 403) too, for its file may be rotated
// Owns no thread; a step waits for one answer. One owner.
#pragma once

#include <optional>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "base/random.h"
#include "base/status.h"
#include "kube/transport.h"
#include "telemetry/spool.h"

namespace nos::telemetry {

struct SenderOptions {
  std::string cluster, source;
  Duration first_pause = std::chrono::seconds(1);
  Duration longest_pause = std::chrono::minutes(1);
  uint64_t seed = 1;  // of the jitter; differs between nodes
};

// Below the transport's server.
inline constexpr const char* kIngestPath = "/api/v1/ingest";

class Sender {
 public:
  // All must outlive this.
  Sender(SenderOptions options, Spool& spool, kube::Transport& transport, Metrics& metrics);

  // Sends the oldest envelope if it is time to. When to step again; nothing: when something has
  // been appended.
  std::optional<Duration> Step(Time now);

  // What is wrong now; OK when the last envelope was taken.
  const Status& trouble() const { return trouble_; }

 private:
  Status Send(const SpooledEnvelope& envelope, Time now, kube::ApiResponse& response);
  Status ReadAnswer(const kube::ApiResponse& response, const SpooledEnvelope& envelope);
  Duration Pause(Duration at_least);
  void Say(const Status& trouble);

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
