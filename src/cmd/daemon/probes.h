// HTTP endpoints of a daemon: /healthz, /readyz and /metrics.
//
//   NOS_ASSIGN(auto probes, Probes::Serve({.health = ":8081", .metrics = ":8080"}, checks,
//   metrics));
//
// Each check has a name and returns its problem. An answer lists all checks, one per line, with
// status 200 if all pass and 503 otherwise.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/metrics.h"
#include "base/status.h"
#include "net/http_server.h"

namespace nos::cmd {

struct ProbeAddresses {
  // "HOST:PORT" or ":PORT" (all addresses of the machine); "" or "0" disables the endpoint. Both
  // may be the same address.
  std::string health, metrics;
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
  // `before_scrape` updates gauges. Errors: kInvalid (invalid address), kUnavailable (address in
  // use).
  static Result<std::unique_ptr<Probes>> Serve(const ProbeAddresses& addresses,
                                               std::vector<Check> checks, Metrics& metrics,
                                               std::function<void()> before_scrape);
  // Answers a request, for any of the addresses.
  net::HttpResponse Answer(const net::HttpRequest& request);

 private:
  Probes() = default;
  net::HttpResponse Look(bool only_fatal) const;

  std::vector<Check> checks_;
  Metrics* metrics_ = nullptr;
  std::function<void()> before_scrape_;
  std::vector<std::unique_ptr<net::HttpServer>> servers_;  // last: they use the others
};

}  // namespace nos::cmd
