// POST /api/v1/ingest: receives an envelope and acknowledges it when it is on disk.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "net/http.h"
#include "net/rate_limit.h"
#include "telemetryserver/concurrency_limiter.h"
#include "telemetryserver/ingest/tokens.h"
#include "telemetryserver/recorder.h"

namespace nos::telemetryserver {

inline constexpr size_t kMaxIngestBody = size_t{8} << 20;  // as received, compressed
// Requests under way. Each holds a thread of the server until its envelope is on disk.
inline constexpr size_t kMaxIngests = 48;
// Limits of the text that one node sends, so that a stolen node fills neither disk nor memory. A
// node of eight GPUs with seven instances each sends some 3 KiB a second; the burst is a backlog.
inline constexpr double kNodeBytesPerSecond = 64 << 10, kNodeBurstBytes = 64 << 20;

class Ingest {
 public:
  // May this client deliver the envelope? Null: it is not read yet. Errors: kPermission, kExhausted
  // (too many attempts), kUnavailable (cannot be checked now).
  using Admit =
      std::function<Status(const net::HttpRequest& request, const telemetry::Envelope* envelope)>;

  // `admit`: null: every client may send.
  Ingest(Recorder& recorder, Admit admit, Metrics& metrics)
      : recorder_(recorder), admit_(std::move(admit)), metrics_(metrics) {}

  net::HttpResponse Answer(const net::HttpRequest& request);

 private:
  struct Delivery {
    telemetry::Envelope envelope;
    size_t bytes = 0;  // of its text
    std::string body;  // its text as gzip, for the journal
  };
  Result<Delivery> Read(const net::HttpRequest& request);
  // An answer: the envelope's node has sent too much.
  std::optional<net::HttpResponse> Hold(const telemetry::Envelope& envelope, size_t bytes);
  // `code`: if the client may not deliver.
  net::HttpResponse Turned(int code, const char* result, const Status& status) const;
  net::HttpResponse Fail(int code, const char* result, const Status& status) const;

  Recorder& recorder_;
  const Admit admit_;
  Metrics& metrics_;
  ConcurrencyLimiter under_way_{kMaxIngests, 0};
  // A parsed tree is several times its text.
  ConcurrencyLimiter reading_{4, kMaxIngests};
  net::RateLimit of_nodes_{{.per_second = kNodeBytesPerSecond, .burst = kNodeBurstBytes}};
};

// {"error": ...}
net::HttpResponse ErrorAnswer(int code, std::string_view message);

}  // namespace nos::telemetryserver
