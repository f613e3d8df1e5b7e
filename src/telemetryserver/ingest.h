// POST /api/v1/ingest: receives an envelope and acknowledges it when it is on disk.
#pragma once

#include <atomic>

#include "net/http.h"
#include "telemetryserver/ingest/tokens.h"
#include "telemetryserver/recorder.h"

namespace nos::telemetryserver {

inline constexpr size_t kMaxIngestBody = size_t{8} << 20;  // as received, compressed

class Ingest {
 public:
  // `tokens`: null: every client may send.
  Ingest(Recorder& recorder, const Tokens* tokens, Metrics& metrics)
      : recorder_(recorder), tokens_(tokens), metrics_(metrics) {}

  net::HttpResponse Answer(const net::HttpRequest& request);

 private:
  Result<telemetry::Envelope> Read(const net::HttpRequest& request, std::string& body);
  net::HttpResponse Fail(int code, const char* result, const Status& status) const;

  Recorder& recorder_;
  const Tokens* tokens_;
  Metrics& metrics_;
  std::atomic<size_t> held_{0};  // bytes of text being parsed
};

// {"error": ...}
net::HttpResponse ErrorAnswer(int code, std::string_view message);

}  // namespace nos::telemetryserver
