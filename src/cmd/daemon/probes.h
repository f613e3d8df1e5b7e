// HTTP endpoints of a daemon: /healthz, /readyz and /metrics.
//
//   NOS_ASSIGN(auto probes, Probes::Serve({.health = ":8081", .metrics = ":8080"}, checks, metrics,
//                                         [] {}, MetricsSecurity::Of(flags.metrics, connection)));
//
// Each check has a name and returns its problem. An answer lists the names of all checks, one per
// line, with status 200 if all pass and 503 otherwise. Problems are logged when they change:
// every client may ask for the answer, and they name inner addresses.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "cmd/daemon/metrics_access.h"
#include "net/http_server.h"

namespace nos::cmd {

struct ProbeAddresses {
  // "HOST:PORT" or ":PORT" (all addresses of the machine); "" or "0" disables the endpoint. Both
  // may be the same address.
  std::string health, metrics;
};

// Flags of all daemons.
struct MetricsFlags {
  bool secure = false;
  std::string certificate_file, key_file;
};

// How /metrics is protected.
struct MetricsSecurity {
  // Null: every client may read it, without TLS. Else it is served at the metrics address only.
  std::unique_ptr<MetricsAccess> access{};
  // Empty: a self-signed certificate.
  std::string certificate_file{}, key_file{};

  static MetricsSecurity Of(const MetricsFlags& flags, const kube::ConnectionConfig& connection);
};

struct Check {
  std::string name;
  std::function<Status()> look;  // called on any thread
  // True if only a restart can fix a failure: the check is then part of /healthz as well as
  // /readyz.
  bool fatal = false;
};

class Probes {
 public:
  // `before_scrape` updates gauges. Errors: kInvalid (invalid address or certificate), kNotFound (a
  // certificate's file), kUnavailable (address in use).
  static Result<std::unique_ptr<Probes>> Serve(const ProbeAddresses& addresses,
                                               std::vector<Check> checks, Metrics& metrics,
                                               std::function<void()> before_scrape,
                                               MetricsSecurity security = {});
  // Answers a request to an address without TLS.
  net::HttpResponse Answer(const net::HttpRequest& request) { return Answer(request, false); }
  // `secured`: it came over TLS to the metrics address.
  net::HttpResponse Answer(const net::HttpRequest& request, bool secured);

 private:
  Probes() = default;
  net::HttpResponse Scrape(const net::HttpRequest& request, bool secured);
  net::HttpResponse Look(bool only_fatal);
  void LogChange(const Check& check, const Status& status);

  std::vector<Check> checks_;
  std::mutex mutex_;
  std::map<std::string, std::string> problems_;  // by check, as logged; guarded by mutex_
  Metrics* metrics_ = nullptr;
  std::function<void()> before_scrape_;
  std::unique_ptr<MetricsAccess> access_;
  std::vector<std::unique_ptr<net::HttpServer>> servers_;  // last: they use the others
};

}  // namespace nos::cmd
