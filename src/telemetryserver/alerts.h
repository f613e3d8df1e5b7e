// Firing alerts, as an Alertmanager delivers them: POST /api/v1/alerts.
//
//   AlertReceiver alerts(recorder, admit);
//   api.Answer(request);                       // calls alerts.Answer(request, target)
//   for (const Alert& alert : alerts.table().Firing("prod", now)) ...
//
// The payload is that of Alertmanager's webhook_config, version 4 (prometheus.io, "Alertmanager
// configuration"). All of it is untrusted: sizes are limited, and an alert that cannot be read
// affects no other. Alerts are kept in memory alone: Alertmanager repeats those that fire.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"
#include "net/url.h"
#include "telemetryserver/concurrency_limiter.h"
#include "telemetryserver/recorder.h"

namespace nos::telemetryserver {

inline constexpr size_t kMaxAlertBody = size_t{1} << 20;
inline constexpr size_t kMaxAlertsPerRequest = 1000, kMaxAlerts = 1000, kMaxAlertClusters = 20;
inline constexpr size_t kMaxAlertLabels = 40, kMaxAlertText = 1000, kMaxAlertLabel = 200;
// An alert that is not repeated for this long is forgotten. Alertmanager's repeat_interval is four
// hours by default.
inline constexpr telemetry::Millis kForgetAlertAfter = telemetry::Millis{24} * 3600 * 1000;

struct Alert {
  std::map<std::string, std::string> labels;
  std::string summary, description;
  std::string url;              // of the expression; http or https; "": none
  telemetry::Millis since = 0;  // 0: unknown
  telemetry::Millis ends = 0;   // it fires no more from then on; 0: unknown
  telemetry::Millis seen = 0;

  std::string_view Label(std::string_view name) const;  // "": none
};

// Holds alerts of several clusters. Thread-safe.
class AlertTable {
 public:
  struct Taken {
    size_t firing = 0, resolved = 0;
    size_t refused = 0;  // without a name, unreadable, or beyond a limit
  };
  // Error: kInvalid: no payload of version 4. kExhausted: too many clusters.
  Result<Taken> Take(const std::string& cluster, std::string_view body, telemetry::Millis now);
  // By severity (critical, warning, others), then the longest first.
  std::vector<Alert> Firing(const std::string& cluster, telemetry::Millis now) const;

 private:
  mutable std::mutex mutex_;
  // By cluster, then by all labels.
  std::map<std::string, std::map<std::string, Alert>> alerts_;
};

class AlertReceiver {
 public:
  // May this client deliver alerts of the cluster? Errors: kPermission, kExhausted (too many
  // attempts), kUnavailable (cannot be checked now).
  using Admit = std::function<Status(const net::HttpRequest& request, const std::string& cluster)>;

  // `admit`: null: every client may deliver.
  AlertReceiver(Recorder& recorder, Admit admit) : recorder_(recorder), admit_(std::move(admit)) {}

  net::HttpResponse Answer(const net::HttpRequest& request, const net::Target& target);
  const AlertTable& table() const { return table_; }

 private:
  Result<std::string> ClusterOf(const net::Target& target) const;

  Recorder& recorder_;
  const Admit admit_;
  AlertTable table_;
  ConcurrencyLimiter reading_{2, 8};
};

}  // namespace nos::telemetryserver
