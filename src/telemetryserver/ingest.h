// POST /api/v1/ingest: receives an envelope and acknowledges it when it is on disk.
#pragma once

#include <atomic>
#include <functional>
#include <string_view>
#include <utility>

#include "net/http.h"
#include "telemetryserver/ingest/tokens.h"
#include "telemetryserver/recorder.h"

namespace nos::telemetryserver {

inline constexpr size_t kMaxIngestBody = size_t{8} << 20;  // as received, compressed

class Ingest {
 public:
  // May this client deliver? `cluster`: of the envelope; "": it is not read yet. Errors:
  // kPermission, kExhausted (too many attempts), kUnavailable (cannot be checked now).
  using Admit = std::function<Status(const net::HttpRequest& request, std::string_view cluster)>;

  // `admit`: null: every client may send.
  Ingest(Recorder& recorder, Admit admit, Metrics& metrics)
      : recorder_(recorder), admit_(std::move(admit)), metrics_(metrics) {}

  net::HttpResponse Answer(const net::HttpRequest& request);

 private:
  Result<telemetry::Envelope> Read(const net::HttpRequest& request, std::string& body);
  // `code`: if the client may not deliver.
  net::HttpResponse Turned(int code, const char* result, const Status& status) const;
  net::HttpResponse Fail(int code, const char* result, const Status& status) const;

  Recorder& recorder_;
  const Admit admit_;
  Metrics& metrics_;
  std::atomic<size_t> held_{0};  // bytes of text being parsed
};

// {"error": ...}
net::HttpResponse ErrorAnswer(int code, std::string_view message);

}  // namespace nos::telemetryserver
