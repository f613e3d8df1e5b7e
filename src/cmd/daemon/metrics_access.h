// Decides who may read /metrics: whose token the API server knows (TokenReview) and lets get the
// path /metrics (SubjectAccessReview), as Kubernetes' own components and controller-runtime do.
//
//   MetricsAccess access(transport, clock);
//   if (auto refusal = access.Refuse(request)) return std::move(*refusal);
//
// Answers count for a minute, refused tokens for some seconds (reviews/token_holders.h).
// Thread-safe.
#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "cmd/reviews/token_holders.h"
#include "kube/http_transport.h"
#include "net/http.h"
#include "telemetryserver/limits.h"

namespace nos::cmd {

class MetricsAccess {
 public:
  // With a connection of its own: requests by strangers take nothing from the daemon's.
  static std::unique_ptr<MetricsAccess> Over(const kube::ConnectionConfig& connection);
  // Both must outlive it.
  MetricsAccess(kube::Transport& transport, const Clock& clock)
      : transport_(transport),
        limits_(telemetryserver::LimitOptions{}),
        holders_(clock, &limits_, [this](const std::string& token) { return Ask(token); }) {}

  // Absent: the request may be served. Else 401 (no token, or an unknown one), 403 (no right), 429
  // (too many failures from the address) or 503 (the API server does not answer).
  std::optional<net::HttpResponse> Refuse(const net::HttpRequest& request);

 private:
  // The subject is null if the holder may not read metrics.
  Result<TokenHolders::Holder> Ask(const std::string& token);

  std::unique_ptr<kube::Transport> own_;
  kube::Transport& transport_;
  telemetryserver::Limits limits_;
  TokenHolders holders_;
};

}  // namespace nos::cmd
